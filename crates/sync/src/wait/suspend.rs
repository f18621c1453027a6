//! Suspending a coroutine from code that does not know its scheduler, at the price of the switch
//! alone.
//!
//! A [`Token`](super::Token) may be set by any thread, and takes atomics and a waker. Where the
//! waiter's own thread ends the wait, because it takes the answer out of its channel, neither is
//! needed: a [`SuspensionPoint`] is two words, and whoever sets it makes its coroutine ready at once.
//!
//! What waits stops by itself, in the frame of its caller, and not inside a call of its scheduler:
//! a return behind a switch is mispredicted, which costs as much as the switch. So all schedulers'
//! coroutines have one type, [`Yielder`], and what is to be done behind the stop travels with it, as
//! a [`Stop`].

use super::NoSwitch;
use super::aside::{self, set_panic_aside};
use super::context::current;
use super::sanitizer::{self, Context};
use crate::facade::atomic::{AtomicPtr, Ordering};
use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::panic::Location;
use std::ptr::{self, NonNull};

/// By which a coroutine of any [`Context`](super::Context) stops.
#[cfg(not(any(corelay_loom, corelay_shuttle)))]
pub type Yielder = corosensei::Yielder<(), Stop>;

/// By which a coroutine of a model stops: the checkers know no switch of stacks.
#[cfg(any(corelay_loom, corelay_shuttle))]
#[allow(missing_debug_implementations)]
pub struct Yielder(pub Box<dyn Fn(Stop)>);

#[cfg(any(corelay_loom, corelay_shuttle))]
impl Yielder {
    fn suspend(&self, with: Stop) {
        (self.0)(with);
    }
}

/// What runs an errand: told who the scheduler is, who has stopped, and where this lies.
#[repr(transparent)]
struct Run(unsafe fn(scheduler: *const (), stopped: NonNull<()>, errand: NonNull<Run>));

/// What a coroutine that stops wants done: in its frame.
#[repr(C)]
#[allow(missing_debug_implementations)]
pub struct Errand<F> {
    run: Run,
    after: ManuallyDrop<F>,
}

impl<F: FnOnce(*const (), NonNull<()>)> Errand<F> {
    /// `after` is run with what the scheduler passes to [`Stop::run`]; it is not dropped where it
    /// is not run.
    #[inline(always)]
    pub fn new(after: F) -> Self {
        Self {
            run: Run(Self::run),
            after: ManuallyDrop::new(after),
        }
    }

    /// # Safety
    /// `errand` is one of this type, whose closure nobody uses afterwards.
    unsafe fn run(scheduler: *const (), stopped: NonNull<()>, errand: NonNull<Run>) {
        let errand = errand.cast::<Self>().as_ptr();
        // SAFETY: the caller's duty; only an address.
        let after = unsafe { &raw const (*errand).after };
        // SAFETY: the caller's duty. Read before it runs: then the coroutine may go on.
        let after = unsafe { after.read() };
        ManuallyDrop::into_inner(after)(scheduler, stopped);
    }
}

/// An [`Errand`] on its way to the scheduler: one word, which a switch of stacks carries in a
/// register.
#[derive(Debug)]
pub struct Stop(NonNull<Run>);

impl Stop {
    /// Has `errand` run, once.
    ///
    /// # Safety
    /// It stays where it is until the coroutine goes on, is not used otherwise, and does not unwind.
    #[inline(always)]
    pub unsafe fn new<F: FnOnce(*const (), NonNull<()>)>(errand: &mut Errand<F>) -> Self {
        Self(NonNull::from(errand).cast())
    }

    /// The coroutine wants nothing: somebody has it already, and makes it go on.
    #[inline(always)]
    fn nothing() -> Self {
        unsafe fn run(_: *const (), _: NonNull<()>, _: NonNull<Run>) {}
        static NOTHING: Run = Run(run);
        Self(NonNull::from(&NOTHING))
    }

