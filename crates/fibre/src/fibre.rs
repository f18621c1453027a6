//! Fibres, as others see them.

use crate::builder::Builder;
use crate::header::HeaderRef;
use crate::join::JoinHandle;
use crate::park as ticket;
use crate::processor::here;
use crate::switch;
use crate::switch::{Running, suspend};
use crate::wait::{self, CallSite, Interrupted, Limit, Stance, block_processor, unwind};
use corelay_sync::wait::set_panic_aside;
use std::fmt;
use std::mem::ManuallyDrop;
use std::panic::Location;
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
    ///
    /// A destructor that waits as the fibre unwinds is not ended: see [the crate's
    /// guarantees](crate#guarantees). A call costs one memory barrier of the whole process; for many
    /// fibres call [`cancel_all`](Self::cancel_all).
    pub fn cancel(&self) {
        wait::cancel(&[&self.0]);
    }

    /// [Cancels](Self::cancel) many fibres, with one memory barrier of the process for each 64.
    ///
    /// ```
    /// use corelay_fibre::{Cancelled, Cluster, Fibre, park};
    ///
    /// // SAFETY: nothing waits inside a thread-local's initialiser, destructor or scope.
    /// let cluster = unsafe { Cluster::start(2) }?;
    /// let sitters: Vec<_> = (0..100).map(|_| cluster.spawn(park)).collect();
    /// Fibre::cancel_all(sitters.iter().map(|sitter| sitter.fibre()));
    /// for sitter in sitters {
    ///     assert!(sitter.join().unwrap_err().is::<Cancelled>());
    /// }
    /// # Ok::<(), corelay_fibre::StartError>(())
    /// ```
    pub fn cancel_all<'a>(fibres: impl IntoIterator<Item = &'a Self>) {
        let mut fibres: Vec<_> = fibres.into_iter().map(|fibre| &fibre.0).collect();
        // Each is held once. By number first, so that the order does not depend on addresses.
        fibres.sort_unstable_by_key(|fibre| (fibre.id, fibre.as_ptr()));
        fibres.dedup_by_key(|fibre| fibre.as_ptr());
        wait::cancel(&fibres);
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
    match switch::may_stop("a yield") {
        // SAFETY: it may be stopped.
        Some(running) => unsafe { give_way(running) },
        None => yield_otherwise(),
    }
}

/// # Safety
/// The fibre may be stopped.
#[inline(always)]
unsafe fn give_way(running: Running) {
    // SAFETY: the caller's duty.
    unsafe { suspend(running, |processor, fibre| processor.make_ready(fibre)) };
}

#[cold]
#[inline(never)]
fn yield_otherwise() {
    if let Stance::Unwinds(running) = Stance::here() {
        // SAFETY: nothing else keeps it from being stopped.
        let gave_way = set_panic_aside(|| unsafe { give_way(running) });
        if gave_way.is_some() {
            return;
        }
    }
    corelay_sync::facade::thread::yield_now();
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
    let site = ("park", Location::caller());
    let Some(running) = switch::may_stop("park") else {
        return park_otherwise(site);
    };
    // SAFETY: it may be stopped.
    let ended = unsafe { ticket::park(running, Limit::None, site) };
    if let Err(why) = ended {
        unwind(why);
    }
}

#[cold]
#[inline(never)]
fn park_otherwise(site: CallSite) {
    let running = match Stance::here() {
        Stance::Thread => return std::thread::park(),
        Stance::Unwinds(running) => {
            // SAFETY: nothing else keeps it from being stopped.
            let park = || unsafe { ticket::park(running, Limit::Uncancelled, site) };
            if set_panic_aside(park).is_some() {
                return;
            }
            running
        }
        Stance::Blocks(running) => running,
    };
    // Not stopped, so an unpark leaves its ticket for it. It may return early.
    if !running.ticket.take() {
        let short = || std::thread::sleep(Duration::from_millis(1));
        block_processor(running, Limit::None, site, short);
        running.ticket.take();
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
