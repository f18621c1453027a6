//! The panic count of a thread, set aside while a coroutine that unwinds is suspended.
//!
//! `std` counts for each thread how many panics unwind there; `thread::panicking` says whether the
//! count is more than 0, and whoever catches a panic takes one away. A coroutine that was suspended
//! in a destructor, in the midst of its unwinding, would leave its share to what its thread runs
//! next: guards of `std::sync::Mutex` would poison locks under which nobody has panicked, and every
//! wait would take itself for one of a destructor. If the coroutine went on on another thread, the
//! share would be taken from a count that it was never added to.
//!
//! So the share is moved for the length of the wait. Nothing in `std` sets the count, but a [`Unit`]
//! of it can be moved between threads: a coroutine of its own that panics, stops in a destructor, and
//! catches the panic when it is resumed. Where it begins the count rises by one; where it ends the
//! count falls by one, and these may be two threads.
//!
//! | | the count where the fibre waits | the lender's |
//! |---|---|---|
//! | the coroutine unwinds | 1 | 0 |
//! | the lender begins a unit, and lends it | 1 | 1 |
//! | the unit ends where the coroutine unwinds | 0 | 1 |
//! | the coroutine is suspended, others run, it goes on | 0, also where it goes on | 1 |
//! | a unit begins where it has gone on, and goes to the lender | 1 | 1 |
//! | the unit ends there | 1 | 0 |
//!
//! The lender is a thread that does nothing else; it begins with the first such wait, and sleeps
//! afterwards. The two units of a wait take turns on one stack, so what was lent can be given back
//! without asking for memory. Whether the count has fallen is asked each time: a `std` that counted
//! otherwise would make such waits block their threads, as they do where there is no lender.
//!
//! **What stays wrong.** A panic hook runs under the count too, and under a lock of `std`: a
//! coroutine that waits in the hook is suspended with that lock, and `set_hook` blocks meanwhile.

use super::sanitizer::{Context, forget_frames};
use corosensei::stack::{DefaultStack, Stack};
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Bytes of a unit's stack: an unwinding takes some 10 KiB of it.
const STACK: usize = 128 << 10;
/// Panics inside of each other's destructors that are set aside, at most.
const DEEPEST: usize = 64;

/// One panic of a thread's count, on its way to another thread.
struct Unit {
    coroutine: Coroutine<(), (), (), DefaultStack>,
    // In a box: the coroutine has its address.
    context: Box<Context>,
    extent: (usize, usize),
}

// SAFETY: its frames are those of this module and of the unwinder; neither keeps anything of the
// thread across the stop.
unsafe impl Send for Unit {}

/// Stops the coroutine as it unwinds.
struct StopInDrop<'a>(&'a Context, &'a Yielder<(), ()>);

impl Drop for StopInDrop<'_> {
    fn drop(&mut self) {
        self.0.outside(|| self.1.suspend(()));
    }
}

/// Not inlined into the function that catches: it must look for its thread's count anew.
#[inline(never)]
fn panic_and_stop(context: &Context, yielder: &Yielder<(), ()>) {
    let _stop = StopInDrop(context, yielder);
    resume_unwind(Box::new(()));
}

#[inline(never)]
fn panic_and_catch(context: &Context, yielder: &Yielder<(), ()>) {
    let _ = catch_unwind(AssertUnwindSafe(|| panic_and_stop(context, yielder)));
}

impl Unit {
    /// Raises the count of this thread by one.
    fn begin(stack: DefaultStack) -> Self {
        let bottom = stack.limit().get();
        let extent = (bottom, stack.base().get() - bottom);
        forget_frames(extent);
        let context = Box::new(Context::new());
        let at = &raw const *context;
        let coroutine = Coroutine::with_stack(stack, move |yielder, ()| {
            // SAFETY: the box is kept beside the coroutine until that has ended.
            let context = unsafe { &*at };
            context.begin();
            panic_and_catch(context, yielder);
            context.end();
        });
        let mut unit = Self {
            coroutine,
            context,
            extent,
        };
        unit.resume();
        unit
    }

    fn resume(&mut self) -> CoroutineResult<(), ()> {
        let coroutine = &mut self.coroutine;
        self.context.during(self.extent, || coroutine.resume(()))
    }

    /// Lowers the count of this thread by one.
    fn end(mut self) -> DefaultStack {
        self.resume();
        self.context.ended();
        self.coroutine.into_stack()
    }
}

/// An order to the lender.
enum Order {
    Lend(SyncSender<Option<Unit>>),
    TakeBack(Unit),
}

