//! The hash index: records by the hashes of their keys, unordered.
//!
//! ```text
//! directory: a fixed number of segments, chosen by the hash's highest bits
//! ┌───────────┬───────────┬───────────┬─────┐
//! │ segment 0 │ segment 1 │ segment 2 │ ... │   one cache line each
//! └───────────┴─────┬─────┴───────────┴─────┘
//!   word   : inserts so far, locked             (word.rs)
//!   block  ──┐ and log2 of its slots            (block.rs)
//!   counts : records, tombstones; for writers
//!            ▼
//!     ┌────┬────┬────┬────┬────┬────┬────┬────┐
//!     │    │ r1 │ r2 │ †  │ r3 │    │    │ r4 │  probed from the hash's lowest bits on, by one;
//!     └────┴────┴────┴────┴────┴────┴────┴────┘  each a pointer and a tag of the hash (slot.rs)
//! ```
//! A lookup loads three lines: the segment's, the slot's and the record's.
//!
//! # Readers
//! A lookup takes no lock, does not wait and does not start again. It loads the word, then the
//! block, and probes until it finds the key or an empty slot, through each slot at most once.
//!
//! * A record does not move within a block. The slots from its hash's home to its own are in use as
//!   long as it is there: a slot becomes empty again only when the one after it is empty. So a
//!   lookup finds a record that is there throughout.
//! * A lookup in a block that was replaced meanwhile answers as of the time when it loaded the block.
//!   The block and the records in it are freed after the lookup's guard has ended.
//! * A lookup that finds a record gone sees what its remover did before the removal.
//!
//! # Writers
//! A writer locks the segment. It spins for the lock: the holder runs [`Keyed::hash`] and the key's
//! `Eq`. If `Eq` panics, the lock is released and the segment is as before. `Eq` must not write to the index.
//!
//! When three of four slots are in use, by records or by tombstones, the next insert makes a new
//! block with room for as many records again, and retires the old one. So a segment's block has at
//! most sixteen slots for three records of the largest number that it had, and an insert or unlink costs constant time
//! on the average. Blocks shrink in the same way. There are always empty slots.
//!
//! # Gaps
//! The gap of a lookup that has found nothing is (segment, version, hash). The version was loaded
//! before the slots. The gap is unchanged if the segment has that version and is not locked, or if
//! another probe finds no record of that hash, except own ones.
//!
//! *An insert that the lookup did not see makes the gap changed, if the check comes after the
//! insert's store to the slot.* "After" is happens-before, or two fences as in
//! [`order_checks`](super::order_checks). Proof:
//!
//! 1. The insert locked the word, v → v + lock, before it stored to the slot, and released it as
//!    v + 1 after that. The check loads the word after the store. So it loads v + lock or a later
//!    value: later versions are greater than v.
//! 2. Had the lookup loaded v + 1 or later, it would have acquired the insert's release, and have
//!    seen the slot, or that the record was unlinked again. So the lookup's version is v or
//!    earlier, and what it has noted is no locked word. With 1, the check finds another word than
//!    the lookup noted.
//! 3. So the check probes. It finds the record by its hash, for its store came before, unless
//!    the record was unlinked again. Then there is nothing that the lookup should have seen: the
//!    check itself is a lookup that finds the key absent.
//!
//! Step 3 needs a remark. A transaction that inserts, commits, removes and unlinks between the
//! lookup and its check is not seen by the check. The transaction of the check is then ordered after the
//! removal; it has read nothing of that key otherwise.
//!
//! Records of other keys that have the same 64-bit hash and were there before count as changes, once
//! the version has changed. [`Gap::follow`] keeps a transaction's own inserts from being such a change, which
//! would recur at each attempt.
//!
//! The gap of a [`scan`](HashIndex::scan) is unchanged if its segment has the same version and is not
//! locked.

mod block;
mod segment;
mod slot;
mod word;

#[cfg(all(test, not(any(corelay_loom, corelay_shuttle))))]
mod tests;

use super::super::garbage::Guard;
use super::{Changed, Gap, Keyed};
use corelay_sync::facade::MODEL;
use segment::Segment;

/// Records by the hashes of their keys. It does not own them.
pub(crate) struct HashIndex<R> {
    /// A power of two.
    segments: Box<[Segment<R>]>,
}

/// The records for which a segment is meant.
const PER_SEGMENT: usize = 128;

/// The numbers of segments that [`HashIndex::with_capacity`] chooses from. With more of them, the
/// bits that choose the segment would overlap with the tags. Fewer would let unrelated writers wait for each other.
/// The models have one.
const SEGMENTS: std::ops::RangeInclusive<usize> = if MODEL { 1..=1 } else { 64..=65_536 };

