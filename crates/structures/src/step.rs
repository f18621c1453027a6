//! Schedules that loom would not run by itself.

/// Lets other threads run, under loom only. It comes before a thread reads a word that it may then
/// write.
///
/// Loom remembers only the last access of each word, so a thread that reads a word and then changes
/// it hides that another one has read it. Writes to one word, which this makes, hide nothing.
///
/// The first call makes the word, and orders later calls after it, which hides stale reads. So a
/// structure makes it when it is made itself.
#[inline(always)]
pub(crate) fn step() {
    #[cfg(corelay_loom)]
    {
        use corelay_sync::facade::atomic::{AtomicUsize, Ordering};
        corelay_sync::facade::lazy_static! {
            static ref STEPS: AtomicUsize = AtomicUsize::new(0);
        }
        // Relaxed: it orders nothing.
        STEPS.store(0, Ordering::Relaxed);
    }
}
