//! The content of a slot: no record, never a record, or a record and a few bits of its hash.

/// The content of a slot: a record's address, and in its low bits, which alignment leaves free, a
/// *tag*, computed from the record's hash.
///
/// ```text
///  63                          5 4      0
/// ┌─────────────────────────────┬────────┐
/// │ 0                           │ 0      │  empty: probing ends here
/// │ 1                           │ 0      │  tombstone: a record was here
/// │ address of a record, over 1 │ 1..=31 │  a record
/// └─────────────────────────────┴────────┘
/// ```
/// A probe compares the tag first. It touches a record of another hash once in 31 times, or more
/// rarely if records are aligned to more than 32 bytes.
#[derive(Debug)]
pub(super) struct Slot<R>(pub(super) *mut R);

impl<R> Slot<R> {
    /// The bits that the alignment of a record leaves free.
    const FREE: usize = align_of::<R>() - 1;

    const HAS_TAGS: () = assert!(
        align_of::<R>() >= 32,
        "records of a hash index are aligned to 32 bytes or more"
    );

    pub(super) const EMPTY: Self = Self(std::ptr::null_mut());

    pub(super) const TOMBSTONE: Self = Self(std::ptr::without_provenance_mut(Self::FREE + 1));

    /// The tag of `hash`: 1 or more, below the alignment. It comes from bits that choose neither the
    /// segment nor the slot where probing begins.
    #[inline(always)]
    pub(super) fn tag(hash: u64) -> usize {
        const { Self::HAS_TAGS };
        let bits = (hash >> 32) as u16;
        ((usize::from(bits) * Self::FREE) >> 16) + 1
    }

    /// The slot of `record`, which is not null and aligned.
    #[inline(always)]
    pub(super) fn of(record: *mut R, tag: usize) -> Self {
        Self(record.map_addr(|address| address | tag))
    }

    #[inline(always)]
    pub(super) fn has_tag(self, tag: usize) -> bool {
        self.0.addr() & Self::FREE == tag
    }

    #[inline(always)]
    pub(super) fn is_empty(self) -> bool {
        self.0.is_null()
    }

    #[inline(always)]
    pub(super) fn is_tombstone(self) -> bool {
        self.0 == Self::TOMBSTONE.0
    }

    /// The address of the record that is here.
    #[inline(always)]
    pub(super) fn record(self) -> Option<*mut R> {
        let is_record = self.0.addr() & Self::FREE != 0;
        is_record.then(|| self.address())
    }

    /// The address of the record, if there is one.
    #[inline(always)]
    pub(super) fn address(self) -> *mut R {
        self.0.map_addr(|address| address & !Self::FREE)
    }
}

impl<R> Clone for Slot<R> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Slot<R> {}

#[cfg(all(test, not(any(corelay_loom, corelay_shuttle))))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[repr(align(32))]
    struct Small(#[allow(dead_code)] u8);

    #[repr(align(128))]
    struct Large(#[allow(dead_code)] u8);

    fn check<R>(record: &mut R, hash: u64) {
        let (record, tag) = (&raw mut *record, Slot::<R>::tag(hash));
        assert!((1..align_of::<R>()).contains(&tag));
        let slot = Slot::of(record, tag);
        assert!(slot.has_tag(tag) && !slot.is_empty() && !slot.is_tombstone());
        assert_eq!(slot.record(), Some(record));
        for other in [Slot::<R>::EMPTY, Slot::TOMBSTONE] {
            assert!(!other.has_tag(tag));
            assert_eq!(other.record(), None);
        }
    }

    proptest! {
        #[test]
        fn a_slot_gives_back_record_and_tag(hash: u64) {
            check(&mut Small(0), hash);
            check(&mut Large(0), hash);
        }
    }

    #[test]
    fn markers_differ() {
        assert!(Slot::<Small>::EMPTY.is_empty() && !Slot::<Small>::EMPTY.is_tombstone());
        assert!(Slot::<Small>::TOMBSTONE.is_tombstone() && !Slot::<Small>::TOMBSTONE.is_empty());
    }
}
