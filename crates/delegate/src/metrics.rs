//! What a trustee counts.

use corelay_sync::CachePadded;
use corelay_sync::facade::atomic::{AtomicU64, Ordering};

/// A trustee's work since its start. All are counts. For an example see
/// [`Trustees::shutdown`](crate::Trustees::shutdown).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// Closures run or refused, jumps into larger rings included.
    pub requests: u64,
    /// Times that a client had something to run.
    pub batches: u64,
    /// Looks at all clients in turn.
    pub passes: u64,
    /// Passes that found work.
    pub passes_with_work: u64,
    /// Times that the trustee slept.
    pub sleeps: u64,
    /// Times that a member of a flat team found its doorbell rung: at a pass that its function
    /// made, or at the function's end. Whoever has looked for an answer in vain for some
    /// microseconds rings, because the function does not serve, a closure takes long, or the
    /// member's thread has no CPU. Several who wait at a time count once, and so does all the
    /// time that a function blocks without calling corelay. Always 0 for a dedicated trustee.
    pub rings: u64,
    /// Closures and destructors that panicked.
    pub panics: u64,
}

/// [`Metrics`] as their trustee last published them: when idle, now and then when busy, and at
/// its end.
#[derive(Default)]
pub(crate) struct Counters(CachePadded<[AtomicU64; 7]>);

impl Counters {
    pub(crate) fn store(&self, m: &Metrics) {
        let now = [
            m.requests,
            m.batches,
            m.passes,
            m.passes_with_work,
            m.sleeps,
            m.rings,
            m.panics,
        ];
        for (counter, now) in self.0.iter().zip(now) {
            // Relaxed: counters, each for itself.
            counter.store(now, Ordering::Relaxed);
        }
    }

    pub(crate) fn load(&self) -> Metrics {
        // Relaxed: as above.
        let [
            requests,
            batches,
            passes,
            passes_with_work,
            sleeps,
            rings,
            panics,
        ] = self
            .0
            .each_ref()
            .map(|counter| counter.load(Ordering::Relaxed));
        Metrics {
            requests,
            batches,
            passes,
            passes_with_work,
            sleeps,
            rings,
            panics,
        }
    }
}
