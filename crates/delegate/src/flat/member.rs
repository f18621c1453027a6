//! Members: threads that run a function of the user and serve other threads while that function
//! waits.

use super::job::Job;
use crate::catch::guarded;
use crate::client::poll::finish_clients;
use crate::context::discard::discard;
use crate::context::member::{Duty, Serve};
use crate::context::thread::in_leaf;
use crate::object::shared::Shared;
use crate::trust::Trust;
use crate::trustee::Trustee;
use corelay_sync::Backoff;
use corelay_sync::facade::sync::Arc;
use corelay_sync::facade::{MODEL, hint, thread};
use corelay_sync::trace::{self, Mark};
use corelay_sync::wait::{NoSwitch, Sleeper};
use std::cell::RefCell;
use std::fmt;

/// A member of a [`Team`](crate::Team), which the function that runs on it gets as `me`.
///
/// It stays on its thread.
pub struct Member {
    pub(super) shared: Arc<Shared>,
    number: usize,
    /// The member's trustee, borrowed while it serves.
    pub(super) trustee: RefCell<Trustee>,
    pub(super) sleeper: std::sync::Arc<Sleeper>,
    /// Whether the function has been told to sleep in its event loop: see `doze`.
    #[cfg(any(unix, corelay_loom, corelay_shuttle))]
    pub(super) is_dozing: std::cell::Cell<bool>,
}

/// The number of looks at its answer and its lanes that a waiting member takes before it yields its
/// CPU: some 100 µs.
const LOOKS: u32 = if MODEL { 0 } else { 4096 };
/// The number of looks in vain before a waiting member rings another member's doorbell, and between
/// two rings, so that not every round trip costs a line more.
const RING_AFTER: u32 = if MODEL { 1 } else { 128 };
/// The number of looks in vain before a waiting member also looks at the heads, of clients that
/// have published nothing by mail. A dedicated trustee has the same number.
const HEADS_AFTER: u32 = if MODEL { 1 } else { 256 };
const YIELDS: u32 = if MODEL { 0 } else { 64 };

/// The span in which a member's function runs, with its serving in between.
static FUNCTION: Mark = Mark::new("function").with_arg("member");

/// Runs a job on the thread of `trustee`, in place of the trustee's loop, and gives the trustee
/// back.
pub(crate) fn work(mut trustee: Trustee, job: Job) -> Trustee {
    let shared = Arc::clone(trustee.shared());
    if shared.thread.bell.hear() {
        // Rung while the trustee's own loop served: served as after any ring, but not this
        // function's doing.
        trustee.pass(false, u32::MAX);
        trustee.send_nested();
    }
    let sleeper = shared.thread.take_sleeper();
    let member = Member {
        number: job.number,
        shared,
        trustee: RefCell::new(trustee),
        sleeper,
        #[cfg(any(unix, corelay_loom, corelay_shuttle))]
        is_dozing: std::cell::Cell::new(false),
    };
    let duty = Duty {
        policy: member.shared.settings.policy.unwrap_or_default().choose(),
        shared: &member.shared,
        trustee: &member,
    };
    let mut ended = Ok(());
    duty.run(|| {
        ended = guarded(|| {
            let _span = trace::span(&FUNCTION).with(member.number as u64);
            job.run(&member);
            // The function's requests are part of its work.
            finish_clients();
        });
        if ended.is_err() {
            // The first panic counts, not those found now.
            discard(guarded(finish_clients).err());
        }
    });
    let mut trustee = member.trustee.into_inner();
    // From here on the trustee's own loop serves a thread that has rung.
    if member.shared.thread.bell.hear() {
        trustee.count_ring();
    }
    job.end(ended.err());
    trustee
}

impl Member {
    /// The number of this member in the team, from 0.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Entrusts `value` to this member itself.
    ///
    /// # Panics
    /// Inside a delegated closure.
    #[track_caller]
    pub fn entrust<T: Send + 'static>(&self, value: T) -> Trust<T> {
        NoSwitch::refuse("Member::entrust");
        Trust::new(self.trustee.borrow_mut().adopt(value))
    }

    /// Serves the requests of others to this member's objects, whatever its policy says. Returns
    /// whether there were any. For a function that computes for long without calling corelay.
    ///
    /// ```
    /// # use corelay_delegate::Trustees;
    /// let counts = Trustees::flat(2).run(|me| {
    ///     let mut served = 0;
    ///     for _step in 0..100 {
    ///         served += u32::from(me.serve()); // between steps of a long computation
    ///     }
    ///     served
    /// })?;
    /// assert_eq!(counts.len(), 2);
    /// # Ok::<(), corelay_delegate::StartError>(())
    /// ```
    pub fn serve(&self) -> bool {
        self.pass(true) > 0
    }

    /// Sleeps until there is an answer or something to serve: see [`Shared::doze`].
    fn sleep(&self, target: &Shared, done: &mut dyn FnMut() -> bool) {
        // Before a sleep, as in `Trustee::doze`. The trustee is borrowed while a pass waits.
        if let (false, Ok(trustee)) = (MODEL, self.trustee.try_borrow()) {
            trustee.publish_metrics();
        }
        self.shared.doze(&self.sleeper, || {
            // After the sleeper's barrier: see `Bell::hear`.
            target.ring();
            done() || self.pass(true) > 0
        });
    }
}

impl Serve for Member {
    /// Makes one pass of the trustee. Returns the number of requests run. Does nothing while a pass
    /// or a closure that runs at once is under way: no member serves with a delegated closure on
    /// its stack.
    fn pass(&self, heads: bool) -> u32 {
        if in_leaf() {
            return 0;
        }
        let Ok(mut trustee) = self.trustee.try_borrow_mut() else {
            return 0;
        };
        // A thread that has rung has published by mail, perhaps gone to sleep, and does not ring
        // again: so the pass serves everything.
        let batch = if self.shared.thread.bell.hear() {
            trustee.count_ring();
            u32::MAX
        } else {
            self.shared.settings.batch
        };
        let ran = trustee.pass(heads, batch);
        trustee.send_nested();
        ran
    }

    #[cold]
    fn wait_until(&self, target: &Shared, done: &mut dyn FnMut() -> bool) {
        let looks = if Backoff::new().is_yielding() {
            0
        } else {
            LOOKS
        };
        let mut idle = 0u32;
        while !done() {
            if self.pass((idle + 1).is_multiple_of(HEADS_AFTER)) > 0 {
                idle = 0;
                continue;
            }
            idle += 1;
            // Rings before it gives its CPU away: the thread that it waits for may be next on that
            // CPU.
            if idle.is_multiple_of(RING_AFTER) || idle >= looks {
                target.ring();
            }
            if idle < looks {
                hint::spin_loop();
            } else if idle < looks + YIELDS {
                thread::yield_now();
            } else {
                self.sleep(target, done);
                // After something more may follow soon.
                idle = 0;
            }
        }
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member")
            .field("number", &self.number)
            .field("name", &self.shared.name)
            .finish_non_exhaustive()
    }
}
