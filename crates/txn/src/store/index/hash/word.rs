//! The lock word of a segment.

/// The lock word of a segment: how many records were inserted there, and whether a writer is there.
///
/// ```text
///  63                       1      0
/// ┌──────────────────────────┬────────┐
/// │ inserts (the version)    │ locked │
/// └──────────────────────────┴────────┘
/// ```
/// The version counts on when the lock of a successful insert is released. It wraps: on a 32-bit
/// machine a gap takes exactly 2^31 inserts into its segment for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word(usize);

const LOCKED: usize = 1;
const INSERT: usize = 2;

impl Word {
    #[inline(always)]
    pub(super) fn from_raw(raw: usize) -> Self {
        Self(raw)
    }

    #[inline(always)]
    pub(super) fn raw(self) -> usize {
        self.0
    }

    #[inline(always)]
    #[cfg(test)]
    pub(super) fn is_locked(self) -> bool {
        self.0 & LOCKED != 0
    }

    #[inline(always)]
    pub(super) fn locked(self) -> Self {
        Self(self.0 | LOCKED)
    }

    #[inline(always)]
    pub(super) fn unlocked(self) -> Self {
        Self(self.0 & !LOCKED)
    }

    /// The word after one more insert.
    #[inline(always)]
    pub(super) fn after_insert(self) -> Self {
        Self(self.0.wrapping_add(INSERT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_touch_each_other() {
        for version in [0, 1, usize::MAX >> 1] {
            let free = Word::from_raw(version << 1);
            assert!(!free.is_locked() && free.locked().is_locked());
            assert_eq!(free.locked().unlocked(), free);
            assert_eq!(free.unlocked(), free);
            let next = free.locked().after_insert();
            assert!(next.is_locked());
            assert_eq!(next.raw() >> 1, version.wrapping_add(1) & (usize::MAX >> 1));
            assert_eq!(next.unlocked(), free.after_insert());
        }
    }
}
