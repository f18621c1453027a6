//! Deadlines of a cluster.
//!
//! In a map, by time, behind a mutex; the [clockwork](crate::clockwork) sleeps until the first.

use crate::fibre::Fibre;
use crate::switch;
use crate::wait::{self, Interrupted, block};
use crate::waiter::Waiter;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

#[derive(Default)]
pub(crate) struct Timers(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    due: BTreeMap<(Instant, u64), Due>,
    numbers: u64,
}

/// What is to be done.
enum Due {
    /// Wake one that only sleeps.
    Wake(Waiter),
    /// End the wait with this deadline.
    TimeOut(Fibre),
}

impl Timers {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        // Entries come and go whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of a new deadline, never 0.
    pub(crate) fn number(&self) -> u64 {
        let mut queue = self.lock();
        queue.numbers += 1;
        queue.numbers
    }

    /// Adds the deadline with this number. The wait that it ends can be found by then: otherwise
    /// one that comes at once is lost.
    pub(crate) fn add(&self, at: Instant, number: u64, fibre: Fibre) {
        self.lock().due.insert((at, number), Due::TimeOut(fibre));
    }

    /// It has not come, or nobody is interested any more.
    pub(crate) fn remove(&self, at: Instant, number: u64) {
        let due = self.lock().due.remove(&(at, number));
        drop(due);
    }

    /// When the first is.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.lock().due.keys().next().map(|(at, _)| *at)
    }

    /// Does what is due.
    pub(crate) fn run(&self) {
        loop {
            let now = Instant::now();
            let mut queue = self.lock();
            let Some(first) = queue.due.first_entry().filter(|first| first.key().0 <= now) else {
                return;
            };
            let ((_, number), due) = first.remove_entry();
            drop(queue);
            match due {
                Due::Wake(waiter) => waiter.wake(),
                Due::TimeOut(fibre) => wait::time_out(&fibre.0, number),
            }
        }
    }
}

/// Waits until `until`.
#[track_caller]
pub(crate) fn sleep(until: Instant) -> Result<(), Interrupted> {
    let Some(running) = switch::may_stop("sleep") else {
        std::thread::sleep(until.saturating_duration_since(Instant::now()));
        return Ok(());
    };
    let shared = running.shared();
    let timers = &shared.timers;
    // Written before the wait is published, read by who meddles behind that.
    let number = Cell::new(0);
    let remove = |_| match timers.lock().due.remove(&(until, number.get())) {
        Some(Due::Wake(waiter)) => Some(waiter),
        _ => None,
    };
    block("sleep", &remove, |waiter| {
        let mut queue = timers.lock();
        queue.numbers += 1;
        number.set(queue.numbers);
        let at = (until, queue.numbers);
        queue.due.insert(at, Due::Wake(waiter));
        let is_first = queue.due.keys().next() == Some(&at);
        drop(queue);
        if is_first {
            shared.clockwork.wake_if_asleep();
        }
        None
    })
}
