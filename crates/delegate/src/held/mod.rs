//! Launched closures: they wait, in fibres of their trustee's thread, and hold their object
//! meanwhile.
//!
//! | file | idea |
//! |---|---|
//! | `mod` | what a trustee keeps of its launches |
//! | `launch` | how it is asked for |
//! | `launched` | a launched closure, from its fibre's first step to its last |
//! | `graph` | who waits for whom |
//! | `circle` | the process's graph: rings are refused, and named |
//! | `handle` | the result, to be waited for |
//!
//! A trustee whose thread has a [`Host`](corelay_sync::wait::Host) runs its loop as a coroutine. A
//! [launch](crate::channel::launch) is a request that, when it is run, marks its object as held and
//! spawns another coroutine. Between two passes the loop gives [turns](crate::thread::turn) to those
//! that are ready. What reaches a held object is [deferred](crate::channel::deferred): the lanes find
//! out where they find out about poison, which costs nothing while no object is poisoned or held. When
//! the closure has ended, the loop runs what has been deferred, in order; a launch among it holds the
//! object anew.
//!
//! ```text
//!           launch                closure ends             deferred requests have run
//!    FREE ─────────► HELD, runs ──────────────► HELD, ended ───────────► FREE
//!                      ▲                            │
//!                      └────── a launch among them ─┘
//! ```
//! **What is whose.** A launched closure is a client of its own, with channels of its own: a deferred
//! request of one closure keeps no answer from another, and a callback that it asked for runs inside
//! its own calls. While any of them runs, its thread's table of clients is hidden, as in a delegated
//! closure, so that each call takes its slow path and finds out here whose clients it is to use. A
//! wait inside such a call suspends the coroutine: the trustee's loop looks for it whether it is over.

pub(crate) mod circle;
mod graph;
pub(crate) mod handle;
mod launch;
pub(crate) mod launched;

use crate::object::Header;
use crate::serving::Serving;
use crate::thread::out_of_turn;
use crate::trustee::Trustee;
use corelay_sync::wait::{self, CoroutineState, SuspensionPoint};
use launched::Launched;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ptr::NonNull;

/// What a trustee keeps of its launches.
#[derive(Default)]
pub(crate) struct Holds {
    /// Objects that are held.
    objects: Cell<u32>,
    /// Launched closures whose coroutines have not ended.
    coroutines: Cell<u32>,
    /// Objects whose closures have ended: still held.
    ended: RefCell<Vec<*mut Header>>,
    /// The closures that run, by their coroutines.
    running: RefCell<Vec<(NonNull<CoroutineState>, *const Launched)>>,
    /// Coroutines that wait, inside calls of this crate.
    waiters: RefCell<Vec<Waiter>>,
    /// Requests to held objects that closures of this trustee have made.
    nested: RefCell<VecDeque<(*mut Header, Box<dyn Deferred>)>>,
    /// Objects whose last handle has gone, but which are held.
    retired: RefCell<Vec<*mut Header>>,
    /// Requests deferred so far.
    numbers: Cell<u64>,
    /// Coroutines that are no launched closures, while temporary clients of theirs finish.
    finishing: RefCell<Vec<NonNull<CoroutineState>>>,
    /// The trustee, while its loop lets coroutines run.
    trustee: Cell<Option<NonNull<Trustee>>>,
}

/// A request of a closure that waits for its object.
pub(crate) trait Deferred {
    /// Runs it.
    fn run(&mut self, serving: &Serving);
}

/// A coroutine that waits, and how to find out whether that is over. In its frame.
struct Waiter {
    is_over: *mut dyn FnMut() -> bool,
    spot: *const SuspensionPoint,
}

impl Holds {
    /// True while coroutines need turns, or objects are held.
    pub(crate) fn is_busy(&self) -> bool {
        self.coroutines.get() > 0 || self.objects.get() > 0 || !self.waiters.borrow().is_empty()
    }

    /// Number of the next deferred request: they are run in this order.
    pub(crate) fn number(&self) -> u64 {
        let number = self.numbers.get();
        self.numbers.set(number + 1);
        number
    }

    /// Keeps a request to an object that is held.
    pub(crate) fn defer_nested(&self, object: *mut Header, request: Box<dyn Deferred>) {
        self.nested.borrow_mut().push_back((object, request));
    }

    /// Keeps an object that is to be dropped once it is held no more.
    pub(crate) fn retire(&self, object: *mut Header) {
        self.retired.borrow_mut().push(object);
    }

