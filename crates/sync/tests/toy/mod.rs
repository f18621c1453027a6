//! A coroutine scheduler of one thread, small enough to be seen through: what a fibre
//! runtime does with the waiting seam, without the runtime.

use corelay_sync::wait::{Context, Sleeper, Task, Token, enter, poll_sources};
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

type Body = Coroutine<(), *const Token, ()>;

/// Runs coroutines in turn; one that waits is left out until its token is set.
#[derive(Default)]
pub(crate) struct Toy {
    ready: RefCell<VecDeque<Body>>,
    waiting: RefCell<Vec<(*const Token, Body)>>,
    running: Cell<Option<*const Yielder<(), *const Token>>>,
    /// Times that a coroutine was suspended.
    pub(crate) suspensions: Cell<u64>,
}

impl Toy {
    pub(crate) fn new() -> Rc<Self> {
        Rc::default()
    }

    /// Adds a coroutine.
    pub(crate) fn add(self: &Rc<Self>, task: impl FnOnce() + 'static) {
        let toy = Rc::downgrade(self);
        self.ready
            .borrow_mut()
            .push_back(Coroutine::new(move |yielder, ()| {
                // The scheduler asks for the yielder of whoever runs.
                toy.upgrade()
                    .expect("it runs us")
                    .running
                    .set(Some(yielder));
                task();
            }));
    }

    /// Runs until every coroutine has ended.
    pub(crate) fn run(self: &Rc<Self>) {
        let sleeper = Sleeper::current();
        enter(&**self, || {
            loop {
                let next = self.ready.borrow_mut().pop_front();
                if let Some(mut body) = next {
                    match body.resume(()) {
                        CoroutineResult::Return(()) => {}
                        CoroutineResult::Yield(token) => {
                            self.waiting.borrow_mut().push((token, body));
                        }
                    }
                } else if self.waiting.borrow().is_empty() {
                    return;
                } else if !self.collect() {
                    sleeper.sleep(None, || self.collect());
                }
            }
        });
    }

    /// Polls the sources and makes those ready whose token is set.
    fn collect(&self) -> bool {
        poll_sources();
        let mut waiting = self.waiting.borrow_mut();
        let mut i = 0;
        while i < waiting.len() {
            // SAFETY: the coroutine that waits keeps its token.
            if unsafe { &*waiting[i].0 }.is_set() {
                let (_, body) = waiting.swap_remove(i);
                self.ready.borrow_mut().push_back(body);
            } else {
                i += 1;
            }
        }
        !self.ready.borrow().is_empty()
    }
}

impl Context for Toy {
    fn wait(&self, token: &Token) {
        // SAFETY: this coroutine is the one waiter, and resumes only when the token is set.
        if !unsafe { token.subscribe(Sleeper::current().waker()) } {
            return;
        }
        self.suspensions.set(self.suspensions.get() + 1);
        let yielder = self.running.get().expect("a coroutine runs");
        // SAFETY: the yielder of the coroutine that runs, which is the one that calls.
        unsafe { &*yielder }.suspend(token);
        self.running.set(Some(yielder));
    }

    fn spawn(&self, task: Task) -> Result<(), Task> {
        self.ready
            .borrow_mut()
            .push_back(Coroutine::new(move |_, ()| task()));
        Ok(())
    }
}
