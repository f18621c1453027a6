//! Starting clusters of fibres: the one place that promises where the benchmarks' fibres do not wait.

#![allow(unsafe_code, reason = "a cluster is started with a promise")]

use corelay::fibre::{Cluster, StartError};

/// Starts a cluster of so many processors.
pub(crate) fn start(processors: usize) -> Result<Cluster, StartError> {
    // SAFETY: fibres run the loops of this crate's benchmarks, which use no thread-locals of their
    // own and wait in semaphores and yields, none of them inside a thread-local's initialiser,
    // destructor or scope. What a user compares does not run on fibres.
    unsafe { Cluster::builder().processors(processors).start() }
}
