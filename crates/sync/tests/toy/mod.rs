//! A coroutine scheduler of one thread, small enough to read at once. It uses the waiting seam as a
//! fibre runtime does, without the runtime.

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

/// A coroutine. It begins with its state, whose address identifies it.
#[repr(C)]
struct Body {
    stand: CoroutineState,
    toy: *const Toy,
    /// The stack's bottom and size.
    stack: (usize, usize),
    coroutine: RefCell<Coroutine<(), Stop, ()>>,
}

/// A host that runs a body as a coroutine of a new toy scheduler.
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

/// A scheduler that runs coroutines in turn, and leaves out those that wait.
#[derive(Default)]
pub(crate) struct Toy {
    ready: RefCell<VecDeque<Rc<Body>>>,
    stopped: RefCell<Vec<Rc<Body>>>,
    /// The tokens that coroutines wait for.
    tokens: RefCell<Vec<(*const Token, NonNull<CoroutineState>)>>,
    running: Cell<Option<NonNull<CoroutineState>>>,
    /// The bytes of each stack.
    stack: Cell<Option<usize>>,
    /// How many times a coroutine was suspended.
    pub(crate) suspensions: Cell<u64>,
}

impl Toy {
    pub(crate) fn new() -> Rc<Self> {
        Rc::default()
    }

    /// Adds a coroutine.
    pub(crate) fn add(&self, task: impl FnOnce() + 'static) {
        /// # Safety
        /// The conditions that [`CoroutineState::new`] names for `go_on`.
        unsafe fn go_on(stand: NonNull<CoroutineState>) {
            // SAFETY: a body begins with its state, and lives while it has not ended.
            let toy = unsafe { stand.cast::<Body>().as_ref() }.toy;
            // SAFETY: coroutines wait only inside `Toy::run`, which keeps the toy.
            unsafe { &*toy }.make_ready(stand);
        }
        let toy = std::ptr::from_ref(self);
        let room = match self.stack.get() {
            Some(bytes) => DefaultStack::new(bytes).expect("there is memory"),
            None => DefaultStack::default(),
        };
        let bottom = room.limit().get();
        let stack = (bottom, room.base().get() - bottom);
        // SAFETY: the stack belongs to `room`, and nothing has used it.
        unsafe { CoroutineState::prepare(stack) };
        let coroutine = Coroutine::with_stack(room, move |yielder: &Yielder, ()| {
            // SAFETY: coroutines run only inside `Toy::run`, which keeps the toy.
            let stand = unsafe { &*toy }.running.get().expect("it runs");
            // SAFETY: the toy keeps the body while it runs.
            let stand = unsafe { stand.as_ref() };
            // SAFETY: the coroutine calls this itself, with its own yielder.
            unsafe { stand.begin(yielder) };
            task();
            // SAFETY: this is the last call that the coroutine makes.
            unsafe { stand.end() };
        });
        self.ready.borrow_mut().push_back(Rc::new(Body {
            // SAFETY: `go_on` makes this coroutine ready, which has stopped.
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
        // SAFETY: the coroutine was ready, so it has stopped or not run yet.
        let stop = unsafe { body.stand.during(body.stack, resume) };
        self.running.set(None);
        match stop {
            // SAFETY: the coroutine has just ended, and this is said once.
            CoroutineResult::Return(()) => unsafe { body.stand.ended() },
            CoroutineResult::Yield(stop) => {
                self.suspensions.set(self.suspensions.get() + 1);
                self.stopped.borrow_mut().push(body);
                // SAFETY: the coroutine has stopped, and this toy is its scheduler.
                unsafe { stop.run(std::ptr::from_ref(self).cast(), who.cast()) };
            }
        }
    }

    /// Stops the running coroutine and runs `after` in the scheduler; `after` must not panic.
    fn stop_here(&self, after: impl FnOnce(&Self, NonNull<CoroutineState>)) {
        let running = self.running.get().expect("a coroutine runs");
        let mut after = Errand::new(move |toy: *const (), who: NonNull<()>| {
            // SAFETY: `resume` passes this toy and the stopped body.
            after(unsafe { &*toy.cast::<Self>() }, who.cast());
        });
        // SAFETY: the errand stays in this frame until the coroutine goes on, and does not unwind.
        let stop = unsafe { Stop::new(&mut after) };
        // SAFETY: the running coroutine's state lives.
        let running = unsafe { running.as_ref() };
        // SAFETY: the coroutine runs here and calls this itself.
        unsafe { running.stop(stop) };
    }

    /// Polls the sources, and makes those coroutines ready whose token is set.
    fn collect(&self) -> bool {
        poll_sources();
        self.tokens.borrow_mut().retain(|&(token, who)| {
            // SAFETY: the waiting coroutine keeps its token in its frame.
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

// SAFETY: `resume` records which coroutine runs. Only `make_ready` makes a stopped one ready:
// `go_on` calls it, or `poll` when its token is set.
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
