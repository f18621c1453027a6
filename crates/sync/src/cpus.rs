//! Can another thread make progress while this one spins?

use corelay_topology::{Topology, is_pinned_beyond, process_affinity};
use std::sync::OnceLock;

/// True where more than one CPU works for this process, by affinity and quota. Looked up
/// once per process.
#[inline]
pub(crate) fn can_spin() -> bool {
    if cfg!(corelay_lines) {
        // Each thread has a place of its own, whatever this computer has.
        return true;
    }
    static MANY: OnceLock<bool> = OnceLock::new();
    // A program may have pinned the thread that asked first, and the others elsewhere.
    *MANY.get_or_init(many) || is_pinned_beyond()
}

/// `available_parallelism` knows quotas, but sees one CPU where the calling thread is
/// pinned, though others run elsewhere.
#[cold]
fn many() -> bool {
    if std::thread::available_parallelism().is_ok_and(|n| n.get() > 1) {
        return true;
    }
    process_affinity().len() > 1
        && Topology::current()
            .quota_cpus()
            .is_none_or(|cpus| cpus >= 2.0)
}