    /// Does what is wanted. For schedulers, which say who they are and who has stopped.
    ///
    /// # Safety
    /// Both are what the one who made it takes them for; the coroutine has stopped.
    #[inline(always)]
    pub unsafe fn run(self, scheduler: *const (), stopped: NonNull<()>) {
        // SAFETY: an errand begins with it, and stays, by `new`.
        let Run(run) = unsafe { self.0.read() };
        // SAFETY: by `new`, and by the caller.
        unsafe { run(scheduler, stopped, self.0) };
    }
}

/// A coroutine, as the seam knows it: kept by its scheduler, where it stays as long as it has not
/// ended.
#[derive(Debug)]
#[repr(C)]
pub struct CoroutineState {
    yielder: Cell<*const Yielder>,
    go_on: unsafe fn(NonNull<CoroutineState>),
    /// Where it waits for a spot; null where it does not.
    waits_at: AtomicPtr<Location<'static>>,
    context: Context,
}

impl CoroutineState {
    /// Of a coroutine that has not run. `go_on` makes it ready.
    ///
    /// # Safety
    /// `go_on` may be called for this one, while it lives, once each time that it has stopped for a
    /// [`SuspensionPoint`], on the thread where it has stopped. It does not unwind.
    pub unsafe fn new(go_on: unsafe fn(NonNull<Self>)) -> Self {
        Self {
            yielder: Cell::new(ptr::null()),
            go_on,
            waits_at: AtomicPtr::default(),
            context: Context::new(),
        }
    }

    /// Memory is a coroutine's stack from now on: its bottom and size in bytes. For sanitizers, here
    /// as below; call it before anything is written there.
    ///
    /// # Safety
    /// The memory is the caller's, and nothing lies there.
    #[inline(always)]
    pub unsafe fn prepare(stack: (usize, usize)) {
        sanitizer::forget_frames(stack);
    }

    /// Runs `switch`, which runs the coroutine on `stack` until it stops or ends.
    ///
    /// # Safety
    /// `switch` does that and no more; the coroutine has [ended](Self::ended) not yet, and runs
    /// nowhere.
    #[inline(always)]
    pub unsafe fn during<R>(&self, stack: (usize, usize), switch: impl FnOnce() -> R) -> R {
        self.context.during(stack, switch)
    }

    /// It runs no more, but for the switch to its scheduler: the last that it does itself.
    ///
    /// # Safety
    /// It calls this itself, and nothing else afterwards.
    #[inline(always)]
    pub unsafe fn end(&self) {
        self.context.end();
    }

    /// It has ended; said by its scheduler.
    ///
    /// # Safety
    /// It has, and this is said once.
    #[inline(always)]
    pub unsafe fn ended(&self) {
        self.context.ended();
    }

    /// Where it waits for a [`SuspensionPoint`], or has waited and not gone on yet; for who only wants to know,
    /// on any thread.
    pub fn waits_at(&self) -> Option<&'static Location<'static>> {
        // Relaxed: what it points at never changes.
        let at = self.waits_at.load(Ordering::Relaxed);
        // SAFETY: null, or of a `&'static`.
        unsafe { at.as_ref() }
    }

    /// The coroutine begins.
    ///
    /// # Safety
    /// By its own yielder.
    pub unsafe fn begin(&self, yielder: &Yielder) {
        self.yielder.set(yielder);
        self.context.begin();
    }

    /// Stops the coroutine.
    ///
    /// # Safety
    /// It runs here.
    #[inline(always)]
    pub unsafe fn stop(&self, stop: Stop) {
        // SAFETY: set when it began; it is on the stack of who runs here.
        let yielder = unsafe { &*self.yielder.get() };
        self.context.outside(|| yielder.suspend(stop));
    }
}

/// The coroutine that runs here and may be suspended: see [`here`].
///
/// One word: the address of the stand, with a bit set if the coroutine unwinds.
#[derive(Clone, Copy, Debug)]
pub struct Here(NonNull<CoroutineState>);

/// Set in a [`Here`] if the coroutine unwinds, so that its panic has to be set aside.
const UNWINDS: usize = 1;

const _: () = assert!(align_of::<CoroutineState>() > UNWINDS);

