//! A recorder of one thread's transactions.

use super::operation::{Operation, Outcome};
use crate::history::History;
use crate::recorder::{Invocation, Recorder as Calls};
use std::fmt;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Values that a recorder takes at once, so that threads seldom meet at the counter.
const BLOCK: u64 = 1024;

/// The first value that no recorder has taken.
static FREE: Mutex<u64> = Mutex::new(1);

/// One thread's notes of its transactions: their operations, outcomes, and stamps of begin and end.
///
/// As with the [`Recorder`](crate::Recorder) of calls, nothing is shared while recording (but for a
/// lock once in 1,024 [`fresh`](Self::fresh) values), and stamps never make an interval too short.
///
/// ```
/// use corelay_history::transactions::{History, Level, Outcome, Recorder, check};
/// use std::sync::Mutex;
///
/// let store = Mutex::new([None; 4]);
/// let mut recorders = [Recorder::new(), Recorder::new()];
/// std::thread::scope(|s| {
///     for recorder in &mut recorders {
///         s.spawn(|| for n in 0..100 {
///             recorder.begin();
///             let mut store = store.lock().unwrap();
///             let (from, to) = (n % 4, (n + 1) % 4);
///             recorder.read(from, store[from]);
///             let value = recorder.fresh();
///             recorder.write(to, value);
///             store[to] = Some(value);
///             drop(store);
///             recorder.end(Outcome::Committed);
///         });
///     }
/// });
/// let history: History<usize> = recorders.into_iter().collect();
/// check(&history, Level::StrictSerializable).unwrap();
/// ```
///
/// # Stores that run a closure again
/// Call [`begin`](Self::begin) before the store begins the transaction, and
/// [`retry`](Self::retry) at the top of the closure: what an earlier run of the closure has noted
/// becomes an aborted transaction of its own. Take values by [`fresh`](Self::fresh) within the
/// closure, so that each run writes its own.
pub struct Recorder<K = u64> {
    calls: Calls<Vec<Operation<K>>, Outcome>,
    open: Option<Invocation>,
    values: Range<u64>,
}

impl<K> Recorder<K> {
    /// A recorder without transactions.
    pub fn new() -> Self {
        Self::with_capacity(0)
    }

    /// A recorder with room for so many transactions before it allocates again.
    pub fn with_capacity(transactions: usize) -> Self {
        Self {
            calls: Calls::with_capacity(transactions),
            open: None,
            values: 0..0,
        }
    }

    /// Notes that a transaction begins now. Call it before the store begins its own.
    ///
    /// A transaction that is still open, say because of a panic, stays of unknown outcome.
    pub fn begin(&mut self) {
        self.open = Some(self.calls.invoke(Vec::new()));
    }

    /// Notes that the store has begun the open transaction again: what was noted of it so far is an
    /// aborted attempt. Does nothing if nothing was.
    ///
    /// The new attempt counts as begun when the first one was, since the store may have begun it at
    /// any time since.
    ///
    /// # Panics
    /// If no transaction is open.
    pub fn retry(&mut self) {
        let open = self.open.take().expect(OPEN);
        let attempt = self.calls.operation(&open);
        self.open = Some(if attempt.is_empty() {
            open
        } else {
            let next = self.calls.invoke_with(&open, Vec::new());
            self.calls.respond(open, Outcome::Aborted);
            next
        });
    }

    /// Notes a read of a register; `None` if it was absent.
    ///
    /// # Panics
    /// If no transaction is open.
    pub fn read(&mut self, key: K, value: Option<u64>) {
        self.note(Operation::Read(key, value));
    }

    /// Notes a write of a register. Call it before the store does the write, so that it is noted
    /// even if the store panics.
    ///
    /// # Panics
    /// If no transaction is open.
    pub fn write(&mut self, key: K, value: u64) {
        self.note(Operation::Write(key, value));
    }

    /// Notes a read of a list.
    ///
    /// # Panics
    /// If no transaction is open.
    pub fn read_list(&mut self, key: K, values: Vec<u64>) {
        self.note(Operation::ReadList(key, values));
    }

    /// Notes an append to a list. Call it before the store does the append.
    ///
    /// # Panics
    /// If no transaction is open.
    pub fn append(&mut self, key: K, value: u64) {
        self.note(Operation::Append(key, value));
    }

    /// Notes an operation of the open transaction.
    ///
    /// # Panics
    /// If no transaction is open.
    pub fn note(&mut self, operation: Operation<K>) {
        let open = self.open.as_ref().expect(OPEN);
        self.calls.operation(open).push(operation);
    }

    /// Notes that the open transaction has now ended. Call it when the store has answered.
    ///
    /// If the answer does not tell whether it has committed, do not call it: the next
    /// [`begin`](Self::begin) leaves the outcome unknown.
    ///
    /// # Panics
    /// If no transaction is open.
    pub fn end(&mut self, outcome: Outcome) {
        let open = self.open.take().expect(OPEN);
        self.calls.respond(open, outcome);
    }

    /// A value that no recorder of this process has returned before; at least 1.
    pub fn fresh(&mut self) -> u64 {
        self.values.next().unwrap_or_else(|| {
            let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
            let first = *free;
            *free += BLOCK;
            self.values = first + 1..*free;
            first
        })
    }
}

const OPEN: &str = "begin a transaction first";

impl<K> Default for Recorder<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K> fmt::Debug for Recorder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder")
            .field("calls", &self.calls)
            .field("open", &self.open)
            .finish_non_exhaustive()
    }
}

impl<K> FromIterator<Recorder<K>> for History<Vec<Operation<K>>, Outcome> {
    fn from_iter<I: IntoIterator<Item = Recorder<K>>>(recorders: I) -> Self {
        let calls = recorders.into_iter().map(|recorder| recorder.calls);
        calls.collect()
    }
}
