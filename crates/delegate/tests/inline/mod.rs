//! A host for models, whose checkers know no switch of stacks. A task that it spawns runs in one
//! go, on the stack of the body, when that gives a turn. So such a closure must not wait.
//! Everything else of a launch is as shipped: the object is held in between, and requests to it are
//! deferred.

use corelay_sync::wait::{Call, Cancelled, Context, CoroutineState, Host, Task, Token, enter};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ptr::NonNull;

struct Inline {
    tasks: RefCell<VecDeque<Task>>,
    /// The state of every task.
    state: CoroutineState,
    is_running: Cell<bool>,
    has_waited: Cell<bool>,
}

/// The host of such tasks.
pub(crate) fn host() -> Host {
    // SAFETY: no task is suspended, so none goes on elsewhere.
    unsafe { Host::new(run) }
}

fn run(body: Task, _: Option<usize>) {
    /// Does nothing.
    ///
    /// # Safety
    /// None: no task is suspended.
    unsafe fn go_on(_: NonNull<CoroutineState>) {
        unreachable!("no task of a model waits");
    }
    let inline = Inline {
        tasks: RefCell::default(),
        // SAFETY: no task is suspended, so `go_on` is never needed.
        state: unsafe { CoroutineState::new(go_on) },
        is_running: Cell::new(false),
        has_waited: Cell::new(false),
    };
    // SAFETY: this is a model's thread, which nothing suspends.
    unsafe { enter(&inline, body) };
    assert!(inline.tasks.into_inner().is_empty(), "a closure was left");
}

// SAFETY: no task is suspended, so each keeps its thread.
unsafe impl Context for Inline {
    fn wait(&self, _: Call, _: &Token) -> Result<(), Cancelled> {
        unreachable!("no task of a model waits");
    }

    fn running(&self) -> Option<NonNull<CoroutineState>> {
        self.is_running.get().then(|| NonNull::from(&self.state))
    }

    fn spawn(&self, task: Task) -> Result<(), Task> {
        self.tasks.borrow_mut().push_back(task);
        Ok(())
    }

    fn give_turn(&self) -> bool {
        // Runs tasks at its second turn: the body goes on in between, as while a closure waits.
        if self.tasks.borrow().is_empty() || self.has_waited.replace(!self.has_waited.get()) {
            let task = self.tasks.borrow_mut().pop_front();
            return task.is_some_and(|task| self.run(task));
        }
        true
    }

    fn has_ready(&self) -> bool {
        !self.tasks.borrow().is_empty()
    }
}

impl Inline {
    fn run(&self, task: Task) -> bool {
        self.is_running.set(true);
        task();
        self.is_running.set(false);
        true
    }
}
