//! The counters of a trustee.

use corelay_sync::CachePadded;
use corelay_sync::facade::atomic::{AtomicU64, Ordering};

/// The work of a trustee since its start. All fields are counts. For an example see
/// [`Trustees::shutdown`](crate::Trustees::shutdown).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[non_exhaustive]
pub struct Metrics {
    /// The number of requests that the trustee has executed. They include those that it refused,
    /// for example because the object was poisoned, and the records by which clients move to larger
    /// rings.
    pub requests: u64,
    /// The number of batches: times that the trustee found requests of a client and ran them.
    pub batches: u64,
    /// The number of passes, which are looks at all clients in turn.
    pub passes: u64,
    /// The number of passes that found work.
    pub passes_with_work: u64,
    /// The number of times that the trustee slept.
    pub sleeps: u64,
    /// The number of times that a member of a flat team found its doorbell rung, at a pass that its
    /// function made or at the function's end. A thread rings after it has looked for an answer in
    /// vain for some microseconds: the member's function does not serve, a closure takes long, or
    /// the member's thread has no CPU. Several rings between two looks count once, and so does all
    /// the time that a function blocks without calling corelay. Always 0 for a dedicated trustee.
    pub rings: u64,
    /// The number of closures, destructors, callbacks and wakers that panicked on the trustee's
    /// thread.
    pub panics: u64,
}

/// The [`Metrics`] that the trustee last published: when idle, now and then when busy, and at its
/// end.
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
            // Relaxed: each is a figure of its own; nothing is handed over.
            counter.store(now, Ordering::Relaxed);
        }
    }

    pub(crate) fn load(&self) -> Metrics {
        // Relaxed: each is a figure of its own; nothing is handed over.
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
