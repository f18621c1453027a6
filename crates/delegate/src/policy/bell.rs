//! The doorbell of a member: somebody waits for it (thesis, "Doorbell").

use corelay_sync::CachePadded;
use corelay_sync::barrier;
use corelay_sync::facade::atomic::{AtomicBool, Ordering};

/// Rung by threads that wait for a member; the member hears it when it serves.
pub(crate) struct Bell {
    rung: CachePadded<AtomicBool>,
}

impl Bell {
    pub(crate) fn new() -> Self {
        Self {
            rung: CachePadded::new(AtomicBool::new(false)),
        }
    }

    /// Asks the member to serve soon. Only some policies listen.
    pub(crate) fn ring(&self) {
        // Relaxed: so that many who wait do not pull the line to and fro. What it finds may be
        // out of date; whoever goes to sleep therefore rings behind a heavy barrier, see
        // `hear`.
        if !self.has_rung() {
            // Release: pairs with the Acquire of `hear`; the pass that follows it finds what
            // was published before.
            self.rung.store(true, Ordering::Release);
        }
    }

    /// True where somebody has rung since the last pass.
    #[inline(always)]
    pub(crate) fn has_rung(&self) -> bool {
        // Relaxed: a hint; `hear` acquires.
        self.rung.load(Ordering::Relaxed)
    }

    /// A pass begins: true where somebody has rung, once for each ring or more.
    #[inline(always)]
    pub(crate) fn hear(&self) -> bool {
        // Acquire: pairs with the Release of `ring`. An exchange, so that no ring is lost.
        if !(self.has_rung() && self.rung.swap(false, Ordering::Acquire)) {
            return false;
        }
        // Pairs with the heavy barrier of one who goes to sleep and then rings once more: it
        // finds the bell at rest, or the pass finds what it has published.
        barrier::light();
        true
    }
}
