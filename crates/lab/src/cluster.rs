//! Starting clusters of fibres: the one place that promises where their fibres do not wait.

#![allow(unsafe_code, reason = "a cluster is started with a promise")]

use corelay::fibre::{Cluster, StartError};

/// Starts a cluster of so many processors.
pub(crate) fn start(processors: usize) -> Result<Cluster, StartError> {
    // SAFETY: fibres run the lab's own loops, which use no thread-locals of their own, and wait in
    // semaphores, yields and calls of trustees, none of them inside a thread-local's initialiser,
    // destructor or scope. Closures of a user's own comparison do not run on fibres.
    unsafe { Cluster::builder().processors(processors).start() }
}
