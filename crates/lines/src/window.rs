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
    /// The number of entries that the object begins with.
    size: u32,
    /// The number of operations to be counted, of all clients together.
    wanted: u64,
    /// The number of operations that all clients together make before counting begins.
    warm_up: u64,
    /// The number of operations that all clients together have made so far.
    done: Cell<u64>,
    /// The number of operations that each client has made so far.
    made: RefCell<Vec<u64>>,
    /// The number of operations that each client had made when counting began.
    before: RefCell<Vec<u64>>,
    /// The counts and their distribution, once all operations are counted.
    result: RefCell<Option<(Vec<Counts>, Fair)>>,
    /// The number of operations that clients were told to make, and so of those that the object
    /// has served at the end.
    asked: Cell<u64>,
}

/// The distribution of the counted operations among the clients: all of them, the fewest and the
/// most that one client made.
#[derive(Clone, Copy)]
pub(crate) struct Fair {
    pub(crate) total: u64,
    pub(crate) fewest: u64,
    pub(crate) most: u64,
}

impl Window {
    /// `operations` are those of each client, and `warm_up` those of all together.
    pub(crate) fn new(clients: usize, size: u32, operations: u64, warm_up: u64) -> Rc<Self> {
        Rc::new(Self {
            clients,
            size,
            wanted: clients as u64 * operations,
            warm_up,
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

    /// The number of entries that the object begins with.
    pub(crate) fn size(&self) -> u32 {
        self.size
    }

    /// Tells a client whether to make another operation: a client calls this before each one.
    /// Pauses a step. Returns false if all operations have been counted.
    pub(crate) fn ask(&self) -> bool {
        pause();
        let goes_on = self.result.borrow().is_none();
        self.asked.set(self.asked.get() + u64::from(goes_on));
        goes_on
    }

    /// Notes that an operation of `client` is done. Begins to count after the warm-up, and ends
    /// after the last operation that is wanted.
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

    /// Checks the number of operations that the object has `served`, after everything is over.
    ///
    /// # Panics
    /// If clients were told to make another number of operations.
    pub(crate) fn check(&self, served: u64) {
        assert_eq!(served, self.asked.get(), "operations asked for, and made");
    }

    /// Takes the counts of the window, and the distribution of operations.
    ///
    /// # Panics
    /// If not all operations have been counted.
    pub(crate) fn result(&self) -> (Vec<Counts>, Fair) {
        self.result
            .take()
            .expect("clients go on until all is counted")
    }
}
