//! Jobs of a flat team: a function that each member runs once, and the caller's wait for all of
//! them.

use super::member::Member;
use crate::context::discard::discard;
use corelay_sync::Futex;
use corelay_sync::facade::atomic::{AtomicU32, Ordering};
use corelay_sync::facade::sync::{Arc, Mutex};
use std::any::Any;

/// The function that members are to run. It stays with the thread that waits for the [`Round`].
pub(crate) type Task<'a> = dyn Fn(&Member) + Sync + 'a;

/// One member's part of a run: the function, the round to report to, and the member's number.
pub(crate) struct Job {
    task: *const Task<'static>,
    round: Arc<Round>,
    pub(crate) number: usize,
}

// SAFETY: the task is `Sync`, and the caller of `new` keeps it until the round is over.
unsafe impl Send for Job {}

impl Job {
    /// Makes a job.
    ///
    /// # Safety
    /// `task` stays where it is until `round` is over.
    pub(crate) unsafe fn new(task: &Task<'_>, round: &Arc<Round>, number: usize) -> Self {
        // SAFETY: only the lifetime changes; the caller keeps the task as long as it is used.
        let task = unsafe { std::mem::transmute::<&Task<'_>, &Task<'static>>(task) };
        Self {
            task,
            round: Arc::clone(round),
            number,
        }
    }

    /// Runs the function on `member`.
    pub(crate) fn run(&self, member: &Member) {
        // SAFETY: the caller of `new` keeps the task until the round is over, which this job's end
        // precedes.
        let task = unsafe { &*self.task };
        task(member);
    }

    /// Reports the end of the job to its round, with the payload if the function has panicked. The
    /// function may be gone from now on.
    pub(crate) fn end(self, panic: Option<Box<dyn Any + Send>>) {
        if let Some(payload) = panic {
            self.round.hold(payload);
        }
        self.round.one_less();
    }
}

/// The jobs of one run: the wait for all of them, and the first panic.
pub(crate) struct Round {
    left: Futex,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    jobs: AtomicU32,
}

impl Round {
    pub(crate) fn new(jobs: usize) -> Self {
        Self {
            left: Futex::new(1),
            panic: Mutex::new(None),
            jobs: AtomicU32::new(u32::try_from(jobs).expect("fewer than 2^32 threads")),
        }
    }

    fn hold(&self, payload: Box<dyn Any + Send>) {
        let mut first = self.panic.lock().expect("never poisoned");
        if first.is_some() {
            drop(first);
            discard(payload);
        } else {
            *first = Some(payload);
        }
    }

    fn one_less(&self) {
        // AcqRel: Release publishes what the job has done to the thread that waits for the round;
        // Acquire lets the last one pass on what all others have done.
        if self.jobs.fetch_sub(1, Ordering::AcqRel) == 1 {
            // Release: pairs with the Acquire of `wait`.
            self.left.word().store(0, Ordering::Release);
            self.left.wake_all();
        }
    }

    /// Waits until all jobs have ended. Returns the payload of the first panic.
    pub(crate) fn wait(&self) -> Option<Box<dyn Any + Send>> {
        // Acquire: pairs with the Release of `one_less`.
        while self.left.word().load(Ordering::Acquire) != 0 {
            self.left.wait(1, None);
        }
        self.panic.lock().expect("never poisoned").take()
    }
}

/// Single parts of a member, for the tests of the model checkers.
#[cfg(any(corelay_loom, corelay_shuttle))]
pub(crate) mod checked {
    use super::Round;
    use crate::dedicated::Trustees;
    use crate::object::shared::Shared;
    use crate::object::thread::TrusteeThread;

    /// The doorbell of a member: see [`TrusteeThread`].
    pub struct Doorbell(TrusteeThread);

    impl Default for Doorbell {
        fn default() -> Self {
            Self(TrusteeThread::new())
        }
    }

    impl Doorbell {
        /// Rings the bell, as a thread does that waits for the member.
        pub fn ring(&self) {
            self.0.bell.ring();
        }

        /// Takes the ring, as the member does at a pass. Returns whether a thread has rung.
        pub fn hear(&self) -> bool {
            self.0.bell.hear()
        }
    }

    /// The shared state of a member that dozes: see [`Shared::doze`].
    pub struct Dozer(Shared);

    impl Default for Dozer {
        fn default() -> Self {
            Self(Shared::new(
                Trustees::dedicated(1).settings(0),
                String::new(),
            ))
        }
    }

    impl Dozer {
        /// Sleeps, as the member's thread does, unless `look` finds something.
        pub fn doze(&self, look: impl FnOnce() -> bool) {
            let sleeper = self.0.thread.take_sleeper();
            self.0.doze(&sleeper, look);
        }

        /// Sleeps in the place of an event loop, unless `look` finds something.
        pub fn doze_in_loop(&self, look: impl FnOnce() -> bool) {
            let sleeper = self.0.thread.take_sleeper();
            if self.0.begin_doze(&sleeper, look).expect("an alarm") {
                sleeper.wait_in_loop();
                sleeper.end_sleep();
                self.0.end_doze();
            }
        }

        /// Rouses the member, as a client does after it has published something.
        pub fn rouse(&self) {
            assert!(self.0.rouse_if_needed(), "it has not closed");
        }

        /// Tells the member that requests that wait on it are to be refused, as a launched closure
        /// does whose wait has closed a ring.
        pub fn refuse(&self) {
            self.0.tell_of_refusals();
        }

        /// Whether the member has been told of refusals.
        pub fn has_refused(&self) -> bool {
            self.0.take_refusals()
        }
    }

    /// The jobs of one run: see [`Round`].
    pub struct Jobs(Round);

    impl Jobs {
        /// Begins a run of so many jobs.
        pub fn new(jobs: usize) -> Self {
            Self(Round::new(jobs))
        }

        /// Ends one job.
        pub fn end(&self) {
            self.0.one_less();
        }

        /// Waits for all jobs.
        pub fn wait(&self) {
            self.0.wait();
        }
    }
}
