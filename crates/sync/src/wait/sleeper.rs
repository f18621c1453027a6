//! Sleepers: the place at which a thread sleeps, and by which others wake it.

#[cfg(any(unix, corelay_loom, corelay_shuttle))]
use super::alarm::Alarm;
use crate::facade::atomic::Ordering;
use crate::facade::thread_local;
use crate::{CachePadded, Futex, barrier};
use std::sync::Arc;
#[cfg(any(unix, corelay_loom, corelay_shuttle))]
use std::sync::OnceLock;
use std::task::{Wake, Waker};
use std::thread::ThreadId;
use std::time::Duration;

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;
/// The thread sleeps in an event loop, or is about to.
const IN_LOOP: u32 = 2;

/// The one place a thread sleeps in, whatever it waits for: answers of several trustees, a token, a
/// time. Wakers may hold it longer than its thread lives, so a waker never touches memory that is
/// gone.
///
/// Only its own thread sleeps in it; any thread may wake it.
///
/// Waking a thread that is awake is cheap: after making the event visible,
/// [`wake_if_asleep`](Self::wake_if_asleep) reads one word. The sleeper pays: it says that it
/// sleeps, passes the heavy barrier, and looks at its events once more.
///
/// A thread with an event loop sleeps there instead, between [`begin_sleep`](Self::begin_sleep) and
/// [`end_sleep`](Self::end_sleep). It is woken through a [file descriptor](Self::wake_fd), which
/// costs the waker a system call, and nothing while the thread is awake.
#[derive(Debug)]
pub struct Sleeper {
    /// The word that says whether the thread is asleep or awake. It is on lines of its own: wakers
    /// read it all the time, and memory beside it that the thread writes would travel with it.
    state: CachePadded<Futex>,
    /// The thread that sleeps here. In the models all threads have the same id.
    owner: ThreadId,
    /// The alarm, once the thread has asked for it.
    #[cfg(any(unix, corelay_loom, corelay_shuttle))]
    alarm: OnceLock<Alarm>,
}

thread_local! {
    static MINE: Arc<Sleeper> = Arc::new(Sleeper::new());
}

impl Sleeper {
    fn new() -> Self {
        Self {
            state: CachePadded::new(Futex::new(AWAKE)),
            owner: std::thread::current().id(),
            #[cfg(any(unix, corelay_loom, corelay_shuttle))]
            alarm: OnceLock::new(),
        }
    }

    /// The calling thread's sleeper. Late in the thread's end, when its thread-locals are gone,
    /// this makes a new one at each call.
    pub fn current() -> Arc<Self> {
        MINE.try_with(Arc::clone)
            .unwrap_or_else(|_| Arc::new(Self::new()))
    }

    /// Sleeps until woken, or for `timeout` at most; returns at once if `ready` returns true. May
    /// return early: look at the events again.
    ///
    /// # Panics
    /// On any thread but the sleeper's own.
    pub fn sleep(&self, timeout: Option<Duration>, ready: impl FnOnce() -> bool) {
        self.demand_own_thread();
        // Relaxed: ordered by the barrier. An exchange, so that it continues the order of
        // the word's changes.
        let before = self.state.word().swap(ASLEEP, Ordering::Relaxed);
        // Pairs with the light barrier of `wake_if_asleep`: the waker sees ASLEEP, or
        // `ready` sees the event.
        barrier::heavy();
        if !ready() {
            self.state.wait(ASLEEP, timeout);
        }
        // Relaxed: a superfluous wake-up does no harm.
        self.state.word().swap(AWAKE, Ordering::Relaxed);
        if before == IN_LOOP {
            // The thread was about to sleep in its event loop, and waits for something else on its
            // way there. Whoever wakes it from this wait does not ring.
            self.ring();
        }
    }

    fn demand_own_thread(&self) {
        assert!(
            self.owner == std::thread::current().id(),
            "corelay: a thread sleeps in another one's sleeper, where wake-ups are for one: ask \
             Sleeper::current() on the thread that sleeps"
        );
    }

