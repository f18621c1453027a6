//! What a transaction has read and wants to write.
//!
//! The logs of all transactions are of one type, so that they can be used again: the lifetime of the
//! variables is taken away by [`Tx`](super::Tx), which clears the log before it ends.

use super::boxes::Free;
use super::cell::VarCell;
use super::word::Word;
use super::writes::{Mark, WriteSet};
use corelay_clock::Time;
use corelay_sync::facade::atomic::AtomicU64;
use std::sync::Arc;

/// Read set and write set, and what outlives the transaction: their memory, and the last time that
/// this thread has drawn.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) reads: ReadSet,
    pub(super) writes: WriteSet,
    /// Everything read so far is as it was at this time; see [`Tx`](super::Tx).
    pub(super) time: Time,
    /// Whose time it is.
    pub(super) domain: u64,
    /// What the transaction keeps alive: a word, and what frees it.
    pub(super) kept: Vec<(u64, Free)>,
    /// Transactions of coroutines that have ended with this log.
    pub(super) ended: Option<Arc<AtomicU64>>,
}

impl Log {
    pub(super) fn of(domain: u64) -> Self {
        Self {
            reads: ReadSet::default(),
            writes: WriteSet::default(),
            time: Time::ZERO,
            domain,
            kept: Vec::new(),
            ended: None,
        }
    }

    /// A time of another domain says nothing.
    #[inline(always)]
    pub(super) fn belong_to(&mut self, domain: u64) {
        if self.domain != domain {
            self.domain = domain;
            self.time = Time::ZERO;
        }
    }

    /// What was read, also where it is going to be written.
    pub(super) fn all_reads(&self) -> impl Iterator<Item = Read> {
        let to_be_written = self.writes.as_slice().iter();
        let read_before = to_be_written.filter(|write| write.old != Word::UNREAD);
        let reads = self.reads.iter();
        reads.chain(read_before.map(|write| (write.cell, write.old)))
    }

    /// Takes an alternative back: what it has read stays read.
    pub(super) fn take_back(&mut self, mark: Mark) {
        self.writes.take_back(mark, &mut self.reads);
    }

    /// Forgets everything, and frees what was not committed.
    #[inline(always)]
    pub(super) fn clear(&mut self) {
        self.reads.clear();
        self.writes.clear();
        if !self.kept.is_empty() {
            self.let_go();
        }
    }

    #[cold]
    fn let_go(&mut self) {
        // In the end, since dropping may run anything: reads and writes are forgotten by now.
        while let Some((word, free)) = self.kept.pop() {
            // SAFETY: from `Tx::keep`, which gave the pair; once.
            unsafe { free(word) };
        }
        if self.kept.capacity() > LARGE_READ_SET {
            self.kept = Vec::new();
        }
    }
}

/// A variable and the word that its value was read under.
pub(super) type Read = (&'static VarCell, Word);

/// What was read, in the order of reading; a variable may stand in it more than once.
#[derive(Debug)]
pub(super) struct ReadSet {
    reads: Vec<Read>,
    /// Duplicates are taken out when there are so many.
    thin_at: usize,
}

/// Entries from which on duplicates are looked for; and that are kept for the next transaction.
const LARGE_READ_SET: usize = 4096;

impl Default for ReadSet {
    fn default() -> Self {
        Self {
            reads: Vec::new(),
            thin_at: LARGE_READ_SET,
        }
    }
}

impl ReadSet {
    #[inline(always)]
    pub(super) fn push(&mut self, read: Read) {
        let Some(free) = self.reads.spare_capacity_mut().first_mut() else {
            return self.push_slowly(read);
        };
        free.write(read);
        let len = self.reads.len() + 1;
        // SAFETY: the place behind the last is there, and written.
        unsafe { self.reads.set_len(len) };
    }

    /// Makes room. A loop that reads the same variables again and again does not take ever more
    /// memory: the set is at most twice as long as the number of variables.
    #[cold]
    #[inline(never)]
    fn push_slowly(&mut self, read: Read) {
        if self.reads.len() >= self.thin_at {
            // The first reading of each stays; all were of one version, or the transaction would
            // have been aborted.
            self.reads
                .sort_by_key(|&(cell, _)| std::ptr::from_ref(cell));
            self.reads
                .dedup_by_key(|&mut (cell, _)| std::ptr::from_ref(cell));
            self.thin_at = (self.reads.len() * 2).max(LARGE_READ_SET);
        }
        if self.reads.len() * 2 >= self.reads.capacity() {
            self.reads.reserve(self.reads.capacity().max(32));
        }
        self.reads.push(read);
    }

    /// Takes out the last or the last but one, if it is of this variable: for who is going to write
    /// it. Others are left where they are and validated apart.
    #[inline(always)]
    pub(super) fn take_recent(&mut self, cell: &VarCell) -> Option<Word> {
        let recent = self.reads.len().checked_sub(1)?;
        if std::ptr::eq(self.reads[recent].0, cell) {
            return self.reads.pop().map(|(_, word)| word);
        }
        let before = recent.checked_sub(1)?;
        if std::ptr::eq(self.reads[before].0, cell) {
            return Some(self.reads.swap_remove(before).1);
        }
        None
    }

    #[inline(always)]
    pub(super) fn iter(&self) -> impl Iterator<Item = Read> {
        self.reads.iter().copied()
    }

    #[inline(always)]
    fn clear(&mut self) {
        self.reads.clear();
        if self.reads.capacity() > LARGE_READ_SET {
            self.shrink();
        }
    }

    #[cold]
    fn shrink(&mut self) {
        self.reads = Vec::new();
        self.thin_at = LARGE_READ_SET;
    }
}

/// A variable and what it is to be.
#[derive(Debug)]
pub(super) struct Write {
    pub(super) cell: &'static VarCell,
    /// Until it is locked: the word that it was read under, or [`Word::UNREAD`]. The lock is taken
    /// only where it is still so, which validates the read. Then: the word before.
    pub(super) old: Word,
    /// Before the commit has written: what is to be written. After: what it replaced, if a box.
    pub(super) value: [u64; 2],
    /// Frees a box; none where the value is in place.
    pub(super) free: Option<Free>,
}
