//! A barrier: all wait for the last.
//!
//! Who has come is who is in the queue; the last takes all out at once, so the queue is that of the
//! next round before anybody goes on.

use crate::spin::Spin;
use crate::wait::{Interrupted, Limit, block_within, unwind};
use crate::wait_queue::{Node, TakenAll, WaitQueue};
use crate::waiter::Waiter;
use std::cell::Cell;
use std::fmt;
use std::time::Instant;

/// Where so many fibres and threads wait for each other, again and again.
///
/// ```
/// use corelay_fibre::{Barrier, Cluster};
/// use std::sync::Arc;
///
/// // SAFETY: nothing here waits inside a thread-local's initialiser or scope.
/// let cluster = unsafe { Cluster::start(2) }?;
/// let barrier = Arc::new(Barrier::new(3));
/// let fibres: Vec<_> = (0..3)
///     .map(|_| {
///         let barrier = Arc::clone(&barrier);
///         cluster.spawn(move || barrier.wait())
///     })
///     .collect();
/// let leaders = fibres.into_iter().filter_map(|f| f.join().ok()).filter(|is_leader| *is_leader);
/// assert_eq!(leaders.count(), 1);
/// # Ok::<(), corelay_fibre::StartError>(())
/// ```
pub struct Barrier {
    /// How many wait when one more is the last.
    others: usize,
    arrivals: Spin<Arrivals>,
}

struct Arrivals {
    count: usize,
    queue: WaitQueue<()>,
}

impl Arrivals {
    /// All others, where the one who asks is the last.
    fn complete(&mut self, others: usize) -> Option<TakenAll<()>> {
        (self.count == others).then(|| {
            self.count = 0;
            self.queue.take_all()
        })
    }
}

impl Barrier {
    /// For `n`; 0 is as good as 1: nobody waits.
    pub fn new(n: usize) -> Self {
        Self {
            others: n.saturating_sub(1),
            arrivals: Spin::new(Arrivals {
                count: 0,
                queue: WaitQueue::new(),
            }),
        }
    }

    /// Waits until all have come. True for one of them: the last.
    ///
    /// A fibre that is cancelled while it waits unwinds, and has not come: the others wait for
    /// another one in its place.
    ///
    /// # Panics
    /// Where nothing may wait: see [`NoSwitch`](corelay_sync::wait::NoSwitch).
    #[track_caller]
    #[inline(always)]
    pub fn wait(&self) -> bool {
        match self.wait_within("Barrier::wait", Limit::None) {
            Ok(is_leader) => is_leader,
            Err(why) => unwind(why),
        }
    }

    /// As [`wait`](Self::wait), until `deadline` at most.
    ///
    /// # Errors
    /// The time has come, or the fibre has been cancelled, before all had come; the others wait for
    /// another one in its place.
    ///
    /// # Panics
    /// As [`wait`](Self::wait).
    #[track_caller]
    pub fn wait_until(&self, deadline: Instant) -> Result<bool, Interrupted> {
        self.wait_within("Barrier::wait_until", Limit::Until(deadline))
    }

    #[track_caller]
    #[inline(always)]
    fn wait_within(&self, call: &'static str, limit: Limit) -> Result<bool, Interrupted> {
        if let Some(others) = self
            .arrivals
            .with(|arrivals| arrivals.complete(self.others))
        {
            others.wake();
            return Ok(true);
        }
        let node = Node::new(());
        let is_last = Cell::new(false);
        let remove = |_| {
            self.arrivals.with(|arrivals| {
                // SAFETY: in this queue or in none.
                let waiter = unsafe { arrivals.queue.remove(&node) };
                arrivals.count -= usize::from(waiter.is_some());
                waiter
            })
        };
        block_within(limit, call, &remove, |waiter| {
            self.arrive(&node, waiter, &is_last)
        })?;
        Ok(is_last.get())
    }

    /// Joins those who have come; gives the waiter back where it is the last.
    #[inline(always)]
    fn arrive(&self, node: &Node<()>, waiter: Waiter, is_last: &Cell<bool>) -> Option<Waiter> {
        let (others, waiter) =
            self.arrivals
                .with(|arrivals| match arrivals.complete(self.others) {
                    Some(others) => (Some(others), Some(waiter)),
                    None => {
                        arrivals.count += 1;
                        // SAFETY: new, and its frame waits.
                        unsafe { arrivals.queue.push(node, waiter) };
                        (None, None)
                    }
                });
        if let Some(others) = others {
            is_last.set(true);
            others.wake();
        }
        waiter
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Barrier")
            .field("n", &(self.others + 1))
            .finish_non_exhaustive()
    }
}
