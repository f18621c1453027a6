//! The end of a server, which another thread or a signal may ask for.

use mio::Waker;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The end of a server.
pub(crate) struct Ending {
    has_begun: AtomicBool,
    /// The threads that still have connections.
    busy: AtomicUsize,
    wakers: Mutex<Vec<Waker>>,
}

impl Ending {
    pub(crate) fn new(threads: usize) -> Self {
        Self {
            has_begun: AtomicBool::new(false),
            busy: AtomicUsize::new(threads),
            wakers: Mutex::default(),
        }
    }

    /// Adds an event loop that is to be woken. To be called before it first asks [`has_begun`](Self::has_begun).
    pub(crate) fn wakes(&self, waker: Waker) {
        let mut wakers = self.wakers.lock().unwrap_or_else(PoisonError::into_inner);
        wakers.push(waker);
    }

    /// Tells all threads to end.
    pub(crate) fn begin(&self) -> io::Result<()> {
        // Before the lock: a thread that is not among the wakers yet will see it.
        self.has_begun.store(true, Ordering::SeqCst);
        let wakers = self.wakers.lock().unwrap_or_else(PoisonError::into_inner);
        wakers.iter().try_for_each(Waker::wake)
    }

    /// Whether threads are to end.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::SeqCst)
    }

    /// A thread has closed its last connection, and makes no more requests to other shards.
    pub(crate) fn leave(&self) {
        // Release and Acquire: what the last one has asked for has been answered.
        if self.busy.fetch_sub(1, Ordering::AcqRel) == 1 {
            let _ = self.begin();
        }
    }

    /// Whether all threads have closed their connections.
    pub(crate) fn is_over(&self) -> bool {
        self.busy.load(Ordering::Acquire) == 0
    }
}
