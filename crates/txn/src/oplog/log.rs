//! One log: what its session has done since the last merge.
//!
//! ```text
//! entries   | time, op | time, op | time, op |      those of one key in the order of their times,
//!                  ▲                     ▲          unless it is scrambled
//! index     |  -   2     -     -    1    -   |      by the operation's key: a pending one worth
//!                                                   a look
//! ```
//! What replaces a pending operation takes its place, so times of different keys are in no order.
//! Within a key they are: the index has at each of its places the youngest entry that has been put
//! there, so nothing older is replaced than the youngest of a key. Only where a pair has cancelled,
//! and the last entry fills the gap, that is over.
//!
//! The index only hints. An entry of it may be stale (what it points at has been absorbed, or taken
//! by a reader), for [`absorb`](super::Operation::absorb) is right with any pending operation; and
//! one that has been overwritten by another key of the same place is not absorbed any more.

#![forbid(unsafe_code)]

use super::operation::{Absorbed, Operation};
use corelay_clock::Time;

/// An operation and when it was.
#[derive(Debug)]
pub(super) struct Entry<Op> {
    pub(super) time: Time,
    pub(super) op: Op,
}

/// What is taken out of a log at once.
#[derive(Debug)]
pub(super) struct Taken<Op> {
    pub(super) entries: Vec<Entry<Op>>,
    /// True where of one key an earlier operation may stand behind a later one.
    pub(super) scrambled: bool,
}

impl<Op> Default for Taken<Op> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            scrambled: false,
        }
    }
}

impl<Op> Taken<Op> {
    /// For the operations of another time, when those in it are gone.
    pub(super) fn begin_anew(&mut self) {
        self.scrambled = false;
    }
}

/// The pending operations of a session.
#[derive(Debug)]
pub(super) struct Log<Op> {
    pending: Taken<Op>,
    /// By key: the place of an entry. Empty until there is something to absorb; a power of two.
    index: Box<[u32]>,
    capacity: usize,
}

/// There is no room; here is the operation back.
#[derive(Debug)]
pub(super) struct Full<Op>(pub(super) Op);

impl<Op> Log<Op> {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            pending: Taken::default(),
            index: Box::default(),
            capacity,
        }
    }

    /// Takes `op` in, or lets it meet a pending one, which comes back where it is not needed any more:
    /// what its drop runs must not run in here.
    #[inline(always)]
    pub(super) fn push<S>(&mut self, time: Time, op: Op) -> Result<Option<Op>, Full<Op>>
    where
        Op: Operation<S>,
    {
        match op.key() {
            None => self.append(time, op),
            Some(key) => self.absorb(time, key, op),
        }
    }

    #[inline(always)]
    fn append(&mut self, time: Time, op: Op) -> Result<Option<Op>, Full<Op>> {
        if self.pending.entries.len() >= self.capacity {
            return Err(Full(op));
        }
        self.pending.entries.push(Entry { time, op });
        Ok(None)
    }

    #[inline(always)]
    fn absorb<S>(&mut self, time: Time, key: u64, op: Op) -> Result<Option<Op>, Full<Op>>
    where
        Op: Operation<S>,
    {
        if self.index.is_empty() {
            self.begin_index();
        }
        let hint = place(&self.index, key);
        let at = self.index[hint] as usize;
        let Some(earlier) = self.pending.entries.get_mut(at) else {
            return self.append_at(hint, time, op);
        };
        match op.absorb(&earlier.op) {
            Absorbed::Neither(op) => self.append_at(hint, time, op),
            Absorbed::Replaces(op) => Ok(Some(std::mem::replace(earlier, Entry { time, op }).op)),
            Absorbed::Cancels => Ok(Some(self.remove::<S>(at))),
        }
    }

    #[inline(always)]
    fn append_at(&mut self, hint: usize, time: Time, op: Op) -> Result<Option<Op>, Full<Op>> {
        let at = self.pending.entries.len();
        self.append(time, op)?;
        self.index[hint] = at as u32;
        Ok(None)
    }

    /// The last entry takes the place of the one at `at`.
    #[inline]
    fn remove<S>(&mut self, at: usize) -> Op
    where
        Op: Operation<S>,
    {
        let removed = self.pending.entries.swap_remove(at);
        if let Some(moved) = self.pending.entries.get(at) {
            self.pending.scrambled = true;
            if let Some(key) = moved.op.key() {
                self.index[place(&self.index, key)] = at as u32;
            }
        }
        removed.op
    }

    #[cold]
    fn begin_index(&mut self) {
        // Twice as many places as entries, so that few share one.
        let places = (2 * self.capacity).next_power_of_two();
        // Beyond every entry, whose places are below `capacity`.
        self.index = vec![u32::MAX; places].into_boxed_slice();
    }

    /// Exchanges what is pending for `empty`.
    pub(super) fn swap(&mut self, empty: &mut Taken<Op>) {
        debug_assert!(empty.entries.is_empty() && !empty.scrambled);
        std::mem::swap(&mut self.pending, empty);
    }
}

/// The place of `key`: its high bits, which a multiplication has mixed best.
#[inline(always)]
fn place(index: &[u32], key: u64) -> usize {
    (key >> 32) as usize & (index.len() - 1)
}
