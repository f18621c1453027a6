//! Histories: the calls of each thread, with their stamps.

use crate::recorder::Recorder;
use std::ops::RangeInclusive;

/// One call: its operation, the stamp of its invocation, and, if it has returned, the stamp of the
/// return and the output.
///
/// ```
/// use corelay_history::Call;
///
/// let pop = Call::returned("pop", 3..=5, Some(7));
/// assert_eq!((pop.invoked(), pop.ended(), pop.output()), (3, Some(5), Some(&Some(7))));
/// let push: Call<&str, Option<i32>> = Call::pending("push", 4);
/// assert_eq!(push.output(), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call<O, R> {
    pub(crate) operation: O,
    pub(crate) invoked: u64,
    /// The stamp of the return, and the output.
    pub(crate) answer: Option<(u64, R)>,
}

impl<O, R> Call<O, R> {
    /// A call that was invoked and returned at the two ends of `when`, in stamps of one
    /// clock for the whole history ([`ticks`](corelay_sync::ticks()), or any numbers).
    ///
    /// # Panics
    /// If it returns before it is invoked.
    pub fn returned(operation: O, when: RangeInclusive<u64>, output: R) -> Self {
        let (invoked, ended) = when.into_inner();
        assert!(
            invoked <= ended,
            "a call returns after its invocation: {invoked} is later than {ended}"
        );
        Self {
            operation,
            invoked,
            answer: Some((ended, output)),
        }
    }

    /// A call that never returned: it may have taken effect, or not.
    pub fn pending(operation: O, invoked: u64) -> Self {
        Self {
            operation,
            invoked,
            answer: None,
        }
    }

    /// A call that was read from somewhere. The error says what is wrong with it.
    pub(crate) fn checked(
        operation: O,
        invoked: u64,
        answer: Option<(u64, R)>,
    ) -> Result<Self, String> {
        match &answer {
            Some((ended, _)) if *ended < invoked => Err(format!(
                "the call returned at {ended}, before it was invoked at {invoked}"
            )),
            _ => Ok(Self {
                operation,
                invoked,
                answer,
            }),
        }
    }

    /// The operation that was called.
    pub fn operation(&self) -> &O {
        &self.operation
    }

    /// The stamp of the invocation.
    pub fn invoked(&self) -> u64 {
        self.invoked
    }

    /// The stamp of the return; `None` if the call is pending.
    pub fn ended(&self) -> Option<u64> {
        self.answer.as_ref().map(|(at, _)| *at)
    }

    /// The output; `None` if the call is pending.
    pub fn output(&self) -> Option<&R> {
        self.answer.as_ref().map(|(_, output)| output)
    }
}

/// A concurrent history: for every thread its calls, in the order of their invocations.
///
/// It is kept in a file by [`save`](Self::save); as a part of something else it is `Serialize` and
/// `Deserialize`, a list of threads with their calls.
///
/// Collected from [`Recorder`]s (thread `i` is the recorder `i`), loaded from a file, or
/// built by hand:
/// ```
/// use corelay_history::{Call, History};
///
/// let mut history = History::new();
/// history.push(0, Call::returned("push 1", 0..=4, true));
/// history.push(1, Call::returned("push 2", 2..=6, false));
/// assert_eq!((history.threads(), history.len()), (2, 2));
/// ```
///
/// # What the stamps say
/// A call precedes another if it returned *before* the other was invoked; if the two stamps are
/// equal, the calls overlap. But between calls of one thread on one object (one
/// [key](crate::Model::key)) equal stamps are order too: the first precedes the second unless it
/// returned later than the second was invoked.
///
/// Equal stamps of one thread's calls on *different* objects say nothing. They are rare with the
/// counters of x86-64, which tick many times between two calls; those of aarch64 may show the same
/// value for several. [The key's documentation](crate::Model::key) says why it must be so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History<O, R> {
    threads: Vec<Vec<Call<O, R>>>,
}

impl<O, R> History<O, R> {
    /// A history without calls.
    pub fn new() -> Self {
        Self {
            threads: Vec::new(),
        }
    }

    /// Adds the next call of a thread; threads are numbered from 0.
    ///
    /// # Panics
    /// If the thread has invoked another call later than this one.
    pub fn push(&mut self, thread: usize, call: Call<O, R>) {
        let last = self.last_invoked(thread);
        assert!(
            last <= call.invoked,
            "thread {thread}: push its calls in the order of their invocations ({} follows {last})",
            call.invoked
        );
        self.widen(thread + 1);
        self.threads[thread].push(call);
    }

    /// Adds a call that was read from somewhere. The error says why it cannot be the thread's next.
    pub(crate) fn push_checked(&mut self, thread: usize, call: Call<O, R>) -> Result<(), String> {
        let (last, invoked) = (self.last_invoked(thread), call.invoked);
        if invoked < last {
            return Err(format!(
                "thread {thread} invoked this at {invoked}, after a call invoked at {last}"
            ));
        }
        self.push(thread, call);
        Ok(())
    }

    /// Makes sure that the history has at least so many threads.
    pub(crate) fn widen(&mut self, threads: usize) {
        if threads > self.threads.len() {
            self.threads.resize_with(threads, Vec::new);
        }
    }

    /// The stamp of the thread's last invocation; 0 if there is none.
    pub(crate) fn last_invoked(&self, thread: usize) -> u64 {
        let calls = self.threads.get(thread);
        calls
            .and_then(|calls| calls.last())
            .map_or(0, Call::invoked)
    }

    /// The number of threads, including those without calls.
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// The calls of a thread, in the order of their invocations.
    ///
    /// # Panics
    /// If there is no such thread.
    pub fn calls_of(&self, thread: usize) -> &[Call<O, R>] {
        &self.threads[thread]
    }

    /// Every call with its thread, thread after thread.
    pub fn calls(&self) -> impl Iterator<Item = (usize, &Call<O, R>)> {
        self.threads
            .iter()
            .enumerate()
            .flat_map(|(thread, calls)| calls.iter().map(move |call| (thread, call)))
    }

    /// The number of calls.
    pub fn len(&self) -> usize {
        self.threads.iter().map(Vec::len).sum()
    }

    /// Whether the history has no calls.
    pub fn is_empty(&self) -> bool {
        self.threads.iter().all(Vec::is_empty)
    }
}

impl<O, R> Default for History<O, R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<O, R> FromIterator<Recorder<O, R>> for History<O, R> {
    fn from_iter<I: IntoIterator<Item = Recorder<O, R>>>(recorders: I) -> Self {
        Self {
            threads: recorders.into_iter().map(Recorder::into_calls).collect(),
        }
    }
}
