//! Whether the fibres of a benchmark stay where they first ran: the one place that is unsafe.

#![allow(unsafe_code, reason = "letting fibres migrate has duties")]

use super::fibre::{Cluster, JoinHandle, SpawnError};

/// Whether fibres stay on the processor on which they first ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mobility {
    /// They do: what safe code gets.
    Stays,
    /// Any processor may go on with them.
    Migrates,
}

impl Mobility {
    /// Spawns a fibre of this kind. Only for the bodies of this folder: see below.
    pub(super) fn spawn<T: Send + 'static>(
        self,
        cluster: &Cluster,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> Result<JoinHandle<T>, SpawnError> {
        let builder = cluster.fibre();
        let builder = match self {
            Self::Stays => builder,
            // SAFETY: the bodies of this folder hold counts, generators of random numbers and
            // references into shared atomics and semaphores, all of them `Send`, and no borrow
            // of a thread-local over a call that may switch: `processor` returns a number.
            Self::Migrates => unsafe { builder.migrating() },
        };
        builder.spawn(body)
    }
}
