//! A coroutine scheduler of one thread, small enough to be seen through: what a fibre
//! runtime does with the waiting seam, without the runtime.

use corelay_sync::wait::{
    Context, Running, Sleeper, Stop, Task, Token, Yielder, enter, poll_sources,
};
use corosensei::{Coroutine, CoroutineResult};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::rc::Rc;

/// Boxed, so that it has an address to be known by; with its yielder, once it has run.
type Body = (Box<Coroutine<(), Stop, ()>>, Option<NonNull<Yielder>>);

/// Runs coroutines in turn; one that waits is left out until that is over.
#[derive(Default)]
pub(crate) struct Toy {
    ready: RefCell<VecDeque<Body>>,
    stopped: RefCell<Vec<Body>>,
    /// Of some of them: what they wait for.
    tokens: RefCell<Vec<(*const Token, NonNull<()>)>>,
    running: Cell<Option<Running>>,
    /// Times that a coroutine was suspended.
    pub(crate) suspensions: Cell<u64>,
}

impl Toy {
    pub(crate) fn new() -> Rc<Self> {
        Rc::default()
    }

    /// Adds a coroutine.
    pub(crate) fn add(&self, task: impl FnOnce() + 'static) {
        let toy = std::ptr::from_ref(self);
        let body = Coroutine::new(move |yielder: &Yielder, ()| {
            // Each says by what it stops.
            // SAFETY: coroutines run inside `Toy::run` alone.
            let running = unsafe { &(*toy).running };
            running.set(running.get().map(|running| Running {
                yielder: NonNull::from(yielder),
                ..running
            }));
            task();
        });
        self.ready.borrow_mut().push_back((Box::new(body), None));
    }

    /// Runs until every coroutine has ended.
    pub(crate) fn run(&self) {
        let sleeper = Sleeper::current();
        enter(self, || {
            loop {
                let next = self.ready.borrow_mut().pop_front();
                if let Some(body) = next {
                    self.resume(body);
                } else if self.stopped.borrow().is_empty() {
                    return;
                } else if !self.collect() {
                    sleeper.sleep(None, || self.collect());
                }
            }
        });
    }

    fn resume(&self, (mut body, yielder): Body) {
        let who = NonNull::from(&mut *body).cast();
        self.running.set(Some(Running {
            yielder: yielder.unwrap_or(NonNull::dangling()),
            who,
        }));
        let stop = body.resume(());
        let running = self.running.take().expect("it ran");
        if let CoroutineResult::Yield(stop) = stop {
            self.suspensions.set(self.suspensions.get() + 1);
            self.stopped
                .borrow_mut()
                .push((body, Some(running.yielder)));
            // SAFETY: ours; it has stopped.
            unsafe { stop.run(std::ptr::from_ref(self).cast(), who) };
        }
    }

    /// Polls the sources and makes those ready whose token is set.
    fn collect(&self) -> bool {
        poll_sources();
        self.tokens.borrow_mut().retain(|&(token, who)| {
            // SAFETY: the coroutine that waits keeps its token.
            let is_set = unsafe { &*token }.is_set();
            if is_set {
                self.make_ready(who);
            }
            !is_set
        });
        !self.ready.borrow().is_empty()
    }

    fn make_ready(&self, who: NonNull<()>) {
        let mut stopped = self.stopped.borrow_mut();
        let at = stopped
            .iter()
            .position(|(body, _)| NonNull::from(&**body).cast() == who)
            .expect("it has stopped");
        self.ready.borrow_mut().push_back(stopped.swap_remove(at));
    }
}

// SAFETY: `run` ends when all coroutines have, and makes none ready but whose token or spot is
// set; `running` is what `resume` and the coroutine itself say.
unsafe impl Context for Toy {
    fn wait(&self, token: &Token) {
        // SAFETY: this coroutine is the one waiter, and resumes only when the token is set.
        if !unsafe { token.subscribe(Sleeper::current().waker()) } {
            return;
        }
        let running = self.running.get().expect("a coroutine runs");
        let token = std::ptr::from_ref(token);
        let mut after = ManuallyDrop::new(move |toy: *const (), who| {
            // SAFETY: as `resume` passes it.
            let toy = unsafe { &*toy.cast::<Self>() };
            toy.tokens.borrow_mut().push((token, who));
        });
        // SAFETY: it stays in this frame, and does not unwind.
        let stop = unsafe { Stop::new(&mut after) };
        // SAFETY: the yielder of the coroutine that runs, which is the one that calls.
        unsafe { running.yielder.as_ref() }.suspend(stop);
    }

    fn running(&self) -> Option<Running> {
        self.running.get()
    }

    unsafe fn go_on(&self, who: NonNull<()>) {
        self.make_ready(who);
    }

    fn spawn(&self, task: Task) -> Result<(), Task> {
        self.add(task);
        Ok(())
    }
}
