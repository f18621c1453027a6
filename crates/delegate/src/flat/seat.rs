//! What others may do to a member: give it work, ring its doorbell, wake it.

use super::member::Member;
use crate::inbox::{Kind, Node};
use corelay_sync::facade::atomic::{AtomicBool, AtomicU32, Ordering};
use corelay_sync::facade::sync::{Arc, Mutex};
use corelay_sync::wait::Sleeper;
use corelay_sync::{CachePadded, Futex, barrier};
use std::any::Any;
use std::sync::OnceLock;

/// The part of a trustee's shared state that only members of flat teams use.
pub(crate) struct Seat {
    /// Somebody waits for this member (thesis, "Doorbell").
    bell: CachePadded<AtomicBool>,
    /// The sleeper of the trustee's thread.
    sleeper: OnceLock<std::sync::Arc<Sleeper>>,
    job: Mutex<Option<Job>>,
    /// Announces a job.
    pub(crate) work: Node,
}

impl Seat {
    pub(crate) fn new() -> Self {
        Self {
            bell: CachePadded::new(AtomicBool::new(false)),
            sleeper: OnceLock::new(),
            job: Mutex::new(None),
            work: Node::new(Kind::Work),
        }
    }

    /// Asks the member to serve soon. Only some policies listen.
    pub(crate) fn ring(&self) {
        // Relaxed: so that many who wait do not pull the line to and fro. What it finds may be
        // out of date; whoever goes to sleep therefore rings behind a heavy barrier, see
        // `hear`.
        if !self.has_rung() {
            // Release: pairs with the Acquire of `hear`; the pass that follows it finds what
            // was published before.
            self.bell.store(true, Ordering::Release);
        }
    }

    /// True where somebody has rung since the last pass.
    #[inline(always)]
    pub(crate) fn has_rung(&self) -> bool {
        // Relaxed: a hint; `hear` acquires.
        self.bell.load(Ordering::Relaxed)
    }

    /// A pass begins: true where somebody has rung, once for each ring or more.
    #[inline(always)]
    pub(crate) fn hear(&self) -> bool {
        // Acquire: pairs with the Release of `ring`. An exchange, so that no ring is lost.
        if !(self.has_rung() && self.bell.swap(false, Ordering::Acquire)) {
            return false;
        }
        // Pairs with the heavy barrier of one who goes to sleep and then rings once more: it
        // finds the bell at rest, or the pass finds what it has published.
        barrier::light();
        true
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

/// What a member is to run. The function stays with whoever waits for [`Round`].
pub(crate) type Task<'a> = dyn Fn(&Member) + Sync + 'a;

/// A function to be run by one member.
pub(crate) struct Job {
    task: *const Task<'static>,
    round: Arc<Round>,
    pub(crate) number: usize,
}

// SAFETY: the task is `Sync`, and kept until the round is over.
unsafe impl Send for Job {}

impl Job {
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

    /// Runs the task.
    pub(crate) fn run(&self, member: &Member) {
        // SAFETY: the round is not over before this job has ended.
        let task = unsafe { &*self.task };
        task(member);
    }

    /// The job has ended, perhaps with a panic. The task is gone from now on.
    pub(crate) fn end(self, panic: Option<Box<dyn Any + Send>>) {
        if let Some(payload) = panic {
            self.round.hold(payload);
        }
        self.round.one_less();
    }
}

/// The jobs of one run: who waits for them, and the first panic.
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
            crate::discard::discard(payload);
        } else {
            *first = Some(payload);
        }
    }

    fn one_less(&self) {
        // AcqRel: Release, what the job has done is seen by whoever waits for the round;
        // Acquire, the last one passes on what all others have done.
        if self.jobs.fetch_sub(1, Ordering::AcqRel) == 1 {
            // Release: pairs with the Acquire of `wait`.
            self.left.word().store(0, Ordering::Release);
            self.left.wake_all();
        }
    }

    /// Waits until all jobs have ended; the first panic of one.
    pub(crate) fn wait(&self) -> Option<Box<dyn Any + Send>> {
        // Acquire: pairs with the Release of `one_less`.
        while self.left.word().load(Ordering::Acquire) != 0 {
            self.left.wait(1, None);
        }
        self.panic.lock().expect("never poisoned").take()
    }
}

/// Parts of it without a member, for the models.
#[cfg(any(corelay_loom, corelay_shuttle))]
pub(crate) mod checked {
    use super::{Round, Seat};
    use crate::dedicated::Trustees;
    use crate::trustee::Shared;

    /// See [`Seat`].
    pub struct Doorbell(Seat);

    impl Default for Doorbell {
        fn default() -> Self {
            Self(Seat::new())
        }
    }

    impl Doorbell {
        /// One who waits.
        pub fn ring(&self) {
            self.0.ring();
        }

        /// The member; true where it is to serve.
        pub fn hear(&self) -> bool {
            self.0.hear()
        }
    }

    /// What others know of a member: see [`Shared::doze`].
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
        /// The member's thread: sleeps, unless it finds something.
        pub fn doze(&self, look: impl FnOnce() -> bool) {
            let sleeper = self.0.seat.take_sleeper();
            self.0.doze(&sleeper, look);
        }

        /// A client that has published something.
        pub fn rouse(&self) {
            assert!(self.0.rouse_if_needed(), "it has not closed");
        }

        /// A closure whose wait has had requests refused.
        pub fn refuse(&self) {
            self.0.tell_of_refusals();
        }

        /// True where there are such.
        pub fn has_refused(&self) -> bool {
            self.0.take_refusals()
        }
    }

    /// See [`Round`].
    pub struct Jobs(Round);

    impl Jobs {
        /// So many are to end.
        pub fn new(jobs: usize) -> Self {
            Self(Round::new(jobs))
        }

        /// One has ended.
        pub fn end(&self) {
            self.0.one_less();
        }

        /// Waits for all.
        pub fn wait(&self) {
            self.0.wait();
        }
    }
}
