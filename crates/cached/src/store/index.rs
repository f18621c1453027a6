//! The index of a shard: for each item, 32 bits that say where its record is, and 8 bits of its
//! key's hash.
//!
//! Entries lie in groups of one cache line, 12 in each:
//!
//! ```text
//! byte  0        12         13       14..16    16                       64
//!       │ tags   │ diverted │ passed │ unused  │ locations: 12 × u32    │
//! ```
//! A tag of 0 marks an empty entry. An item has two groups, by its hash. It lies in the first one
//! unless that is nearly full and the second one has fewer items, which keeps both from being full
//! (Azar et al., "Balanced allocations", STOC 1994). The first one counts the items that are
//! *diverted*. If both are full, the item lies in the next group behind the second one that is not,
//! and each group that it has passed counts it. So a look-up reads one group or two nearly always,
//! also after items have come and gone for long, and compares keys nearly always once.
//!
//! Groups lie in *pieces*, each of which has its own part of the hashes and grows by itself: by an
//! eighth each time, so that it stays 78 to 88 % full, up to 768 groups; then it is split in two
//! (Fagin et al., "Extendible Hashing", TODS 1979). So an index takes 6 to 7 bytes for an item, and
//! no insertion moves more than 8,110 entries.

use corelay_sync::prefetch_read;
use memmap2::MmapMut;
use std::io;

/// The bytes of a group.
const LINE: usize = 64;
/// The entries of a group.
const ENTRIES: usize = 12;
/// The byte of a group that counts the items of which it is the first group and that lie elsewhere.
const DIVERTED: usize = ENTRIES;
/// The byte of a group that counts the items that have passed it.
const PASSED: usize = ENTRIES + 1;
/// The entries of a group from which on items are diverted.
const NEARLY_FULL: u32 = ENTRIES as u32 - 1;
/// The byte of a group at which its locations begin.
const LOCATIONS: usize = 16;
/// The groups of a new index.
const FEWEST: u32 = 16;
/// The groups from which on a piece is split instead of growing.
const MOST: u32 = 768;
/// The share of a piece's entries, in percent, from which on it grows.
const FULL_PERCENT: u64 = 88;

/// The place of an entry in the index. It is good until the next insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    piece: u32,
    group: u32,
    entry: u32,
}

/// Records by location, as far as the index has to know of them.
pub(super) trait Records {
    /// The hash of the key of the record there.
    fn hash(&self, location: u32) -> u64;

    /// Begins to load the record's key into the cache.
    fn prefetch(&self, location: u32);
}

/// A map from hashes to locations. Equal hashes are told apart by the caller.
pub(super) struct Index {
    /// The piece of each hash, by its first `depth` bits.
    directory: Vec<u32>,
    depth: u32,
    pieces: Vec<Piece>,
    /// The groups of all pieces.
    groups: usize,
    len: usize,
}

/// Groups of entries whose hashes agree in their first `depth` bits.
struct Piece {
    groups: MmapMut,
    number: u32,
    len: u32,
    depth: u32,
}

/// The tag of a hash, which is not 0.
#[inline]
fn tag(hash: u64) -> u8 {
    (hash as u8).max(1)
}

/// A bit, the highest, in each byte of the result whose byte in `tags` is `tag`. There may be false
/// ones beside true ones.
#[inline]
fn equal_bytes(tags: u128, tag: u8) -> u128 {
    const ONES: u128 = u128::from_ne_bytes([0x01; 16]);
    const HIGH: u128 = u128::from_ne_bytes([0x80; 16]);
    let differing = tags ^ (ONES * u128::from(tag));
    differing.wrapping_sub(ONES) & !differing & HIGH
}

/// Counts an item more. At 255 the count stays there for good.
fn count_up(count: &mut u8) {
    *count = count.saturating_add(1);
}

/// Counts an item less, if it is known how many there are.
fn count_down(count: &mut u8) {
    if *count < u8::MAX {
        *count -= 1;
    }
}

impl Piece {
    fn new(number: u32, depth: u32) -> io::Result<Self> {
        Ok(Self {
            groups: MmapMut::map_anon(number as usize * LINE)?,
            number,
            len: 0,
            depth,
        })
    }

    /// The first group of items of that hash.
    #[inline]
    fn first(&self, hash: u64) -> u32 {
        // Bits beside those of the tag and of the directory.
        self.scale((hash >> 8) as u32)
    }

    /// The second group of items of that hash.
    #[inline]
    fn second(&self, hash: u64) -> u32 {
        self.scale(((hash >> 8) as u32).wrapping_mul(0x9e37_79b1))
    }

    /// The group for 32 bits of a hash.
    #[inline]
    fn scale(&self, bits: u32) -> u32 {
        ((u64::from(bits) * u64::from(self.number)) >> 32) as u32
    }