/// The lender; started where there is none yet. `None` where the system has no thread for it.
fn lender() -> Option<Sender<Order>> {
    static LENDER: Mutex<Option<Sender<Order>>> = Mutex::new(None);
    // It is set whole.
    let mut lender = LENDER.lock().unwrap_or_else(PoisonError::into_inner);
    if lender.is_none() {
        let (order, orders) = channel();
        let serve = move || {
            for order in orders {
                match order {
                    Order::Lend(give) => {
                        let stack = DefaultStack::new(STACK).ok();
                        let _ = give.send(stack.map(Unit::begin));
                    }
                    Order::TakeBack(unit) => drop(unit.end()),
                }
            }
        };
        let builder = thread::Builder::new().name(String::from("corelay panics"));
        *lender = builder.spawn(serve).ok().map(|_| order);
    }
    lender.clone()
}

/// The share that was taken from the count. It is added again when this is dropped, on the thread where the
/// coroutine is by then.
struct Aside {
    lender: Sender<Order>,
    stacks: Vec<DefaultStack>,
}

impl Aside {
    /// `None` where there is no lender, or no memory.
    // Not inlined, here as below: a coroutine goes on on another thread between the two.
    #[inline(never)]
    fn take() -> Option<Self> {
        let mut aside = Self {
            lender: lender()?,
            stacks: Vec::new(),
        };
        while thread::panicking() {
            if aside.stacks.len() == DEEPEST {
                return None;
            }
            let (give, get) = sync_channel(1);
            aside.lender.send(Order::Lend(give)).ok()?;
            aside.stacks.push(get.recv().ok()??.end());
        }
        Some(aside)
    }
}

impl Drop for Aside {
    #[inline(never)]
    fn drop(&mut self) {
        for stack in self.stacks.drain(..) {
            // The lender never ends.
            let _ = self.lender.send(Order::TakeBack(Unit::begin(stack)));
        }
    }
}

/// True where an unwinding [can be set aside](set_panic_aside), as far as can be known before.
#[cold]
#[inline(never)]
pub(super) fn is_possible() -> bool {
    !cfg!(any(corelay_loom, corelay_shuttle)) && lender().is_some()
}

/// Runs `f` as if nothing unwound on this thread: for a coroutine that waits in a destructor.
/// `thread::panicking` is false in `f`, for all that the thread runs meanwhile, and true again when
/// this returns, on whichever thread the coroutine has gone on. It takes a round trip to another
/// thread. `None`, and `f` has not run, if there is no thread or no memory to keep the panic in.
#[cold]
#[inline(never)]
pub fn set_panic_aside<R>(f: impl FnOnce() -> R) -> Option<R> {
    if !is_possible() {
        return None;
    }
    let _aside = Aside::take()?;
    Some(f())
}

#[cfg(all(test, not(any(corelay_loom, corelay_shuttle))))]
mod tests {
    use super::*;

    /// Runs its closure when it is dropped.
    struct InDrop<F: FnMut()>(F);

    impl<F: FnMut()> Drop for InDrop<F> {
        fn drop(&mut self) {
            (self.0)();
        }
    }

    fn unwinds(in_drop: impl FnMut()) {
        let caught = catch_unwind(AssertUnwindSafe(|| {
            let _in_drop = InDrop(in_drop);
            resume_unwind(Box::new(7));
        }));
        assert_eq!(caught.unwrap_err().downcast_ref(), Some(&7));
    }

    #[test]
    fn the_count_is_0_inside_and_raised_again_behind() {
        for _ in 0..3 {
            let mut ran = 0;
            unwinds(|| {
                assert!(set_panic_aside(|| assert!(!thread::panicking())).is_some());
                assert!(thread::panicking());
                ran += 1;
            });
            assert!(ran == 1 && !thread::panicking());
        }
    }

    #[test]
    fn panics_inside_of_each_other_are_set_aside_together() {
        unwinds(|| {
            unwinds(|| {
                let inside = set_panic_aside(|| {
                    assert!(!thread::panicking());
                    unwinds(|| assert!(thread::panicking()));
                });
                assert!(inside.is_some() && thread::panicking());
            });
            assert!(thread::panicking());
        });
    }

    #[test]
    fn a_panic_inside_leaves_the_count_right() {
        unwinds(|| {
            let caught = catch_unwind(AssertUnwindSafe(|| {
                let _ = set_panic_aside(|| resume_unwind(Box::new(())));
            }));
            assert!(caught.is_err() && thread::panicking());
        });
    }
}
