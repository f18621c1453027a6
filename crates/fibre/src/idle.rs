//! Processors that have nothing to do.
//!
//! Such a one sets its bit, so that what is pushed elsewhere goes where it can be taken; looks
//! around for a while; and sleeps. Who pushes reads one word that hardly ever changes, and wakes
//! one sleeper where two fibres or more are ready: a single one is run sooner by the processor
//! that has it (where that one is stuck, the [monitor](crate::monitor) finds it).
//!
//! No push is missed: the sleeper sets its bit, passes the heavy barrier of
//! [`Sleeper::sleep`](corelay_sync::wait::Sleeper::sleep), and searches once more; who pushes
//! passes the light one before it reads the bits. Their count is 0 only where the barrier is
//! asymmetric, and the light side no instruction.

use crate::processor::Processor;
use corelay_sync::facade::atomic::{AtomicU64, AtomicUsize, Ordering};
use corelay_sync::facade::hint;
use corelay_sync::wait;
use corelay_sync::{Backoff, CachePadded, barrier};

/// Which processors have nothing to do and have not been called yet.
pub(crate) struct Idle {
    /// How many bits are set, and [`FENCED`] where the barrier is not asymmetric.
    count: CachePadded<AtomicUsize>,
    bits: Box<[AtomicU64]>,
    /// Processors that run no fibre, called or not.
    pub(crate) resting: CachePadded<AtomicUsize>,
    /// Processors whose thread is blocked in a wait of a fibre.
    blocked: AtomicUsize,
}

/// Beside the count: who reads it behind a push must fence first.
const FENCED: usize = 1 << 31;

impl Idle {
    pub(crate) fn new(processors: usize) -> Self {
        Self {
            count: CachePadded::new(AtomicUsize::new(if barrier::is_asymmetric() {
                0
            } else {
                FENCED
            })),
            bits: (0..processors.div_ceil(64))
                .map(|_| AtomicU64::new(0))
                .collect(),
            resting: CachePadded::new(AtomicUsize::new(0)),
            blocked: AtomicUsize::new(0),
        }
    }

    /// A fibre is about to block its processor.
    pub(crate) fn block(&self) {
        // Relaxed, as below: a hint for the monitor.
        self.blocked.fetch_add(1, Ordering::Relaxed);
    }

    /// It goes on.
    pub(crate) fn unblock(&self) {
        self.blocked.fetch_sub(1, Ordering::Relaxed);
    }

    /// True where none of so many processors goes on by itself.
    pub(crate) fn is_still(&self, processors: usize) -> bool {
        // Relaxed: a guess, looked at twice.
        let resting = self.resting.load(Ordering::Relaxed);
        resting + self.blocked.load(Ordering::Relaxed) == processors
    }

    /// True where a processor waits to be called.
    #[inline(always)]
    pub(crate) fn is_any(&self) -> bool {
        // Relaxed: who sleeps has a barrier between this and its last search.
        self.count.load(Ordering::Relaxed) & !FENCED != 0
    }

    /// For who has pushed: false where none waits, and the push comes before that. Otherwise it
    /// passes the light barrier, and looks whether there [is any](Self::is_any).
    #[inline(always)]
    pub(crate) fn may_be_any(&self) -> bool {
        // Pairs with the heavy barrier of who sleeps, where the word is 0.
        barrier::compiler_only();
        // Relaxed: the barrier orders it.
        self.count.load(Ordering::Relaxed) != 0
    }

    fn set(&self, number: usize) {
        let (word, bit) = (&self.bits[number / 64], 1 << (number % 64));
        // Relaxed: as above; the bits carry nothing.
        if word.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
            self.count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn clear(&self, number: usize) -> bool {
        let (word, bit) = (&self.bits[number / 64], 1 << (number % 64));
        // Relaxed: as above.
        let was_set = word.fetch_and(!bit, Ordering::Relaxed) & bit != 0;
        if was_set {
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
        was_set
    }

    /// One whose bit was set, which is cleared now.
    pub(crate) fn call(&self) -> Option<usize> {
        for (at, word) in self.bits.iter().enumerate() {
            loop {
                // Relaxed: as above.
                let bits = word.load(Ordering::Relaxed);
                if bits == 0 {
                    break;
                }
                let number = at * 64 + bits.trailing_zeros() as usize;
                if self.clear(number) {
                    return Some(number);
                }
            }
        }
        None
    }
}

/// Looks around before a processor sleeps: some 20 µs.
const LOOKS: u32 = 400;

impl Processor {
    /// Nothing is ready here. Returns when something may be; false where the cluster closes.
    #[cold]
    pub(crate) fn idle(&self) -> bool {
        let shared = self.shared();
        // Relaxed: a hint for the monitor.
        shared.idle.resting.fetch_add(1, Ordering::Relaxed);
        self.waiting.set(1);
        shared.idle.set(self.number);
        let found = self.look_for_work();
        self.waiting.set(0);
        shared.idle.clear(self.number);
        // Relaxed: as above.
        shared.idle.resting.fetch_sub(1, Ordering::Relaxed);
        // A monitor that looks for stuck processors: one alone needs none.
        if found && !self.watch.is_alone() {
            shared.monitor.wake_if_asleep();
        }
        found
    }

    /// False where the cluster closes.
    fn look_for_work(&self) -> bool {
        let shared = self.shared();
        let looks = if Backoff::new().is_yielding() {
            1
        } else {
            LOOKS
        };
        loop {
            for look in 0..looks {
                if self.fetch() || self.steal() {
                    return true;
                }
                if shared.is_over() {
                    return false;
                }
                if look % 16 == 0 {
                    wait::poll_sources();
                    if !self.is_empty() {
                        return true;
                    }
                }
                hint::spin_loop();
            }
            shared.idle.set(self.number);
            let mut found = false;
            self.counters.sleeps.add(1);
            // All may wait now for good, which it says.
            if shared.is_closing() {
                shared.monitor.wake_if_asleep();
            }
            if let Some(sleeper) = self.sleeper.get() {
                sleeper.sleep(None, || {
                    wait::poll_sources();
                    found = self.fetch() || !self.is_empty() || self.steal() || shared.is_over();
                    found
                });
            }
            if found {
                return !shared.is_over();
            }
        }
    }
}
