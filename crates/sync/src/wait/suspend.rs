//! Suspending a coroutine from code that does not know its scheduler, at the price of the switch
//! alone.
//!
//! A [`Token`](super::Token) may be set by any thread, and takes atomics and a waker. Where the
//! waiter's own thread ends the wait, because it takes the answer out of its channel, neither is
//! needed: a [`Spot`] is two words, and whoever sets it makes its coroutine ready at once.
//!
//! What waits stops by itself, in the frame of its caller, and not inside a call of its scheduler:
//! a return behind a switch is mispredicted, which costs as much as the switch. So all schedulers'
//! coroutines have one type, [`Yielder`], and what is to be done behind the stop travels with it, as
//! a [`Stop`].

use super::Context;
use super::context::current;
use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};

/// By which a coroutine of any [`Context`] stops.
pub type Yielder = corosensei::Yielder<(), Stop>;

/// What a coroutine that has stopped wants done, by its scheduler and on its scheduler's stack.
#[derive(Debug)]
pub struct Stop {
    run: unsafe fn(scheduler: *const (), stopped: NonNull<()>, data: *mut ()),
    data: *mut (),
}

impl Stop {
    /// Runs `after`, once: with what the scheduler passes to [`run`](Self::run).
    ///
    /// # Safety
    /// `after` stays where it is until the coroutine goes on, is not used otherwise, and does not
    /// unwind.
    #[inline(always)]
    pub unsafe fn new<F: FnOnce(*const (), NonNull<()>)>(after: &mut ManuallyDrop<F>) -> Self {
        /// # Safety
        /// `data` is an `F` that nobody uses afterwards.
        unsafe fn run<F: FnOnce(*const (), NonNull<()>)>(
            scheduler: *const (),
            stopped: NonNull<()>,
            data: *mut (),
        ) {
            // SAFETY: the caller's duty. Read before it runs: then the coroutine may go on.
            let after = unsafe { data.cast::<F>().read() };
            after(scheduler, stopped);
        }
        Self {
            run: run::<F>,
            data: ptr::from_mut(after).cast(),
        }
    }

    /// The coroutine wants nothing: somebody has it already, and makes it go on.
    #[inline(always)]
    fn nothing() -> Self {
        unsafe fn run(_: *const (), _: NonNull<()>, _: *mut ()) {}
        Self {
            run,
            data: ptr::null_mut(),
        }
    }

    /// Does what is wanted. For schedulers, which say who they are and who has stopped.
    ///
    /// # Safety
    /// Both are what the one who made it takes them for; the coroutine has stopped.
    #[inline(always)]
    pub unsafe fn run(self, scheduler: *const (), stopped: NonNull<()>) {
        // SAFETY: by `new`, and by the caller.
        unsafe { (self.run)(scheduler, stopped, self.data) };
    }
}

/// The coroutine that runs, as its scheduler knows it.
#[derive(Clone, Copy, Debug)]
pub struct Running {
    /// Its own.
    pub yielder: NonNull<Yielder>,
    /// Whatever names it to [`Context::go_on`].
    pub who: NonNull<()>,
}

/// The coroutine that runs here and may be suspended: see [`here`].
#[derive(Clone, Copy, Debug)]
pub struct Here {
    running: Running,
    context: NonNull<dyn Context>,
}

/// The coroutine that runs here, if a wait may suspend it.
///
/// To be called in functions that are not inlined, and that nobody is suspended in: a coroutine may go
/// on on another thread, and a compiler that has seen the address of a thread-local keeps it over
/// the switch.
#[inline]
pub fn here() -> Option<Here> {
    if !super::is_suspendable() {
        return None;
    }
    let context = current()?;
    // SAFETY: inside `enter`, which keeps the context.
    let running = unsafe { context.as_ref() }.running()?;
    Some(Here { running, context })
}

impl Here {
    /// Suspends the coroutine until `spot` is [set](Spot::set): by its own thread, before or after
    /// it runs others. It may go on on another thread.
    ///
    /// # Safety
    /// It runs here: nothing has suspended it since [`here`]. Nobody has waited for `spot`.
    #[inline(always)]
    pub unsafe fn wait(self, spot: &Spot) {
        if spot.is_set() {
            return;
        }
        spot.waiter.set(Some((self.context, self.running.who)));
        let bomb = AbortOnUnwind;
        // SAFETY: of the coroutine that runs, by the caller.
        unsafe { self.running.yielder.as_ref() }.suspend(Stop::nothing());
        std::mem::forget(bomb);
        if !spot.is_set() {
            gone_on_too_early();
        }
    }
}

/// Whoever borrows from the frame of the wait would find it gone.
struct AbortOnUnwind;

impl Drop for AbortOnUnwind {
    fn drop(&mut self) {
        gone_on_too_early();
    }
}

#[cold]
fn gone_on_too_early() -> ! {
    eprintln!("corelay: a context has gone on with a wait before its end");
    std::process::abort();
}

/// An event that the waiter's own thread tells it of. In the frame of who waits.
///
/// ```
/// use corelay_sync::wait::Spot;
///
/// let spot = Spot::new();
/// assert!(!spot.is_set());
/// spot.set();
/// assert!(spot.is_set()); // a wait would return at once
/// ```
#[derive(Debug, Default)]
pub struct Spot {
    waiter: Cell<Option<(NonNull<dyn Context>, NonNull<()>)>>,
    is_set: Cell<bool>,
}

impl Spot {
    /// Not set.
    #[inline(always)]
    pub fn new() -> Self {
        Self::default()
    }

    /// True once it has been set.
    #[inline(always)]
    pub fn is_set(&self) -> bool {
        self.is_set.get()
    }

    /// Sets it, and lets go on who waits for it: on the thread on which that was suspended. The
    /// spot may be gone when this returns.
    #[inline(always)]
    pub fn set(&self) {
        self.is_set.set(true);
        if let Some((context, who)) = self.waiter.take() {
            // SAFETY: a context stays while it has suspended anybody, which is its duty.
            let context = unsafe { context.as_ref() };
            // SAFETY: suspended by that context, on this thread, and taken out.
            unsafe { context.go_on(who) };
        }
    }
}
