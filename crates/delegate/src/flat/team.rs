//! Members, from start to shutdown; giving them work.

use super::job::{Job, Round, Task};
use super::member::{Member, work};
use crate::context::member::is_member;
use crate::dedicated::{Builder, Trustees};
use crate::metrics::Metrics;
use crate::policy::Policy;
use crate::trustee::Work;
use crate::trustee::spawn::StartError;
use corelay_sync::facade::sync::{Arc, Mutex};
use corelay_sync::wait::NoSwitch;
use std::fmt;
use std::ops::Deref;
use std::panic::resume_unwind;
use std::time::Duration;

/// Threads that are clients and trustees at once.
///
/// A team's members are trustees: everything that [`Trustees`] offers is here too, above all
/// `entrust` (to the members in turn), `entrust_on` (to a chosen one) and `entrust_all` (spread).
/// The members also run a function together, each serving the others wherever it waits.
///
/// ```
/// use corelay_delegate::{StartError, Trustees, barrier};
///
/// let team = Trustees::flat(2).start()?;
/// let words = team.entrust_all([0u64; 100]);
/// let seen = team.run(|me| {
///     for word in &words {
///         word.post(|n| *n += 1); // half of them are this member's own
///     }
///     barrier().expect("no closure panics");
///     me.number()
/// });
/// assert_eq!(seen, [0, 1]);
/// assert!(words.iter().all(|word| word.apply(|n| *n) == 2)); // from outside
/// # Ok::<(), StartError>(())
/// ```
pub struct Team {
    trustees: Trustees,
    /// A lock that is held while the members run a function, so that there is one run at a time.
    running: Mutex<()>,
}

impl Trustees {
    /// Returns settings for a team of `n` members, each client and trustee on a thread of its own.
    /// Nothing happens before [`start`](TeamBuilder::start) or [`run`](TeamBuilder::run).
    ///
    /// There may be more members than CPUs. That works, but a member that waits then keeps the CPU
    /// from the one that it waits for.
    pub fn flat(n: usize) -> TeamBuilder {
        let mut base = Self::dedicated(n).name("member");
        base.policy = Some(Policy::default());
        TeamBuilder { base }
    }
}

/// The settings of a team to be started, from [`Trustees::flat`] to [`start`](Self::start).
///
/// ```
/// use corelay_delegate::{Policy, StartError, Trustees};
///
/// let numbers = Trustees::flat(3)
///     .policy(Policy::Bound(64))
///     .window(64)
///     .name("worker")
///     .run(|me| me.number())?;
/// assert_eq!(numbers, [0, 1, 2]);
///
/// let refused = Trustees::flat(2).policy(Policy::Bound(0)).start();
/// assert!(matches!(refused, Err(StartError::Bound(0))));
/// # Ok::<(), StartError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "members run once started"]
pub struct TeamBuilder {
    base: Builder,
}

impl TeamBuilder {
    /// Sets when a member serves although it need not wait: ordinarily [`Policy::Adaptive`].
    pub fn policy(mut self, policy: Policy) -> Self {
        self.base.policy = Some(policy);
        self
    }

    /// Sets the window, like [`Builder::window`].
    pub fn window(mut self, requests: usize) -> Self {
        self.base = self.base.window(requests);
        self
    }

    /// Sets the batch, like [`Builder::batch`].
    pub fn batch(mut self, requests: usize) -> Self {
        self.base = self.base.batch(requests);
        self
    }

    /// Sets the bytes of rings, like [`Builder::ring_bytes`].
    pub fn ring_bytes(mut self, bytes: usize) -> Self {
        self.base = self.base.ring_bytes(bytes);
        self
    }

    /// Sets the polling time of a member whose function has ended, like [`Builder::spin`].
    pub fn spin(mut self, budget: Duration) -> Self {
        self.base = self.base.spin(budget);
        self
    }