    #[inline]
    fn line(&self, group: u32) -> &[u8; LINE] {
        let (lines, _) = self.groups.as_chunks();
        &lines[group as usize]
    }

    #[inline]
    fn line_mut(&mut self, group: u32) -> &mut [u8; LINE] {
        let (lines, _) = self.groups.as_chunks_mut();
        &mut lines[group as usize]
    }

    #[inline]
    fn next(&self, group: u32) -> u32 {
        if group + 1 == self.number {
            0
        } else {
            group + 1
        }
    }

    fn location(&self, group: u32, entry: u32) -> u32 {
        let at = LOCATIONS + 4 * entry as usize;
        let bytes = &self.line(group)[at..at + 4];
        u32::from_le_bytes(bytes.try_into().expect("four bytes"))
    }

    fn set(&mut self, group: u32, entry: u32, tag: u8, location: u32) {
        let line = self.line_mut(group);
        line[entry as usize] = tag;
        let at = LOCATIONS + 4 * entry as usize;
        line[at..at + 4].copy_from_slice(&location.to_le_bytes());
    }

    /// Finds the entry with that hash for whose location `is_it` returns true.
    #[inline]
    fn find(&self, hash: u64, mut is_it: impl FnMut(u32) -> bool) -> Option<(u32, u32)> {
        let first = self.first(hash);
        let found = self.find_in(first, hash, &mut is_it);
        if found.is_some() || self.line(first)[DIVERTED] == 0 {
            return found;
        }
        self.find_diverted(hash, is_it)
    }

    /// Finds an entry that is not in its first group.
    #[inline(never)] // Few look-ups come here, and the others are faster without this code among theirs.
    fn find_diverted(&self, hash: u64, mut is_it: impl FnMut(u32) -> bool) -> Option<(u32, u32)> {
        let mut group = self.second(hash);
        // Each group is looked at once, however many items have passed all of them.
        for _ in 0..self.number {
            let found = self.find_in(group, hash, &mut is_it);
            if found.is_some() || self.line(group)[PASSED] == 0 {
                return found;
            }
            group = self.next(group);
        }
        None
    }

    /// Finds an entry that is in that group.
    #[inline(always)]
    fn find_in(
        &self,
        group: u32,
        hash: u64,
        is_it: &mut impl FnMut(u32) -> bool,
    ) -> Option<(u32, u32)> {
        let line = self.line(group);
        let tags = u128::from_le_bytes(line[..16].try_into().expect("16 bytes"));
        let mut found = equal_bytes(tags, tag(hash)) & ((1 << (8 * ENTRIES)) - 1);
        while found != 0 {
            let entry = found.trailing_zeros() / 8;
            if line[entry as usize] == tag(hash) && is_it(self.location(group, entry)) {
                return Some((group, entry));
            }
            found &= found - 1;
        }
        None
    }

    /// The entries of a group that are in use.
    fn used(&self, group: u32) -> u32 {
        let tags = self.line(group)[..ENTRIES].iter();
        tags.map(|&tag| u32::from(tag != 0)).sum()
    }

    /// Inserts an entry. There is room.
    fn insert(&mut self, hash: u64, location: u32) {
        let (first, second) = (self.first(hash), self.second(hash));
        let used = self.used(first);
        let stays = used < NEARLY_FULL || used < ENTRIES as u32 && used <= self.used(second);
        let mut group = first;
        if !stays {
            count_up(&mut self.line_mut(first)[DIVERTED]);
            group = second;
            while self.used(group) == ENTRIES as u32 {
                count_up(&mut self.line_mut(group)[PASSED]);
                group = self.next(group);
            }
        }
        let tags = self.line(group)[..ENTRIES].iter();
        let entry = tags.take_while(|&&tag| tag != 0).count() as u32;
        self.set(group, entry, tag(hash), location);
        self.len += 1;
    }

    fn remove(&mut self, hash: u64, (group, entry): (u32, u32)) {
        let first = self.first(hash);
        if group != first {
            count_down(&mut self.line_mut(first)[DIVERTED]);
            let mut passed = self.second(hash);
            while passed != group {
                count_down(&mut self.line_mut(passed)[PASSED]);
                passed = self.next(passed);
            }
        }
        self.set(group, entry, 0, 0);
        self.len -= 1;
    }

    fn is_full(&self) -> bool {
        u64::from(self.len) * 100 >= u64::from(self.number) * ENTRIES as u64 * FULL_PERCENT
    }

    /// Calls `f` with each entry's hash and location.
    fn each(&self, records: &impl Records, mut f: impl FnMut(u64, u32)) {
        let locations = |group: u32| {
            let tags = self.line(group)[..ENTRIES].iter().enumerate();
            let filled = tags.filter(|&(_, &tag)| tag != 0);
            filled.map(move |(entry, _)| self.location(group, entry as u32))
        };
        for group in 0..self.number {
            // Two groups ahead: the records are anywhere in memory.
            if group + 2 < self.number {
                locations(group + 2).for_each(|location| records.prefetch(location));
            }
            locations(group).for_each(|location| f(records.hash(location), location));
        }
    }
}