/// The coroutine that runs here, if a wait may suspend it.
///
/// To be called in functions that are not inlined, and that nobody is suspended in: a coroutine may go
/// on on another thread, and a compiler that has seen the address of a thread-local keeps it over
/// the switch.
#[inline]
pub fn here() -> Option<Here> {
    let context = current()?;
    if NoSwitch::is_active() {
        return None;
    }
    // SAFETY: inside `enter`, which keeps the context.
    let stand = unsafe { context.as_ref() }.running()?;
    if std::thread::panicking() {
        let unwinds = stand.map_addr(|address| address | UNWINDS);
        return aside::is_possible().then_some(Here(unwinds));
    }
    Some(Here(stand))
}

impl Here {
    /// Suspends the coroutine until `spot` is [set](SuspensionPoint::set): by its own thread, before or after
    /// it runs others. It may go on on another thread.
    ///
    /// # Safety
    /// * It runs here: nothing has suspended it since [`here`].
    /// * Nobody has waited for `spot`.
    /// * Once the spot is set, it belongs to the waiter, which may have gone to another thread: nobody
    ///   else uses it then.
    #[track_caller]
    #[inline(always)]
    pub unsafe fn wait(self, spot: &SuspensionPoint) {
        if spot.is_set() {
            return;
        }
        let at = Location::caller();
        if self.0.addr().get() & UNWINDS != 0 {
            self.wait_unwinding(at, spot);
        } else {
            // SAFETY: the caller's duties.
            unsafe { Self::stop(self.0, at, spot) };
        }
    }

    #[cold]
    #[inline(never)]
    fn wait_unwinding(self, at: &'static Location<'static>, spot: &SuspensionPoint) {
        let stand = self.0.as_ptr().map_addr(|address| address & !UNWINDS);
        // SAFETY: the address of a stand, as `here` had it.
        let stand = unsafe { NonNull::new_unchecked(stand) };
        // SAFETY: the duties of the caller of `wait`.
        if set_panic_aside(|| unsafe { Self::stop(stand, at, spot) }).is_none() {
            // The thread cannot wait instead: it is the one that sets the spot.
            eprintln!("corelay: no memory for a wait at {at}, in a destructor that unwinds");
            std::process::abort();
        }
    }

    /// # Safety
    /// As of [`wait`](Self::wait); the stand is that of the coroutine that runs here.
    #[inline(always)]
    unsafe fn stop(
        stand: NonNull<CoroutineState>,
        at: &'static Location<'static>,
        spot: &SuspensionPoint,
    ) {
        spot.waiter.set(Some(stand));
        let bomb = AbortOnUnwind;
        // SAFETY: a context tells of those alone that live.
        let stand = unsafe { stand.as_ref() };
        // Relaxed, here as below: see `waits_at`.
        let at = ptr::from_ref(at).cast_mut();
        stand.waits_at.store(at, Ordering::Relaxed);
        // SAFETY: it runs here, by the caller.
        unsafe { stand.stop(Stop::nothing()) };
        stand.waits_at.store(ptr::null_mut(), Ordering::Relaxed);
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

/// An event that the waiter's own thread tells it of. In the frame of the waiter.
///
/// ```
/// use corelay_sync::wait::SuspensionPoint;
///
/// let spot = SuspensionPoint::new();
/// assert!(!spot.is_set());
/// spot.set();
/// assert!(spot.is_set()); // a wait would return at once
/// ```
///
/// No other thread sets it:
/// ```compile_fail,E0277
/// let spot = corelay_sync::wait::SuspensionPoint::new();
/// std::thread::scope(|s| s.spawn(|| spot.set()));
/// ```
#[derive(Debug, Default)]
pub struct SuspensionPoint {
    waiter: Cell<Option<NonNull<CoroutineState>>>,
    is_set: Cell<bool>,
}

impl SuspensionPoint {
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
        if let Some(waiter) = self.waiter.take() {
            // SAFETY: it has stopped, so it lives.
            let go_on = unsafe { waiter.as_ref() }.go_on;
            // SAFETY: taken out; it has stopped for this spot on this thread, which the spot has not
            // left.
            unsafe { go_on(waiter) };
        }
    }
}
