//! Fibres, as others see them.

use crate::builder::Builder;
use crate::header::HeaderRef;
use crate::join::JoinHandle;
use crate::park as ticket;
use crate::processor::here;
use crate::switch;
use crate::switch::{Running, suspend};
use crate::wait::Interrupted;
use crate::wait::{self, unwind};
use std::fmt;
use std::mem::ManuallyDrop;

use std::time::{Duration, Instant};

/// A handle to a fibre: counted, so that one kept beyond the fibre's end does nothing.
///
/// It keeps the fibre's stack from being used again; hold it no longer than you need it.
#[derive(Clone)]
pub struct Fibre(pub(crate) HeaderRef);

impl Fibre {
    /// Lets it go on if it is [parked](park()); otherwise its next park returns at once.
    pub fn unpark(&self) {
        ticket::unpark(self.0.as_ptr());
    }

    /// Asks it to end: the wait that it is in, and every other one from now on, ends without what
    /// it waits for. Calls that can say so return [`Interrupted`](crate::Interrupted); the others
    /// unwind the fibre, whose join then has [`Cancelled`](crate::Cancelled) as its error. A fibre
    /// that does not wait goes on until it does, or asks [`is_cancelled`].
    ///
    /// A frame of C cannot be unwound. Where the fibre waits in Rust that C has called, by an
    /// `extern "C"` function, a wait that unwinds it ends the process there. In such functions use
    /// waits that return an error, such as
    /// [`Semaphore::acquire_until`](crate::Semaphore::acquire_until), or catch the panic in them and
    /// have C return; or do not cancel the fibre.
    pub fn cancel(&self) {
        wait::cancel(&self.0);
    }

    /// The name that its builder gave it.
    pub fn name(&self) -> Option<&str> {
        self.0.name.as_deref()
    }

    /// Its number: unique in its cluster, from 1.
    pub fn id(&self) -> u64 {
        self.0.id
    }
}

impl fmt::Debug for Fibre {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fibre")
            .field("id", &self.id())
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}

impl From<Running> for Fibre {
    fn from(running: Running) -> Self {
        // SAFETY: the reference that a fibre has while it lives; not dropped here.
        let own = ManuallyDrop::new(unsafe { HeaderRef::from_counted(running.as_ptr()) });
        Self((*own).clone())
    }
}

/// The fibre that runs here; `None` on a thread.
pub fn current() -> Option<Fibre> {
    switch::running().map(Fibre::from)
}

/// The number of the processor that runs this fibre, from 0; `None` on a thread.
pub fn processor() -> Option<usize> {
    switch::running()?;
    // SAFETY: a processor that runs here lives.
    unsafe { here().as_ref() }.map(|processor| processor.number)
}

/// Lets other ready fibres run first. On a thread it is the system's yield.
///
/// # Panics
/// Where nothing may wait: see [`NoSwitch`](corelay_sync::wait::NoSwitch).
#[track_caller]
#[inline(always)]
pub fn yield_now() {
    let Some(running) = switch::may_stop("a yield") else {
        return corelay_sync::facade::thread::yield_now();
    };
    // SAFETY: it may be stopped.
    unsafe { suspend(running, |processor, fibre| processor.make_ready(fibre)) };
}

/// Waits until somebody [unparks](Fibre::unpark) this fibre; returns at once where that has
/// happened since the last park. May return early: look at what you wait for. On a thread it is
/// the standard library's park.
///
/// # Panics
/// Where nothing may wait: see [`NoSwitch`](corelay_sync::wait::NoSwitch).
#[track_caller]
#[inline(always)]
pub fn park() {
    let Some(running) = switch::may_stop("park") else {
        return std::thread::park();
    };
    // SAFETY: it may be stopped.
    let ended = unsafe { ticket::park(running) };
    if let Err(why) = ended {
        unwind(why);
    }
}

/// Runs `f` in a fibre of the cluster that runs this one.
///
/// # Panics
/// On a thread, which belongs to no cluster; and where there is no memory for a stack.
#[track_caller]
pub fn spawn<F, T>(f: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let running = switch::running();
    let running = running.expect("corelay: spawn outside a fibre; use Cluster::spawn");
    Builder::new(running.shared())
        .spawn(f)
        .unwrap_or_else(|why| panic!("corelay: {why}"))
}

/// True where the fibre that runs here has been [cancelled](Fibre::cancel).
pub fn is_cancelled() -> bool {
    switch::running().is_some_and(|running| running.is_cancelled())
}

/// A time that no process lives to see, and a clock can say: a century.
const FAR: Duration = Duration::from_secs(100 * 365 * 86_400);

/// Waits for so long: at least.
///
/// # Errors
/// [`Interrupted::Cancelled`] before the time.
///
/// # Panics
/// Where nothing may wait: see [`NoSwitch`](corelay_sync::wait::NoSwitch).
#[track_caller]
pub fn sleep(duration: Duration) -> Result<(), Interrupted> {
    let now = Instant::now();
    // What is later than a clock can say is never seen.
    let until = now.checked_add(duration).unwrap_or(now + FAR);
    crate::timers::sleep(until)
}
