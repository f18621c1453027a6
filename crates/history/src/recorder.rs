//! A recorder: one thread's notes of its calls.
//!
//! # Why the order is sound
//! A history must never claim an order that was not there, or the checker accuses an innocent
//! structure. The checker takes "returned at a lesser stamp than the other was invoked at" as
//! order, so an interval may be too long, never too short. The promise of
//! [`ticks`](corelay_sync::ticks()) gives just that:
//!
//! * A stamp comes after all earlier operations of its thread, which every thread can then see, and
//!   before all later ones, which have not begun. The stamp of an invocation is the last thing
//!   before the operation, that of a return the first thing after it. So everything that an
//!   operation does lies between its two stamps.
//! * If one stamp happens before another, it is not greater. Suppose `a` returned at a lesser stamp
//!   than `b` was invoked at. Then nothing of `b` can have happened before the end of `a`:
//!   otherwise `b`'s stamp, which comes before it, would not be the greater one.
//! * Equal stamps say nothing, and the calls count as overlapping. A coarse counter makes the
//!   checker miss more; it never makes it accuse.
//!
//! With the hardware's counter this holds as far as the counters of two CPUs agree. Linux has found
//! none ahead of another by as much as a line takes between them, and one call can only affect
//! another through a line. With the shared counter it holds by the memory model alone.
//!
//! Within a thread the order is known without stamps. There equal stamps mean order, between calls
//! of one object ([`History`](crate::History)). So if a call returns at the very stamp at which a
//! later one of its thread was invoked, and thus overlaps it, its return is noted as one later: the
//! interval grows, which is allowed.
//!
//! Stamps are fences. An effect that shows only because a store of one operation is still in its
//! core's buffer when the thread's next operation begins does not show in a recorded run.

use crate::history::Call;
use corelay_sync::{CachePadded, ticks};
use std::fmt;

/// One thread's notes of its calls: operation, output, and two stamps.
///
/// Nothing is shared while recording: each thread has a recorder of its own, on cache lines of its
/// own. A call costs two [`ticks`](corelay_sync::ticks()) (some tens of nanoseconds) and a push on
/// a `Vec`. Let threads *borrow* their recorders, so that the notes of a thread that panics are not
/// lost:
/// ```
/// use corelay_history::model::counter::{Counter, Operation, Output};
/// use corelay_history::{History, Recorder, check};
/// use std::sync::atomic::{AtomicI64, Ordering};
///
/// let hits = AtomicI64::new(0);
/// let mut recorders: Vec<_> = (0..2).map(|_| Recorder::with_capacity(100)).collect();
/// std::thread::scope(|s| {
///     for recorder in &mut recorders {
///         s.spawn(|| {
///             for _ in 0..100 {
///                 recorder.record(Operation::FetchAdd(1), |_| {
///                     Output::Value(hits.fetch_add(1, Ordering::Relaxed))
///                 });
///             }
///         });
///     }
/// });
/// let history: History<_, _> = recorders.into_iter().collect();
/// check(&Counter::new(0), &history).unwrap();
/// ```
pub struct Recorder<O, R> {
    /// The calls. Alone on their lines: the length changes with every call.
    calls: CachePadded<Vec<Call<O, R>>>,
}

impl<O, R> Recorder<O, R> {
    /// A recorder without calls.
    pub fn new() -> Self {
        Self::with_capacity(0)
    }

    /// A recorder with room for so many calls before it allocates again.
    pub fn with_capacity(calls: usize) -> Self {
        Self {
            calls: CachePadded::new(Vec::with_capacity(calls)),
        }
    }

    /// Runs `f` as the operation, between two stamps, and returns what it returned.
    ///
    /// A panic of `f` leaves the call pending: it may have taken effect, or not.
    pub fn record(&mut self, operation: O, f: impl FnOnce(&O) -> R) -> &R {
        let Invocation(index) = self.invoke(operation);
        let output = f(&self.calls[index].operation);
        let ended = ticks();
        let (_, output) = self.calls[index].answer.insert((ended, output));
        output
    }

    /// Notes that an operation begins now. For calls that do not return where they begin
    /// (callbacks, futures). Several may be in flight.
    ///
    /// ```
    /// use corelay_history::Recorder;
    ///
    /// let mut recorder = Recorder::new();
    /// let first = recorder.invoke("first");
    /// let second = recorder.invoke("second");
    /// recorder.respond(second, 2);
    /// recorder.respond(first, 1);
    /// # let history: corelay_history::History<_, _> = [recorder].into_iter().collect();
    /// # assert!(history.calls().all(|(_, call)| call.output().is_some()));
    /// ```
    #[must_use = "a call that is never responded to stays pending"]
    pub fn invoke(&mut self, operation: O) -> Invocation {
        // Room first, so that nothing is allocated between stamp and operation.
        self.calls.reserve(1);
        self.calls.push(Call {
            operation,
            invoked: ticks(),
            answer: None,
        });
        Invocation(self.calls.len() - 1)
    }

    /// Notes that a call has now returned `output`.
    ///
    /// # Panics
    /// If the invocation is not one of this recorder's; that is not always noticed.
    pub fn respond(&mut self, invocation: Invocation, output: R) {
        self.end(invocation, ticks(), output);
    }

    fn end(&mut self, Invocation(index): Invocation, at: u64, output: R) {
        let last = self.calls.last().map(Call::invoked);
        let is_last = index + 1 == self.calls.len();
        let ended = if !is_last && last == Some(at) {
            // At this stamp a later call was invoked, while this one was under way.
            at + 1
        } else {
            at
        };
        let call = self.calls.get_mut(index).filter(|c| c.answer.is_none());
        let call = call.expect("respond to an invocation of the same recorder");
        call.answer = Some((ended, output));
    }

    /// The operation of a call that is under way.
    pub(crate) fn operation(&mut self, Invocation(index): &Invocation) -> &mut O {
        &mut self.calls[*index].operation
    }

    /// Notes another call as invoked when `first` was.
    pub(crate) fn invoke_with(
        &mut self,
        Invocation(first): &Invocation,
        operation: O,
    ) -> Invocation {
        let invoked = self.calls[*first].invoked;
        self.calls.push(Call::pending(operation, invoked));
        Invocation(self.calls.len() - 1)
    }

    pub(crate) fn into_calls(self) -> Vec<Call<O, R>> {
        CachePadded::into_inner(self.calls)
    }
}

impl<O, R> Default for Recorder<O, R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<O, R> fmt::Debug for Recorder<O, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder")
            .field("calls", &self.calls.len())
            .finish_non_exhaustive()
    }
}

/// A call that has begun, for [`Recorder::respond`].
#[derive(Debug)]
pub struct Invocation(usize);

#[cfg(test)]
mod tests {
    use super::*;

    /// A counter so coarse that everything happens at once.
    #[test]
    fn calls_that_overlap_within_a_thread_do_so_at_equal_stamps() {
        let at = 7;
        let mut recorder = Recorder::new();
        for operation in ["a", "b"] {
            recorder.calls.push(Call::pending(operation, at));
        }
        recorder.end(Invocation(0), at, ());
        recorder.end(Invocation(1), at, ());
        // `a` returned after `b` was invoked; after `b` nothing was.
        assert_eq!(recorder.calls[0].ended(), Some(at + 1));
        assert_eq!(recorder.calls[1].ended(), Some(at));
    }
}
