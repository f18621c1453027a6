//! A word that threads can sleep on until it changes.

use crate::facade::atomic::{AtomicU32, Ordering};
use crate::trace::{self, Mark};
use std::time::Duration;

static SLEEP: Mark = Mark::new("sleep");
static WAKE_ONE: Mark = Mark::new("wake one");
static WAKE_ALL: Mark = Mark::new("wake all");

/// A 32-bit word that threads can sleep on.
///
/// The sleeper compares the word under the kernel's lock, so a wake-up between its last look and
/// its sleep is not lost. Wake-ups may be spurious: callers look again. Linux uses the `futex`
/// system call; elsewhere, and in the models, a mutex and a condition variable stand beside the
/// word.
///
/// ```
/// use corelay_sync::Futex;
/// use corelay_sync::facade::atomic::Ordering;
///
/// let ready = Futex::new(0);
/// std::thread::scope(|s| {
///     s.spawn(|| {
///         // Release: pairs with the Acquire below.
///         ready.word().store(1, Ordering::Release);
///         ready.wake_one();
///     });
///     while ready.word().load(Ordering::Acquire) == 0 {
///         ready.wait(0, None);
///     }
/// });
/// ```
#[derive(Debug, Default)]
pub struct Futex {
    word: AtomicU32,
    #[cfg(not(all(
        target_os = "linux",
        not(any(corelay_loom, corelay_shuttle, corelay_lines))
    )))]
    fallback: portable::Fallback,
}

impl Futex {
    /// A futex whose word holds `value`.
    pub fn new(value: u32) -> Self {
        Self {
            word: AtomicU32::new(value),
            #[cfg(not(all(
                target_os = "linux",
                not(any(corelay_loom, corelay_shuttle, corelay_lines))
            )))]
            fallback: portable::Fallback::default(),
        }
    }

    /// The word itself, for loads, stores and exchanges.
    #[inline(always)]
    pub fn word(&self) -> &AtomicU32 {
        &self.word
    }

    /// Sleeps while the word is `expected`, until woken or for `timeout` at most.
    pub fn wait(&self, expected: u32, timeout: Option<Duration>) {
        let _span = trace::span(&SLEEP);
        self.sleep(expected, timeout);
    }

    /// Wakes one sleeper. Call it after the word has been changed.
    pub fn wake_one(&self) {
        trace::instant(&WAKE_ONE, ());
        self.wake(1);
    }

    /// Wakes all sleepers. Call it after the word has been changed.
    pub fn wake_all(&self) {
        trace::instant(&WAKE_ALL, ());
        self.wake(i32::MAX);
    }
}

#[cfg(all(
    target_os = "linux",
    not(any(corelay_loom, corelay_shuttle, corelay_lines))
))]
impl Futex {
    fn sleep(&self, expected: u32, timeout: Option<Duration>) {
        let timespec = timeout.map(|t| libc::timespec {
            tv_sec: libc::time_t::try_from(t.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: libc::c_long::from(t.subsec_nanos() as i32),
        });
        let deadline = timespec
            .as_ref()
            .map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: `&self` keeps the word and this frame keeps the timespec until the call returns;
        // FUTEX_WAIT only reads them. Every result (woken, changed, interrupted, timed out) means
        // "look again".
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.word.as_ptr(),
                libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
                expected,
                deadline,
            );
        }
    }

    fn wake(&self, count: i32) {
        // SAFETY: FUTEX_WAKE uses the address as a key and reads no memory.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.word.as_ptr(),
                libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
                count,
            );
        }
    }
}

#[cfg(not(all(
    target_os = "linux",
    not(any(corelay_loom, corelay_shuttle, corelay_lines))
)))]
mod portable {
    use super::{AtomicU32, Duration, Futex, Ordering};
    use crate::facade::sync::{Condvar, Mutex};

    #[derive(Debug)]
    pub(super) struct Fallback {
        lock: Mutex<()>,
        changed: Condvar,
    }

    impl Default for Fallback {
        fn default() -> Self {
            Self {
                lock: Mutex::new(()),
                changed: Condvar::new(),
            }
        }
    }

    impl Futex {
        /// Sleeps while the word is `expected`, until woken or for `timeout` at most.
        pub(super) fn sleep(&self, expected: u32, timeout: Option<Duration>) {
            let guard = self.fallback.lock.lock().unwrap();
            // Acquire: the caller may rely on what the changer wrote before the change.
            if self.word.load(Ordering::Acquire) != expected {
                return;
            }
            match timeout {
                None => drop(self.fallback.changed.wait(guard).unwrap()),
                Some(t) => drop(self.fallback.changed.wait_timeout(guard, t).unwrap()),
            }
        }

        /// Wakes one sleeper if `count` is 1, otherwise all.
        pub(super) fn wake(&self, count: i32) {
            // The lock orders this wake-up after a sleeper's look at the word.
            drop(self.fallback.lock.lock().unwrap());
            if count == 1 {
                self.fallback.changed.notify_one();
            } else {
                self.fallback.changed.notify_all();
            }
        }
    }

    // The type is named so that both platforms read alike.
    const _: fn() -> AtomicU32 = || AtomicU32::new(0);
}

#[cfg(all(
    target_os = "linux",
    not(any(corelay_loom, corelay_shuttle, corelay_lines))
))]
const _: Ordering = Ordering::Relaxed;