impl Index {
    /// Makes an index without entries.
    ///
    /// # Errors
    /// The system gives no memory.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            directory: vec![0],
            depth: 0,
            pieces: vec![Piece::new(FEWEST, 0)?],
            groups: FEWEST as usize,
            len: 0,
        })
    }

    /// The number of entries.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The bytes that the index takes.
    pub(super) fn bytes(&self) -> usize {
        self.groups * LINE
            + self.directory.len() * size_of::<u32>()
            + self.pieces.len() * size_of::<Piece>()
    }

    /// The memory of all groups, once nobody needs the index any more.
    pub(super) fn into_memory(self) -> impl Iterator<Item = MmapMut> {
        self.pieces.into_iter().map(|piece| piece.groups)
    }

    #[inline]
    fn piece(&self, hash: u64) -> u32 {
        // A shift by 64 is none.
        self.directory[hash.unbounded_shr(64 - self.depth) as usize]
    }

    /// Begins to load the group of that hash into the cache.
    #[inline]
    pub(super) fn prefetch(&self, hash: u64) {
        let piece = &self.pieces[self.piece(hash) as usize];
        prefetch_read(piece.line(piece.first(hash)));
    }

    /// Finds the entry with that hash for whose location `is_it` returns true.
    #[inline]
    pub(super) fn find(&self, hash: u64, is_it: impl FnMut(u32) -> bool) -> Option<Slot> {
        let piece = self.piece(hash);
        let (group, entry) = self.pieces[piece as usize].find(hash, is_it)?;
        Some(Slot {
            piece,
            group,
            entry,
        })
    }

    /// The location of an entry.
    #[inline]
    pub(super) fn location(&self, slot: Slot) -> u32 {
        self.pieces[slot.piece as usize].location(slot.group, slot.entry)
    }

    /// Sets the location of an entry with that hash.
    pub(super) fn relocate(&mut self, hash: u64, slot: Slot, location: u32) {
        self.pieces[slot.piece as usize].set(slot.group, slot.entry, tag(hash), location);
    }

    /// Removes an entry with that hash.
    pub(super) fn remove(&mut self, hash: u64, slot: Slot) {
        self.pieces[slot.piece as usize].remove(hash, (slot.group, slot.entry));
        self.len -= 1;
    }

    /// Inserts an entry. Returns the number of others that were looked at to make room for it.
    ///
    /// # Errors
    /// The system gives no memory for a larger piece. Nothing has been inserted.
    pub(super) fn insert(
        &mut self,
        hash: u64,
        location: u32,
        records: &impl Records,
    ) -> io::Result<usize> {
        let mut moved = 0;
        if self.pieces[self.piece(hash) as usize].is_full() {
            moved = self.grow(hash, records)?;
        }
        let piece = self.piece(hash);
        self.pieces[piece as usize].insert(hash, location);
        self.len += 1;
        Ok(moved)
    }

    /// Grows the piece of that hash, or splits it. Returns the number of entries that it has looked at.
    #[cold]
    fn grow(&mut self, hash: u64, records: &impl Records) -> io::Result<usize> {
        let old = self.piece(hash);
        let Piece { number, depth, .. } = self.pieces[old as usize];
        if number < MOST || depth >= 40 {
            let mut grown = Piece::new(number + (number / 8).max(1), depth)?;
            self.pieces[old as usize].each(records, |hash, location| {
                grown.insert(hash, location);
            });
            self.groups += (grown.number - number) as usize;
            self.pieces[old as usize] = grown;
            return Ok(number as usize * ENTRIES);
        }
        let mut halves = [
            Piece::new(number / 2 + number / 16, depth + 1)?,
            Piece::new(number / 2 + number / 16, depth + 1)?,
        ];
        self.pieces[old as usize].each(records, |hash, location| {
            let half = (hash >> (63 - depth)) & 1;
            halves[half as usize].insert(hash, location);
        });
        if depth == self.depth {
            self.depth += 1;
            let twice = self.directory.iter().flat_map(|&piece| [piece, piece]);
            self.directory = twice.collect();
        }
        let new = self.pieces.len() as u32;
        // The directory's entries of the old piece lie together; the second half is the new one's.
        let entries = self.directory.len() >> depth;
        let first = hash.unbounded_shr(64 - depth) as usize * entries;
        self.directory[first + entries / 2..first + entries].fill(new);
        let [lower, upper] = halves;
        self.groups += (lower.number + upper.number - number) as usize;
        self.pieces[old as usize] = lower;
        self.pieces.push(upper);
        Ok(number as usize * ENTRIES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// Records whose location is their number, with hashes of their own.
    struct Hashes(Vec<u64>);

    impl Records for Hashes {
        fn hash(&self, location: u32) -> u64 {
            self.0[location as usize]
        }

        fn prefetch(&self, _: u32) {}
    }

    /// A number whose bits all depend on `n`.
    fn mix(n: u64) -> u64 {
        let n = (n ^ (n >> 31)).wrapping_mul(0x7fb5_d329_728e_a185);
        (n ^ (n >> 27)).wrapping_mul(0x81da_def4_bc2d_d44d)
    }

    /// Checks that each group counts just the items that it has diverted and those that have passed it.
    fn check_counts(index: &Index, records: &Hashes) {
        for piece in &index.pieces {
            let mut counts = vec![[0; 2]; piece.number as usize];
            for group in 0..piece.number {
                for entry in (0..ENTRIES as u32).filter(|&e| piece.line(group)[e as usize] != 0) {
                    let hash = records.hash(piece.location(group, entry));
                    if group == piece.first(hash) {
                        continue;
                    }
                    counts[piece.first(hash) as usize][0] += 1;
                    let mut passed = piece.second(hash);
                    while passed != group {
                        counts[passed as usize][1] += 1;
                        passed = piece.next(passed);
                    }
                }
            }
            for (group, counts) in (0..).zip(counts) {
                assert_eq!(piece.line(group)[DIVERTED..=PASSED], counts);
            }
        }
    }

    #[test]
    fn an_index_finds_what_was_inserted_and_not_removed() {
        let mut index = Index::new().unwrap();
        let mut records = Hashes(Vec::new());
        let mut model = HashMap::new();
        for step in 0..200_000u64 {
            let hash = mix(step % 70_000);
            let found = index.find(hash, |location| records.0[location as usize] == hash);
            assert_eq!(
                found.map(|slot| index.location(slot)),
                model.get(&hash).copied()
            );
            match (found, mix(step ^ 0x5555) % 3) {
                (None, _) => {
                    let location = records.0.len() as u32;
                    records.0.push(hash);
                    index.insert(hash, location, &records).unwrap();
                    model.insert(hash, location);
                }
                (Some(slot), 0) => {
                    index.remove(hash, slot);
                    model.remove(&hash);
                }
                (Some(slot), 1) => {
                    let location = records.0.len() as u32;
                    records.0.push(hash);
                    index.relocate(hash, slot, location);
                    model.insert(hash, location);
                }
                (Some(_), _) => {}
            }
            assert_eq!(index.len(), model.len());
        }
        check_counts(&index, &records);
    }

    #[test]
    fn equal_hashes_are_told_apart_by_the_caller() {
        let mut index = Index::new().unwrap();
        let records = Hashes(vec![mix(1); 30]);
        for n in 0..30 {
            index.insert(mix(1), n, &records).unwrap();
        }
        for n in (0..30).rev() {
            let slot = index.find(mix(1), |location| location == n).unwrap();
            index.remove(mix(1), slot);
            assert!(index.find(mix(1), |location| location == n).is_none());
        }
        assert_eq!(index.len(), 0);
    }

    #[test]
    fn look_ups_stay_short_while_items_come_and_go() {
        const ITEMS: u64 = 50_000;
        let mut index = Index::new().unwrap();
        let mut records = Hashes(Vec::new());
        for n in 0..20 * ITEMS {
            records.0.push(mix(n));
            index.insert(mix(n), n as u32, &records).unwrap();
            if let Some(oldest) = n.checked_sub(ITEMS) {
                let slot = index.find(mix(oldest), |location| location == oldest as u32);
                index.remove(mix(oldest), slot.unwrap());
            }
        }
        check_counts(&index, &records);
        // With one group for each item, two thirds of all groups had been passed here.
        let passed = |piece: &Piece| {
            let groups = 0..piece.number;
            groups
                .filter(|&group| piece.line(group)[PASSED] > 0)
                .count()
        };
        let passed: usize = index.pieces.iter().map(passed).sum();
        assert!(
            passed * 100 < index.groups * 15,
            "{passed} of {}",
            index.groups
        );
    }

    #[test]
    fn an_entry_takes_less_than_seven_bytes() {
        let mut index = Index::new().unwrap();
        let mut records = Hashes(Vec::new());
        for n in 0..300_000 {
            records.0.push(mix(n));
            index.insert(mix(n), n as u32, &records).unwrap();
            if n % 1_000 == 0 {
                let groups: usize = index.pieces.iter().map(|piece| piece.groups.len()).sum();
                assert_eq!(groups, index.groups * LINE);
            }
            if n > 20_000 {
                let each = index.bytes() as f64 / n as f64;
                assert!(each < 7.0, "{n} entries take {each} bytes each");
            }
        }
    }
}