impl<R: Keyed> HashIndex<R> {
    /// An empty index for about `records` records. It grows beyond that, but its number of segments
    /// does not.
    pub(crate) fn with_capacity(records: usize) -> Self {
        let segments = (records / PER_SEGMENT)
            .next_power_of_two()
            .clamp(*SEGMENTS.start(), *SEGMENTS.end());
        Self::with_segments(segments, records / segments * 2)
    }

    /// An empty index of so many `segments`, a power of two, with `slots` each, rounded up.
    pub(crate) fn with_segments(segments: usize, slots: usize) -> Self {
        assert!(
            segments.is_power_of_two(),
            "{segments} segments are no power of two"
        );
        let slots = slots.next_power_of_two().max(Segment::<R>::LEAST);
        let segments = (0..segments).map(|_| Segment::new(slots)).collect();
        Self { segments }
    }

    /// The record of `hash` for which `is_key` is true, or the gap that was found in its place.
    #[inline(always)]
    pub(crate) fn get<'g, G: Guard>(
        &self,
        hash: u64,
        is_key: impl Fn(&R) -> bool,
        guard: &'g G,
    ) -> Result<&'g R, Gap> {
        self.segment(hash).get(hash, is_key, guard)
    }

    /// Inserts `record`, and returns how the inserting transaction's gaps follow. If a record of the
    /// same key is there, returns that one and does nothing.
    ///
    /// # Safety
    /// * `record` is valid, aligned, and not in the index.
    /// * Its key and its hash do not change.
    /// * From now on it stays valid until it was unlinked and every guard has ended that was there
    ///   then; or until the index and every guard are gone that were used with it.
    /// * What any guard retires that is used with the index waits for all of them.
    pub(crate) unsafe fn insert<'g, G: Guard>(
        &self,
        record: *mut R,
        guard: &'g G,
    ) -> Result<Changed, &'g R> {
        // SAFETY: the caller promises that the record is valid.
        let hash = unsafe { &*record }.hash();
        // SAFETY: the caller keeps the duties.
        unsafe { self.segment(hash).insert(hash, record, guard) }
    }

    /// Takes `record` out, if that very record is there, and returns the pointer that was inserted.
    /// The caller retires the record.
    pub(crate) fn unlink(&self, record: &R) -> Option<*mut R> {
        let hash = record.hash();
        self.segment(hash).unlink(hash, record)
    }

    /// The records of the segment number `part`, each once, or `None` behind the last segment. Those
    /// that are inserted or unlinked meanwhile may be missed or seen.
    pub(crate) fn part<'g, G: Guard>(
        &self,
        part: usize,
        guard: &'g G,
    ) -> Option<impl Iterator<Item = &'g R> + use<'g, R, G>> {
        self.segments.get(part).map(|segment| segment.scan(guard).1)
    }

    /// The records of all [parts](Self::part).
    pub(crate) fn iter<'i, 'g, G: Guard>(
        &'i self,
        guard: &'g G,
    ) -> impl Iterator<Item = &'g R> + use<'i, 'g, R, G> {
        (0..).map_while(|part| self.part(part, guard)).flatten()
    }

    /// As [`iter`](Self::iter). `on_gap` gets the gaps, each before the records around it. Any insert
    /// changes a gap.
    #[cfg(test)]
    pub(crate) fn scan<'i, 'g, G: Guard, F: FnMut(Gap)>(
        &'i self,
        guard: &'g G,
        mut on_gap: F,
    ) -> impl Iterator<Item = &'g R> + use<'i, 'g, R, G, F> {
        self.segments.iter().flat_map(move |segment| {
            let (gap, records) = segment.scan(guard);
            on_gap(gap);
            records
        })
    }

    /// Begins to fetch the slots for `hash`. A caller with several keys calls it for all of them
    /// first, then [`prefetch_record`](Self::prefetch_record) for all of them.
    #[inline(always)]
    pub(crate) fn prefetch<G: Guard>(&self, hash: u64, _guard: &G) {
        self.segment(hash).prefetch(hash);
    }

    /// Begins to fetch the record of `hash`; waits for the slots.
    #[inline(always)]
    pub(crate) fn prefetch_record<G: Guard>(&self, hash: u64, guard: &G) {
        self.segment(hash).prefetch_record(hash, guard);
    }

    /// The memory of the index, in bytes, without that of the records and of retired blocks.
    #[cfg(test)]
    pub(crate) fn bytes<G: Guard>(&self, _guard: &G) -> usize {
        let blocks: usize = self.segments.iter().map(Segment::bytes).sum();
        blocks + size_of_val(&*self.segments)
    }

    #[inline(always)]
    fn segment(&self, hash: u64) -> &Segment<R> {
        let count = self.segments.len();
        let at = hash.rotate_left(count.trailing_zeros()) as usize & (count - 1);
        &self.segments[at]
    }
}
