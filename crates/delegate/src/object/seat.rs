//! What others may do to a trustee's thread: wake it, and, where it is a member of a flat team, ring its
//! doorbell and give it work.

use crate::policy::bell::Bell;
use crate::wire::inbox::{Kind, Node};
use corelay_sync::facade::sync::Mutex;
use corelay_sync::wait::Sleeper;
use std::any::Any;
use std::sync::OnceLock;

/// Work for the trustee, which knows its type: this module does not know trustees.
pub(crate) type Job = Box<dyn Any + Send>;

/// The part of a trustee's shared state that concerns its thread.
pub(crate) struct Seat {
    pub(crate) bell: Bell,
    /// The sleeper of the trustee's thread.
    sleeper: OnceLock<std::sync::Arc<Sleeper>>,
    job: Mutex<Option<Job>>,
    /// Announces a job.
    pub(crate) work: Node,
}

impl Seat {
    pub(crate) fn new() -> Self {
        Self {
            bell: Bell::new(),
            sleeper: OnceLock::new(),
            job: Mutex::new(None),
            work: Node::new(Kind::Work),
        }
    }

    /// Says where the trustee's thread sleeps: in the calling thread's sleeper.
    pub(crate) fn take_sleeper(&self) -> std::sync::Arc<Sleeper> {
        std::sync::Arc::clone(self.sleeper.get_or_init(Sleeper::current))
    }

    /// Wakes the thread, which dozes or is about to.
    pub(crate) fn wake(&self) {
        self.sleeper
            .get()
            .expect("a trustee says where it sleeps before it does")
            .wake_if_asleep();
    }

    /// Leaves a job, to be announced by [`work`](Self::work).
    pub(crate) fn give(&self, job: Job) {
        *self.job.lock().expect("never poisoned") = Some(job);
    }

    /// The job that has been announced.
    pub(crate) fn take(&self) -> Option<Job> {
        self.job.lock().expect("never poisoned").take()
    }
}
