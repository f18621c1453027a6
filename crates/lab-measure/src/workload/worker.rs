//! Workers: clients that use their answers.
//!
//! The client of most workloads asks again and again, and only sums its answers up. A *worker*
//! asks for work, does it itself, and reports: its next request depends on the answers. It ends by
//! itself when there is no work left.
//!
//! A worker is written once and runs by every method. One whose calls wait has one request at a
//! time ([`Client::call_each`]); one whose answers come later has as many in flight as the worker
//! asks for (`issue_each`).

use crate::workload::operation::Workload;
use crate::workload::random::Client;
use corelay_sync::Backoff;
use std::cell::RefCell;

/// A request of a worker.
#[derive(Clone, Copy, Debug)]
pub struct Ask<O> {
    /// The variable that the request is to.
    pub var: usize,
    /// The operation.
    pub operation: O,
    /// Whether the worker needs the answer. A method that can do without answers then does.
    pub needs_answer: bool,
}

/// A client that uses its answers.
pub trait Worker<O>: Send {
    /// The next request; `None` if the worker has nothing to ask before it gets an answer or has
    /// worked.
    fn ask(&mut self) -> Option<Ask<O>>;

    /// Takes the answer of a request. Answers may come in any order, and those that the worker
    /// does not need may be left out.
    fn answered(&mut self, answer: u64);

    /// Does a piece of work. Returns false if there is none at hand.
    fn work(&mut self) -> bool;
}

/// The worker that a client is, if it is one.
pub type AnyWorker<O> = Option<Box<dyn Worker<O>>>;

impl Client {
    /// Runs the client by `call`, which makes a request to a variable and waits for its answer.
    /// Returns the number of requests.
    #[inline]
    pub fn call_each<W: Workload>(
        self,
        workload: W,
        mut call: impl FnMut(usize, W::Operation) -> u64,
    ) -> u64 {
        if let Some(mut worker) = workload.worker(&self) {
            return call_each(&mut *worker, |ask| call(ask.var, ask.operation));
        }
        let mut next = self.requests(workload);
        self.drive(|choice| {
            let (var, operation) = next(choice);
            call(var, operation)
        })
    }
}

/// Runs a worker to its end by `call`, which waits for the answer if the worker needs it. Returns
/// the number of requests.
pub(crate) fn call_each<O>(worker: &mut dyn Worker<O>, mut call: impl FnMut(Ask<O>) -> u64) -> u64 {
    let mut asked = 0;
    loop {
        let ask = worker.ask();
        let is_idle = ask.is_none();
        if let Some(ask) = ask {
            asked += 1;
            let needs_answer = ask.needs_answer;
            let answer = call(ask);
            if needs_answer {
                worker.answered(answer);
            }
        }
        // Between two requests, so that a worker with one call at a time never hoards work.
        if !worker.work() && is_idle {
            return asked;
        }
    }
}

thread_local! {
    /// The answers that callbacks of this thread have got for its worker.
    static ANSWERS: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// The callback of a worker's request: keeps the answer until the worker takes it.
#[inline]
pub(crate) fn keep(answer: u64) {
    ANSWERS.with_borrow_mut(|answers| answers.push(answer));
}

/// Runs a worker to its end by `step`, which issues a request or, without one, looks for answers;
/// each answer comes to [`keep`] on this thread. Returns the number of requests.
pub(crate) fn issue_each<O>(
    worker: &mut dyn Worker<O>,
    mut step: impl FnMut(Option<Ask<O>>),
) -> u64 {
    let (mut asked, mut answered) = (0, 0);
    let (mut answers, mut backoff) = (Vec::new(), Backoff::new());
    // Those of a worker that has panicked on this thread.
    ANSWERS.with_borrow_mut(Vec::clear);
    loop {
        while let Some(ask) = worker.ask() {
            asked += 1;
            step(Some(ask));
        }
        let is_all_answered = asked == answered;
        step(None);
        ANSWERS.with_borrow_mut(|kept| std::mem::swap(kept, &mut answers));
        for answer in answers.drain(..) {
            answered += 1;
            worker.answered(answer);
        }
        match worker.work() {
            true => backoff = Backoff::new(),
            false if is_all_answered => return asked,
            false => backoff.wait(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// Asks for the numbers below its limit, and adds up those that it gets, three ahead.
    struct Adder {
        limit: u64,
        next: u64,
        in_flight: u64,
        held: Vec<u64>,
        sum: u64,
    }

    impl Worker<u64> for Adder {
        fn ask(&mut self) -> Option<Ask<u64>> {
            if self.next == self.limit || self.in_flight + self.held.len() as u64 == 3 {
                return None;
            }
            self.in_flight += 1;
            self.next += 1;
            Some(Ask {
                var: 0,
                operation: self.next - 1,
                needs_answer: true,
            })
        }

        fn answered(&mut self, answer: u64) {
            self.in_flight -= 1;
            self.held.push(answer);
        }

        fn work(&mut self) -> bool {
            let held = self.held.pop();
            self.sum += held.unwrap_or(0);
            held.is_some()
        }
    }

    fn adder(limit: u64) -> Adder {
        Adder {
            limit,
            next: 0,
            in_flight: 0,
            held: Vec::new(),
            sum: 0,
        }
    }

    #[test]
    fn worker_gets_every_answer_before_it_ends() {
        for limit in [0, 1, 2, 3, 100_u64] {
            let sum = limit * limit.saturating_sub(1) / 2;
            let mut worker = adder(limit);
            assert_eq!(call_each(&mut worker, |ask| ask.operation), limit);
            assert_eq!(worker.sum, sum);

            // Each look finds one answer at most, and an answer needs a look to get ready.
            let (mut worker, mut line) = (adder(limit), VecDeque::new());
            let mut most = 0;
            let asked = issue_each(&mut worker, |ask| match ask {
                Some(ask) => {
                    line.push_back((ask.operation, 1));
                    most = most.max(line.len());
                }
                None => {
                    if let Some((_, looks)) = line.front_mut()
                        && *looks > 0
                    {
                        *looks -= 1;
                    } else if let Some((answer, _)) = line.pop_front() {
                        keep(answer);
                    }
                }
            });
            assert_eq!((asked, worker.sum), (limit, sum));
            assert_eq!(most as u64, limit.min(3));
        }
    }
}
