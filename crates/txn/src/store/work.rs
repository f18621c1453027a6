//! The read set, the write set and the absences of a transaction.

use super::index::Gap;
use super::kept::Log;
use super::record::{Head, Version, Word};
use super::table::{Meta, Ops};

/// A record that was read, and the version of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Read {
    pub(crate) head: *const Head,
    pub(crate) seen: *mut Version,
}

/// A place where a record was looked for in vain.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Absence {
    pub(crate) gap: Gap,
    pub(crate) meta: *const Meta,
}

/// A record that is to get a new version.
#[derive(Debug)]
pub(crate) struct Write {
    pub(crate) head: *const Head,
    /// The version that this transaction saw, if it looked.
    pub(crate) expected: Option<*mut Version>,
    /// The word of the record when it was locked.
    pub(crate) locked: Word,
    /// The new version, this transaction's own until it commits.
    pub(crate) new: *mut Version,
    pub(crate) ops: &'static Ops,
    pub(crate) state: State,
}

/// How far a write has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// The record is in its index, and not locked.
    Found,
    /// The record is this transaction's own, in no index yet.
    Made,
    /// The record is in its index, locked by this transaction.
    Locked,
    /// The record was put into its index by this transaction, and is locked by it.
    Entered,
}

/// The sets of a transaction. They are kept from one to the next.
#[derive(Debug, Default)]
pub(crate) struct Work {
    pub(crate) reads: Vec<Read>,
    pub(crate) absences: Vec<Absence>,
    pub(crate) writes: Vec<Write>,
    /// A bit for the address of each written record, to find quickly that one is not there.
    filter: u64,
    /// Writes that insert a record.
    pub(crate) made: usize,
    /// A bit for the table and hash of each of them.
    made_filter: u64,
    /// Whether the transaction was begun as one that only reads.
    pub(crate) is_read_only: bool,
    /// The time from which the transaction reads, if the protocol has one.
    pub(crate) time: u64,
    /// Versions before this are certainly older than `time`.
    pub(crate) horizon: u64,
    /// The largest stamp of a removal in the tables of the absences, when they were looked for.
    pub(crate) floor: u64,
    /// Comparisons with the transaction's time that the clock left open.
    pub(crate) uncertain: u64,
    /// The slot's part of the log, if the store is kept on disk.
    pub(crate) log: Option<Box<Log>>,
}

// SAFETY: the pointers are only followed by the transaction that owns the slot, while it is pinned;
// new versions are `Send`, as a table demands of its values.
unsafe impl Send for Work {}

fn bit(number: u64) -> u64 {
    1 << (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58)
}

fn head_bit(head: *const Head) -> u64 {
    bit(head.addr() as u64 >> 5)
}

fn made_bit(meta: *const Meta, gap: &Gap) -> u64 {
    // The bits of a prefix may all be high ones.
    bit(meta.addr() as u64 ^ gap.hash ^ gap.hash.rotate_left(32))
}

impl Write {
    /// The version that is replaced. Known once the record is locked.
    #[inline(always)]
    pub(crate) fn replaced(&self) -> *mut Version {
        self.locked.version()
    }
}

impl Work {
    /// The write of a record, if there is one.
    #[inline(always)]
    pub(crate) fn write_of(&self, head: *const Head) -> Option<usize> {
        if self.filter & head_bit(head) == 0 {
            return None;
        }
        self.writes.iter().rposition(|write| write.head == head)
    }

    /// Notes that the transaction inserts a record where it has found `gap`.
    pub(crate) fn note_made(&mut self, meta: &Meta, gap: &Gap) {
        self.made_filter |= made_bit(meta, gap);
    }

    /// Whether the transaction may have inserted the record that it has looked for, and found `gap`.
    #[inline(always)]
    pub(crate) fn may_have_made(&self, meta: &Meta, gap: &Gap) -> bool {
        self.made_filter & made_bit(meta, gap) != 0
    }

    pub(crate) fn push_write(&mut self, write: Write) {
        self.filter |= head_bit(write.head);
        self.made += usize::from(write.state == State::Made);
        self.writes.push(write);
    }

    /// Takes the version of a record out of the read set, if it was read just before: its lock is
    /// going to check it.
    pub(crate) fn take_last_read(&mut self, head: *const Head) {
        if self.reads.last().is_some_and(|read| read.head == head) {
            self.reads.pop();
        }
    }

    /// Notes that nothing (more) was found at a gap, which was looked at just now.
    #[inline]
    pub(crate) fn miss(&mut self, gap: Gap, meta: &Meta) {
        self.floor = self.floor.max(meta.removed());
        self.absences.push(Absence { gap, meta });
    }

    /// Whether this transaction has put the record into its index. A record that it only writes may
    /// be another one's, inserted after this transaction had found nothing there.
    pub(crate) fn has_entered(&self, record: *const ()) -> bool {
        let write = self.write_of(record.cast());
        write.is_some_and(|at| self.writes[at].state == State::Entered)
    }

    /// Empties the sets. The caller has dealt with what they own.
    #[inline]
    pub(crate) fn clear(&mut self) {
        clear(&mut self.reads);
        clear(&mut self.absences);
        clear(&mut self.writes);
        self.filter = 0;
        self.made = 0;
        self.made_filter = 0;
        self.floor = 0;
    }
}

/// Entries of a set that are kept allocated from one transaction to the next.
const KEPT: usize = 4096;

#[inline]
fn clear<T>(set: &mut Vec<T>) {
    set.clear();
    if set.capacity() > KEPT {
        set.shrink_to(KEPT);
    }
}
