//! A coroutine scheduler of one thread, small enough to be seen through: what a fibre
//! runtime does with the waiting seam, without the runtime.

use corelay_sync::wait::{
    Call, Cancelled, Context, CoroutineState, Errand, Host, Sleeper, Stop, Task, Token, Yielder,
    enter, poll_sources,
};
use corosensei::stack::{DefaultStack, Stack};
use corosensei::{Coroutine, CoroutineResult};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::rc::Rc;

/// A coroutine; begins with its stand, by which it is known.
#[repr(C)]
struct Body {
    stand: CoroutineState,
    toy: *const Toy,
    /// Bottom and size.
    stack: (usize, usize),
    coroutine: RefCell<Coroutine<(), Stop, ()>>,
}

/// The host that runs a body as a coroutine of a toy of its own.
#[allow(dead_code, reason = "not every test has a host")]
pub(crate) fn host() -> Host {
    // SAFETY: the tests wait nowhere inside a thread-local's initialiser, destructor or scope.
    unsafe { Host::new(run) }
}

fn run(body: Task, stack: Option<usize>) {
    let toy = Toy::new();
    toy.stack.set(stack);
    toy.add(body);
    toy.run();
}

/// Runs coroutines in turn; one that waits is left out until that is over.
#[derive(Default)]
pub(crate) struct Toy {
    ready: RefCell<VecDeque<Rc<Body>>>,
    stopped: RefCell<Vec<Rc<Body>>>,
    /// Of some of them: what they wait for.
    tokens: RefCell<Vec<(*const Token, NonNull<CoroutineState>)>>,
    running: Cell<Option<NonNull<CoroutineState>>>,
    /// Bytes of each.
    stack: Cell<Option<usize>>,
    /// Times that a coroutine was suspended.
    pub(crate) suspensions: Cell<u64>,
}

impl Toy {
    pub(crate) fn new() -> Rc<Self> {
        Rc::default()
    }

    /// Adds a coroutine.
    pub(crate) fn add(&self, task: impl FnOnce() + 'static) {
        /// # Safety
        /// As [`CoroutineState::new`] says.
        unsafe fn go_on(stand: NonNull<CoroutineState>) {
            // SAFETY: a body begins with its stand, and lives.
            let toy = unsafe { stand.cast::<Body>().as_ref() }.toy;
            // SAFETY: coroutines wait inside `Toy::run` alone.
            unsafe { &*toy }.make_ready(stand);
        }
        let toy = std::ptr::from_ref(self);
        let room = match self.stack.get() {
            Some(bytes) => DefaultStack::new(bytes).expect("there is memory"),
            None => DefaultStack::default(),
        };
        let bottom = room.limit().get();
        let stack = (bottom, room.base().get() - bottom);
        // SAFETY: of `room`, which nobody has used.
        unsafe { CoroutineState::prepare(stack) };
        let coroutine = Coroutine::with_stack(room, move |yielder: &Yielder, ()| {
            // SAFETY: coroutines run inside `Toy::run` alone.
            let stand = unsafe { &*toy }.running.get().expect("it runs");
            // SAFETY: the body lives while it runs.
            let stand = unsafe { stand.as_ref() };
            // SAFETY: its own.
            unsafe { stand.begin(yielder) };
            task();
            // SAFETY: the last thing that it does.
            unsafe { stand.end() };
        });
        self.ready.borrow_mut().push_back(Rc::new(Body {
            // SAFETY: it makes ready this one, which has stopped.
            stand: unsafe { CoroutineState::new(go_on) },
            toy,
            stack,
            coroutine: RefCell::new(coroutine),
        }));
    }

    /// Runs until every coroutine has ended.
    pub(crate) fn run(&self) {
        let sleeper = Sleeper::current();
        let turns = || {
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
        };
        // SAFETY: tests run it on a thread, which nothing suspends.
        unsafe { enter(self, turns) };
    }

    fn resume(&self, body: Rc<Body>) {
        let who = NonNull::from(&*body).cast::<CoroutineState>();
        self.running.set(Some(who));
        let resume = || body.coroutine.borrow_mut().resume(());
        // SAFETY: it was ready, so it has stopped or not run yet.
        let stop = unsafe { body.stand.during(body.stack, resume) };
        self.running.set(None);
        match stop {
            // SAFETY: just now.
            CoroutineResult::Return(()) => unsafe { body.stand.ended() },
            CoroutineResult::Yield(stop) => {
                self.suspensions.set(self.suspensions.get() + 1);
                self.stopped.borrow_mut().push(body);
                // SAFETY: ours; it has stopped.
                unsafe { stop.run(std::ptr::from_ref(self).cast(), who.cast()) };
            }
        }
    }

    /// Stops the coroutine that runs; `after` must not panic.
    fn stop_here(&self, after: impl FnOnce(&Self, NonNull<CoroutineState>)) {
        let running = self.running.get().expect("a coroutine runs");
        let mut after = Errand::new(move |toy: *const (), who: NonNull<()>| {
            // SAFETY: as `resume` passes it.
            after(unsafe { &*toy.cast::<Self>() }, who.cast());
        });
        // SAFETY: it stays in this frame, and does not unwind.
        let stop = unsafe { Stop::new(&mut after) };
        // SAFETY: it lives.
        let running = unsafe { running.as_ref() };
        // SAFETY: it runs, and calls this.
        unsafe { running.stop(stop) };
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

    fn make_ready(&self, who: NonNull<CoroutineState>) {
        let mut stopped = self.stopped.borrow_mut();
        let at = stopped
            .iter()
            .position(|body| NonNull::from(&**body).cast() == who)
            .expect("it has stopped");
        self.ready.borrow_mut().push_back(stopped.swap_remove(at));
    }
}

// SAFETY: `resume` says who runs; `make_ready` alone makes one ready that has stopped, by `go_on` or
// by its token.
unsafe impl Context for Toy {
    fn wait(&self, _: Call, token: &Token) -> Result<(), Cancelled> {
        if token.subscribe(Sleeper::current().waker()) {
            let token = std::ptr::from_ref(token);
            self.stop_here(move |toy, who| toy.tokens.borrow_mut().push((token, who)));
        }
        Ok(())
    }

    fn running(&self) -> Option<NonNull<CoroutineState>> {
        self.running.get()
    }

    fn spawn(&self, task: Task) -> Result<(), Task> {
        self.add(task);
        Ok(())
    }

    fn give_turn(&self) -> bool {
        self.collect() && {
            self.stop_here(|toy, who| toy.make_ready(who));
            true
        }
    }

    fn has_ready(&self) -> bool {
        self.collect()
    }
}