    /// Wakes the thread if it sleeps. Call it after the event has been made visible.
    #[inline(always)]
    pub fn wake_if_asleep(&self) {
        barrier::light();
        // Relaxed: ordered by the barrier.
        if self.state.word().load(Ordering::Relaxed) != AWAKE {
            self.wake_up();
        }
    }

    #[cold]
    fn wake_up(&self) {
        // Acquire: pairs with the Release of `begin_sleep`; the alarm is there. Otherwise it carries
        // nothing: the sleeper looks at its events again.
        if self.state.word().swap(AWAKE, Ordering::Acquire) == IN_LOOP {
            self.ring();
        } else {
            self.state.wake_one();
        }
    }

    fn ring(&self) {
        #[cfg(any(unix, corelay_loom, corelay_shuttle))]
        self.alarm
            .get()
            .expect("a thread that sleeps in its event loop has an alarm")
            .ring();
    }

    /// A waker that wakes the thread if it sleeps here.
    pub fn waker(self: &Arc<Self>) -> Waker {
        Waker::from(Arc::new(Rouse(Arc::clone(self))))
    }
}

/// Sleeping in an event loop.
#[cfg(any(unix, corelay_loom, corelay_shuttle))]
impl Sleeper {
    /// The file descriptor that becomes readable when the thread is woken while it sleeps in its
    /// event loop. The loop watches it for reading and leaves the reading to
    /// [`end_sleep`](Self::end_sleep).
    ///
    /// # Errors
    /// The system gives no more file descriptors.
    #[cfg(not(any(corelay_loom, corelay_shuttle)))]
    pub fn wake_fd(&self) -> std::io::Result<std::os::fd::BorrowedFd<'_>> {
        self.alarm().map(Alarm::fd)
    }

    /// Says that the thread is about to sleep in its event loop. Returns true if it may. Returns
    /// false if `ready` returns true: then the thread counts as awake. After this has returned true,
    /// the first thread that wakes this one makes [`wake_fd`](Self::wake_fd) readable.
    ///
    /// # Errors
    /// The system gives no more file descriptors.
    ///
    /// # Panics
    /// On any thread but the sleeper's own.
    pub fn begin_sleep(&self, ready: impl FnOnce() -> bool) -> std::io::Result<bool> {
        self.demand_own_thread();
        self.alarm()?;
        // Release: pairs with the Acquire of `wake_up`; publishes the alarm. Otherwise as in
        // `sleep`.
        self.state.word().swap(IN_LOOP, Ordering::Release);
        // Pairs with the light barrier of `wake_if_asleep`: the waker sees IN_LOOP, or `ready` sees
        // the event.
        barrier::heavy();
        let may_sleep = !ready();
        if !may_sleep {
            self.end_sleep();
        }
        Ok(may_sleep)
    }

    /// Says that the thread is awake again, and takes the ring that has woken it, so that the file
    /// descriptor is no longer readable. A ring that comes late is taken at a later end of a sleep.
    pub fn end_sleep(&self) {
        // Relaxed: as in `sleep`.
        let is_woken = self.state.word().swap(AWAKE, Ordering::Relaxed) != IN_LOOP;
        if let Some(alarm) = self.alarm.get() {
            alarm.settle(is_woken);
        }
    }

    fn alarm(&self) -> std::io::Result<&Alarm> {
        if let Some(alarm) = self.alarm.get() {
            return Ok(alarm);
        }
        let new = Alarm::new()?;
        Ok(self.alarm.get_or_init(|| new))
    }

    /// Waits until a thread has rung the alarm, in the place of an event loop.
    #[cfg(any(corelay_loom, corelay_shuttle))]
    pub fn wait_in_loop(&self) {
        self.alarm().expect("models have alarms").wait();
    }

    /// Whether the alarm has rung, so that an event loop would not sleep.
    #[cfg(any(corelay_loom, corelay_shuttle))]
    pub fn has_rung(&self) -> bool {
        self.alarm().expect("models have alarms").has_rung()
    }
}

/// A sleeper as a waker, in an `Arc` of its own, which `Wake` needs.
struct Rouse(Arc<Sleeper>);

impl Wake for Rouse {
    fn wake(self: Arc<Self>) {
        self.0.wake_if_asleep();
    }
}
