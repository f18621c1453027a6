//! The agenda: the order in which threads go on.
//!
//! In each step, threads whose lines arrive go first (a line's former owner has it no more), then
//! the others; among equals the one that came first.

#![forbid(unsafe_code)]

use std::collections::VecDeque;

/// Threads by the step at which they go on.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    /// The step at the front of `steps`.
    now: u64,
    steps: VecDeque<Step>,
}

#[derive(Debug, Default)]
struct Step {
    arrivals: VecDeque<usize>,
    others: VecDeque<usize>,
}

/// The reason why a thread goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// The line that it waits for has arrived.
    Arrival,
    /// The thread's pause is over, it was woken, or it begins.
    Other,
}

impl Agenda {
    /// Whether a thread that is entered now would be the next to go on.
    pub(crate) fn is_first(&self, clock: u64, why: Why) -> bool {
        let at = clock.saturating_sub(self.now) as usize;
        let mut before = self.steps.iter().take(at);
        before.all(|step| step.arrivals.is_empty() && step.others.is_empty())
            && self.steps.get(at).is_none_or(|step| {
                step.arrivals.is_empty() && (why == Why::Arrival || step.others.is_empty())
            })
    }

    /// Enters `thread` for the step `clock`, or for the present step if that one is over.
    pub(crate) fn enter(&mut self, clock: u64, why: Why, thread: usize) {
        let at = clock.saturating_sub(self.now) as usize;
        if self.steps.len() <= at {
            self.steps.resize_with(at + 1, Step::default);
        }
        match why {
            Why::Arrival => self.steps[at].arrivals.push_back(thread),
            Why::Other => self.steps[at].others.push_back(thread),
        }
    }

    /// Takes the next thread; `None` if no thread is ready.
    pub(crate) fn next(&mut self) -> Option<usize> {
        loop {
            let step = self.steps.front_mut()?;
            let next = step
                .arrivals
                .pop_front()
                .or_else(|| step.others.pop_front());
            if next.is_some() {
                return next;
            }
            self.steps.pop_front();
            self.now += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_then_arrivals_then_turns() {
        let mut agenda = Agenda::default();
        agenda.enter(2, Why::Other, 1);
        agenda.enter(1, Why::Other, 2);
        agenda.enter(1, Why::Other, 3);
        agenda.enter(1, Why::Arrival, 4);
        assert!(agenda.is_first(0, Why::Other));
        assert!(!agenda.is_first(1, Why::Arrival));
        assert_eq!(agenda.next(), Some(4));
        assert!(agenda.is_first(1, Why::Arrival) && !agenda.is_first(1, Why::Other));
        // A step that is over counts as the present one.
        agenda.enter(0, Why::Other, 5);
        assert_eq!([(); 4].map(|()| agenda.next()), [2, 3, 5, 1].map(Some));
        assert_eq!(agenda.next(), None);
    }
}
