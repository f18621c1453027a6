//! The window of a run in which operations are counted, and the check of the answers.

use corelay_coherence::{Counts, counts, pause, restart_counts};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The shared state of a run's clients. None of it is reported to the machine.
///
/// Counting begins when all clients together have made the first operations, and ends when they
/// have made as many as are wanted. Meanwhile all of them go on: an unfair lock gives some of them
/// more than others, and may give one of them none.
pub(crate) struct Window {
    clients: usize,
    /// The number of operations to be counted.
    wanted: u64,
    /// The number of operations before that.
    warm_up: u64,
    done: Cell<u64>,
    /// The number of operations of each client.
    made: RefCell<Vec<u64>>,
    /// The same when counting began.
    before: RefCell<Vec<u64>>,
    result: RefCell<Option<(Vec<Counts>, Fair)>>,
    /// The expected value of the object at the end.
    asked: Cell<u64>,
}

/// The distribution of operations among the clients: the fewest and the most.
#[derive(Clone, Copy)]
pub(crate) struct Fair {
    pub(crate) total: u64,
    pub(crate) fewest: u64,
    pub(crate) most: u64,
}

impl Window {
    pub(crate) fn new(clients: usize, operations: u64, warm_up: u64) -> Rc<Self> {
        Rc::new(Self {
            clients,
            wanted: clients as u64 * operations,
            warm_up: clients as u64 * warm_up,
            done: Cell::new(0),
            made: RefCell::new(vec![0; clients]),
            before: RefCell::default(),
            result: RefCell::default(),
            asked: Cell::new(0),
        })
    }

    pub(crate) fn clients(&self) -> usize {
        self.clients
    }

    /// Pauses a step and asks for another operation of a client. Returns false if no more are
    /// needed.
    pub(crate) fn ask(&self) -> bool {
        pause();
        let goes_on = self.result.borrow().is_none();
        self.asked.set(self.asked.get() + u64::from(goes_on));
        goes_on
    }

    /// Notes that an operation of `client` is done.
    pub(crate) fn done(&self, client: usize) {
        self.made.borrow_mut()[client] += 1;
        let done = self.done.get() + 1;
        self.done.set(done);
        if done == self.warm_up {
            *self.before.borrow_mut() = self.made.borrow().clone();
            restart_counts();
        } else if done == self.warm_up + self.wanted {
            let (made, before) = (self.made.borrow(), self.before.borrow());
            let own = || made.iter().zip(before.iter()).map(|(now, then)| now - then);
            let fair = Fair {
                total: self.wanted,
                fewest: own().min().unwrap_or(0),
                most: own().max().unwrap_or(0),
            };
            *self.result.borrow_mut() = Some((counts(), fair));
        }
    }

    /// Checks the object's `value` after everything is over.
    pub(crate) fn check(&self, value: u64) {
        assert_eq!(value, self.asked.get(), "additions asked for, and made");
    }

    /// The counts of the window, and the distribution of operations.
    pub(crate) fn result(&self) -> (Vec<Counts>, Fair) {
        self.result
            .take()
            .expect("clients go on until all is counted")
    }
}

thread_local! {
    /// Steps that an operation takes. The operation does not capture it: its size is part of what
    /// is counted.
    static WORK: Cell<u64> = const { Cell::new(1) };
}

/// Sets how many steps an operation takes.
pub(crate) fn set_work(steps: u64) {
    WORK.set(steps);
}

/// The operation of every method on the number. The method decides which thread runs it. It takes
/// its steps, so that others find it under way.
pub(crate) fn add(number: &mut u64) -> u64 {
    (0..WORK.get()).for_each(|_| pause());
    *number += 1;
    *number
}