    /// True where that object was to be dropped: it may be, now.
    pub(crate) fn take_retired(&self, object: *mut Header) -> bool {
        let mut retired = self.retired.borrow_mut();
        let place = retired.iter().position(|&other| other == object);
        place.map(|place| retired.swap_remove(place)).is_some()
    }

    /// True while a temporary client of the coroutine that runs here finishes.
    pub(crate) fn is_finishing(&self) -> bool {
        wait::running().is_some_and(|stand| self.finishing.borrow().contains(&stand))
    }

    /// Says whether one does, and gives back what was said before.
    pub(crate) fn set_finishing(&self, now: bool) -> bool {
        let before = self.is_finishing();
        if let Some(stand) = wait::running() {
            let mut finishing = self.finishing.borrow_mut();
            finishing.retain(|&other| other != stand);
            if now {
                finishing.push(stand);
            }
        }
        before
    }

    /// Looks for those that wait whether that is over, and lets them go on. True where one does.
    pub(crate) fn wake(&self) -> bool {
        if self.waiters.borrow().is_empty() {
            return false;
        }
        let mut some = false;
        let mut next = 0;
        loop {
            // Not borrowed while it looks.
            let Some(is_over) = self.waiters.borrow().get(next).map(|waiter| waiter.is_over) else {
                return some;
            };
            // SAFETY: in the frame of a coroutine that waits until its spot is set.
            if unsafe { (*is_over)() } {
                let waiter = self.waiters.borrow_mut().remove(next);
                some = true;
                // SAFETY: as above.
                unsafe { &*waiter.spot }.set();
            } else {
                next += 1;
            }
        }
    }
}

impl Serving {
    /// Runs `turn`, in which coroutines run, and can have `trustee` serve beneath them.
    pub(crate) fn lend<R>(&self, trustee: &mut Trustee, turn: impl FnOnce() -> R) -> R {
        self.holds.trustee.set(Some(NonNull::from(trustee)));
        let result = turn();
        self.holds.trustee.set(None);
        result
    }

    /// Has the trustee serve until `is_over`, in the frame of a coroutine that cannot be suspended.
    fn serve_beneath(&self, is_over: &mut dyn FnMut() -> bool) {
        self.beneath(|trustee| trustee.serve_beneath(is_over));
    }

    /// Has the trustee let objects go whose closures have ended.
    fn settle_beneath(&self) {
        self.beneath(|trustee| trustee.settle());
    }

    /// Runs `f` on the trustee, in the frame of one of its coroutines.
    fn beneath<R>(&self, f: impl FnOnce(&mut Trustee) -> R) -> R {
        let trustee = self.holds.trustee.take();
        let mut lent = trustee.expect("coroutines run while a trustee's loop lets them");
        // SAFETY: lent for as long as coroutines run, which this one does, and taken out.
        let serving = unsafe { lent.as_mut() };
        let result = out_of_turn(|| f(serving));
        self.holds.trustee.set(trustee);
        result
    }

    /// True where a launched closure holds `object`, which is alive.
    pub(crate) fn is_held(&self, object: *mut Header) -> bool {
        // SAFETY: the caller's duty.
        self.holds.objects.get() > 0 && unsafe { &*object }.is_held.get()
    }

    /// Marks `object` as held by `launch`.
    fn hold(&self, object: *mut Header, launch: circle::Number) {
        circle::hold(launch, object);
        // SAFETY: a request on it runs, so it is alive.
        unsafe { &*object }.is_held.set(true);
        self.holds.objects.set(self.holds.objects.get() + 1);
        self.mark();
        // Requests behind this one, in the same batch, may be for the same object: the lane is to
        // look at each.
        self.nested.set(true);
    }

    /// An object whose closure has ended: it is not held any more.
    pub(crate) fn take_ended(&self) -> Option<*mut Header> {
        let object = self.holds.ended.borrow_mut().pop()?;
        circle::release(object);
        // SAFETY: held until now, so it is alive.
        unsafe { &*object }.is_held.set(false);
        self.holds.objects.set(self.holds.objects.get() - 1);
        self.unmark(self.holds.objects.get() == 0);
        Some(object)
    }

    /// Runs what closures of this trustee have asked of `object` while it was held.
    pub(crate) fn run_deferred_nested(&self, object: *mut Header) {
        let mut left = self.holds.nested.borrow().len();
        while left > 0 {
            left -= 1;
            // Not borrowed while it runs: it may defer others.
            let first = self.holds.nested.borrow_mut().pop_front();
            let Some((of, mut request)) = first else {
                return;
            };
            if of == object {
                request.run(self);
            } else {
                self.holds.nested.borrow_mut().push_back((of, request));
            }
        }
    }
}