    /// Sets the name of the threads, like [`Builder::name`].
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.base = self.base.name(name);
        self
    }

    /// Observes the members, like [`Builder::observe`]: members are trustees, and
    /// [`Trustees::report`] says more of them.
    ///
    /// ```
    /// use corelay_delegate::{StartError, Trustees};
    ///
    /// let team = Trustees::flat(1).observe(true).start()?;
    /// assert!(team.report().trustees[0].observed.is_some());
    /// # Ok::<(), StartError>(())
    /// ```
    pub fn observe(mut self, observe: bool) -> Self {
        self.base = self.base.observe(observe);
        self
    }

    /// Sets the time from which a closure is slow, like [`Builder::slow`].
    #[cfg(feature = "tracing")]
    pub fn slow(mut self, from: std::time::Duration) -> Self {
        self.base = self.base.slow(from);
        self
    }

    /// Pins the members, like [`Builder::pin`].
    pub fn pin(mut self, cpus: impl IntoIterator<Item = usize>) -> Self {
        self.base = self.base.pin(cpus);
        self
    }

    /// Sets the stack size, like [`Builder::stack_size`]. A member's function runs on that stack,
    /// too.
    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.base = self.base.stack_size(bytes);
        self
    }

    /// Starts the members, which serve until they are given work.
    ///
    /// # Errors
    /// [`StartError`]; no thread is left running then.
    pub fn start(self) -> Result<Team, StartError> {
        Ok(Team {
            trustees: self.base.start()?,
            running: Mutex::new(()),
        })
    }

    /// Starts the members, has each run `f`, and ends them: [`start`](Self::start),
    /// [`Team::run`] and a shutdown.
    ///
    /// ```
    /// use corelay_delegate::Trustees;
    /// use std::sync::OnceLock;
    ///
    /// let total = OnceLock::new();
    /// let sums = Trustees::flat(2).run(|me| {
    ///     let total = total.get_or_init(|| me.entrust(0u64));
    ///     total.apply(|t| { *t += 1; *t })
    /// })?;
    /// assert_eq!(sums.iter().max(), Some(&2));
    /// # Ok::<(), corelay_delegate::StartError>(())
    /// ```
    ///
    /// # Errors
    /// [`StartError`]; `f` has not run then.
    ///
    /// # Panics
    /// The same as for [`Team::run`].
    #[track_caller]
    pub fn run<R: Send>(self, f: impl Fn(&Member) -> R + Sync) -> Result<Vec<R>, StartError> {
        let team = self.start()?;
        let results = team.run(f);
        team.shutdown();
        Ok(results)
    }
}

impl Team {
    /// Has each member run `f`, and waits for all. Returns the results by the members' numbers.
    ///
    /// A member serves the others while it waits in a call of corelay, when its [`Policy`] says so,
    /// in [`poll`](crate::poll) and [`Member::serve`], and from its function's end on. Before it
    /// counts as ended, the requests of its function have been done and their callbacks have run,
    /// as by [`barrier`](crate::barrier).
    ///
    /// `f` may borrow from the caller. The calling thread sleeps; it is not a member. Another
    /// thread that calls `run` meanwhile waits for its turn.
    ///
    /// # Panics
    /// With the first panic of a member's function, or of a callback that it has not waited
    /// for, when all have ended: the others are not disturbed. Inside a member's function or a
    /// delegated closure.
    #[track_caller]
    pub fn run<R: Send>(&self, f: impl Fn(&Member) -> R + Sync) -> Vec<R> {
        NoSwitch::refuse("Team::run");
        assert!(
            !is_member(),
            "corelay: Team::run inside a member's function: it would wait without serving; \
             call what is to be run instead"
        );
        let results: Vec<_> = self
            .members
            .iter()
            .map(|_| std::sync::Mutex::new(None))
            .collect();
        let task = |member: &Member| {
            let result = f(member);
            *results[member.number()].lock().expect("one thread has it") = Some(result);
        };
        let panic = self.run_round(&task);
        if let Some(payload) = panic {
            resume_unwind(payload);
        }
        let result = |cell: std::sync::Mutex<Option<R>>| cell.into_inner().ok().flatten();
        results
            .into_iter()
            .map(|cell| result(cell).expect("every function has ended well"))
            .collect()
    }

    fn run_round(&self, task: &Task<'_>) -> Option<Box<dyn std::any::Any + Send>> {
        let _turn = self.running.lock().expect("never poisoned");
        let round = Arc::new(Round::new(self.members.len()));
        for (number, member) in self.members.iter().enumerate() {
            let shared = &member.shared;
            // SAFETY: this frame, which borrows the task, waits for the round; nothing in between
            // unwinds.
            let job = unsafe { Job::new(task, &round, number) };
            let work: Work = Box::new(move |trustee| work(trustee, job));
            shared.thread.give(Box::new(work));
            // SAFETY: the node belongs to this member alone and is in no inbox, since its last job
            // has ended.
            let taken = unsafe { shared.inbox.push(&raw const shared.thread.work_node) };
            debug_assert!(taken, "the team has not been shut down: it is borrowed");
            shared.rouse_if_needed();
        }
        round.wait()
    }

    /// Ends the members, like [`Trustees::shutdown`].
    ///
    /// # Panics
    /// Inside a delegated closure.
    #[track_caller]
    pub fn shutdown(self) -> Vec<Metrics> {
        self.trustees.shutdown()
    }
}

impl Deref for Team {
    type Target = Trustees;

    fn deref(&self) -> &Trustees {
        &self.trustees
    }
}

impl fmt::Debug for Team {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.trustees.fmt(f)
    }
}
