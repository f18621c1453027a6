//! The promise by which tests start clusters.

#![allow(dead_code, reason = "each test file uses a part")]

use corelay_fibre::{Cluster, ClusterBuilder, StartError};

/// A cluster with this number of processors.
pub(crate) fn cluster(processors: usize) -> Cluster {
    start(Cluster::builder().processors(processors)).expect("there are threads")
}

/// Starts a cluster with the settings of `builder`.
pub(crate) fn start(builder: ClusterBuilder) -> Result<Cluster, StartError> {
    // SAFETY: the tests wait nowhere inside a thread-local's initialiser, destructor or scope.
    unsafe { builder.start() }
}
