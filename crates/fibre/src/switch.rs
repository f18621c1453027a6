//! From a fibre to its processor's own stack and back.
//!
//! A fibre that stops says what is to be done with it *afterwards*: a closure that the processor
//! runs on its own stack once the fibre's registers are saved. So whoever finds the fibre in a
//! queue, also on another processor at once, can resume it, and a waiter needs no ticket.

use crate::cluster::Shared;
use crate::header::{FRAMES, Header};
#[cfg(any(corelay_loom, corelay_shuttle))]
use crate::model::coroutine::{Coroutine, CoroutineResult};
use crate::processor::{self, Processor};
use corelay_sync::facade::atomic::Ordering;
use corelay_sync::facade::cell::place_of;
pub(crate) use corelay_sync::wait::Yielder;
use corelay_sync::wait::{self, Errand, NoSwitch, Stop};
use corosensei::stack::StackPointer;
#[cfg(not(any(corelay_loom, corelay_shuttle)))]
use corosensei::{Coroutine, CoroutineResult};
use std::ops::Deref;
use std::ptr::{self, NonNull};

/// A fibre that does not run, to be made ready by whoever has this: exactly once.
#[must_use = "a fibre that nobody makes ready never runs again"]
pub(crate) struct Runnable(NonNull<Header>);

impl Runnable {
    /// # Safety
    /// The fibre does not run, lives, and lies in no queue.
    pub(crate) unsafe fn new(header: NonNull<Header>) -> Self {
        Self(header)
    }

    pub(crate) fn into_raw(self) -> NonNull<Header> {
        self.0
    }

    #[inline(always)]
    pub(crate) fn header(&self) -> &Header {
        // SAFETY: it lives.
        unsafe { self.0.as_ref() }
    }
}

pub(crate) type Suspended = Coroutine<(), Stop, (), Base>;

/// Stops the fibre that runs here, and runs `after` on its processor's stack with it. Returns when
/// the fibre has been made ready and its turn has come, perhaps on another thread: nothing that
/// was learnt of the thread before holds then.
///
/// # Safety
/// A fibre runs here, and may be suspended; `after` does not unwind.
#[inline(always)]
pub(crate) unsafe fn suspend<F: FnOnce(&Processor, Runnable)>(running: Running, after: F) {
    let mut errand = Errand::new(|processor: *const (), stopped: NonNull<()>| {
        // SAFETY: as `resume` passes it.
        let processor = unsafe { &*processor.cast::<Processor>() };
        // SAFETY: it has stopped.
        let fibre = unsafe { Runnable::new(stopped.cast()) };
        after(processor, fibre);
    });
    // SAFETY: in this frame; it does not unwind, by the caller.
    let stop = unsafe { Stop::new(&mut errand) };
    // SAFETY: it runs here, by the caller.
    unsafe { running.stand.stop(stop) };
}

/// Runs `fibre` until it stops, and what it wants done then; false where it has ended.
///
/// # Safety
/// Called by the thread of `processor`, on its own stack.
#[inline(always)]
pub(crate) unsafe fn resume(processor: &Processor, fibre: Runnable) -> Result<(), Runnable> {
    let header = fibre.into_raw();
    // SAFETY: it lives.
    let fibre = unsafe { header.as_ref() };
    // SAFETY: it is ours, so nobody else uses its coroutine.
    let suspended = unsafe { &mut *place_of(&fibre.suspended) };
    fibre.memory.write(FRAMES, 1);
    let switch = || suspended.resume(());
    // SAFETY: it was ready, so it runs nowhere.
    let result = unsafe { fibre.stand.during(fibre.stack.extent(), switch) };
    fibre.memory.write(FRAMES, 1);
    match result {
        CoroutineResult::Yield(stop) => {
            // SAFETY: what `suspend` and the seam expect; it has stopped.
            unsafe { stop.run(ptr::from_ref(processor).cast(), header.cast()) };
            Ok(())
        }
        CoroutineResult::Return(()) => {
            // SAFETY: just now.
            unsafe { fibre.stand.ended() };
            // SAFETY: it has ended.
            Err(unsafe { Runnable::new(header) })
        }
    }
}

/// The part of a stack below the header, as a coroutine's.
///
/// The header lies where it begins, and knows the rest.
pub(crate) struct Base(StackPointer);

impl Base {
    /// # Safety
    /// There is a header at `header`, whose address is exposed, with its stack set at least; what
    /// lies below, down to the stack's guard, is the coroutine's.
    pub(crate) unsafe fn below(header: NonNull<Header>) -> Self {
        Self(header.addr())
    }
}

// SAFETY: by `below`; a header is aligned.
unsafe impl corosensei::stack::Stack for Base {
    fn base(&self) -> StackPointer {
        self.0
    }

    fn limit(&self) -> StackPointer {
        let header = ptr::with_exposed_provenance::<Header>(self.0.get());
        // SAFETY: by `below`; only an address.
        let stack = unsafe { &raw const (*header).stack };
        // SAFETY: by `below`.
        let stack = unsafe { stack.read() };
        StackPointer::new(stack.limit()).expect("no stack lies at 0")
    }
}

/// The fibre that runs here.
///
/// Whoever has one runs on that fibre, so it lives.
#[derive(Clone, Copy)]
pub(crate) struct Running(NonNull<Header>);

impl Running {
    pub(crate) fn as_ptr(self) -> NonNull<Header> {
        self.0
    }

    /// Its cluster.
    pub(crate) fn shared(&self) -> &Shared {
        // SAFETY: a cluster lives as long as its fibres.
        unsafe { &*self.cluster }
    }
}

impl Deref for Running {
    type Target = Header;

    #[inline(always)]
    fn deref(&self) -> &Header {
        // SAFETY: as the type says.
        unsafe { self.0.as_ref() }
    }
}

/// The fibre that runs here, if it may be stopped now; `None` where a wait blocks the thread.
///
/// # Panics
/// Where nothing may wait, naming `call`.
#[inline(always)]
#[track_caller]
pub(crate) fn may_stop(call: &str) -> Option<Running> {
    let running = stoppable();
    if running.is_none() {
        refuse(call);
    }
    running
}

/// The fibre that runs here, where nothing keeps it from being stopped.
///
/// Not inlined, as all that looks at thread-locals on fibres: see [`here`](processor::here).
#[inline(never)]
fn stoppable() -> Option<Running> {
    if NoSwitch::is_active() || wait::is_on_thread() || std::thread::panicking() {
        return None;
    }
    running_on(processor::here_inlined())
}

#[cold]
#[inline(never)]
#[track_caller]
fn refuse(call: &str) {
    NoSwitch::refuse(call);
}

/// The fibre that runs here; `None` on a thread.
#[inline(always)]
pub(crate) fn running() -> Option<Running> {
    running_on(processor::here())
}

/// The fibre that this thread's processor runs.
#[inline(always)]
fn running_on(here: *const Processor) -> Option<Running> {
    // SAFETY: a processor that runs here lives.
    let processor = unsafe { here.as_ref() }?;
    // Relaxed: set by this thread.
    NonNull::new(processor.running.load(Ordering::Relaxed)).map(Running)
}
