//! Tasks that wait until a client's window has room.
//!
//! A task that finds the window full leaves a waker here. It gets in by its *ticket*: a task is let
//! in if there is room for it and for all that came before it, and a request without a ticket waits
//! behind all. Calls that block their thread take room as they find it, because the tasks may need that
//! thread.
//!
//! **Nobody is forgotten.** The client's thread enters a task, passes the heavy barrier, and looks
//! at the tail again. The trustee advances the tail, passes the light barrier, and looks at the
//! count. Either the trustee sees the task and wakes it, or the client's thread sees the tail, and
//! tries again. Whoever takes a task out lets others in: the task may have been woken and leave
//! without a request, and the trustee may have executed its request while it still stood here, so
//! that the room it had made seemed to be that task's.

use corelay_sync::barrier;
use corelay_sync::facade::atomic::{AtomicU32, Ordering};
use corelay_sync::facade::sync::Mutex;
use std::collections::BTreeMap;
use std::task::Waker;

/// A task's place in the order of all tasks that wait for room at the same trustee.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(pub(crate) u64);

/// The tasks that wait for room in one client's window.
pub(crate) struct Waiters {
    window: u32,
    /// The number of tasks. The trustee reads it after each batch.
    count: AtomicU32,
    /// The tasks in their order. Those without a waker have been woken.
    tasks: Mutex<BTreeMap<Ticket, Option<Waker>>>,
}

impl Waiters {
    pub(crate) fn new(window: u32) -> Self {
        Self {
            window,
            count: AtomicU32::new(0),
            tasks: Mutex::default(),
        }
    }

    /// Runs `f` on the tasks, and counts them again.
    fn change<R>(&self, f: impl FnOnce(&mut BTreeMap<Ticket, Option<Waker>>) -> R) -> R {
        let mut tasks = self.tasks.lock().expect("never poisoned");
        let result = f(&mut tasks);
        // Relaxed: the lock orders it for those who change it, and the barriers for the trustee.
        self.count.store(tasks.len() as u32, Ordering::Relaxed);
        result
    }

    /// Whether a task waits. The caller has passed the light barrier since the tail was advanced.
    #[inline(always)]
    pub(crate) fn is_any(&self) -> bool {
        // Relaxed: ordered by the barrier.
        self.count.load(Ordering::Relaxed) != 0
    }

    /// The number of tasks that go before one with this ticket, or of all.
    pub(crate) fn ahead(&self, ticket: Option<Ticket>) -> u32 {
        if !self.is_any() {
            return 0;
        }
        let tasks = self.tasks.lock().expect("never poisoned");
        let ahead = match ticket {
            Some(ticket) => tasks.range(..ticket).count(),
            None => tasks.len(),
        };
        ahead as u32
    }

    /// Enters a task, or its new waker. Called by the client's thread, which looks at the tail
    /// afterwards. Returns the task's old waker, for the caller to drop.
    pub(crate) fn enter(&self, ticket: Ticket, waker: Waker) -> Option<Waker> {
        let was_empty = !self.is_any();
        let old = self.change(|tasks| tasks.insert(ticket, Some(waker)));
        if was_empty {
            // Pairs with the light barrier of the trustee. Later tasks need none: the trustee has
            // looked under the lock since, or this thread has seen its last tail.
            barrier::heavy();
        }
        old.flatten()
    }

    /// Takes a task out that waits here no more. Returns its waker, and those of the tasks for which
    /// there is room beside the requests that `queued` counts, for the caller to wake.
    pub(crate) fn leave(
        &self,
        ticket: Ticket,
        queued: impl FnOnce() -> u32,
    ) -> (Option<Waker>, Vec<Waker>) {
        self.change(|tasks| {
            let own = tasks.remove(&ticket).flatten();
            (own, self.first(tasks, queued()))
        })
    }

    /// Takes the wakers of the tasks for which there is room beside `queued` requests.
    pub(crate) fn let_in(&self, queued: u32) -> Vec<Waker> {
        self.change(|tasks| self.first(tasks, queued))
    }

    /// The wakers of the first tasks, as many as there is room for, without those that have been woken.
    fn first(&self, tasks: &mut BTreeMap<Ticket, Option<Waker>>, queued: u32) -> Vec<Waker> {
        let room = self.window.saturating_sub(queued) as usize;
        let first = tasks.values_mut().take(room);
        first.filter_map(Option::take).collect()
    }

    /// Takes all tasks out, because the client ends. They go to other clients.
    pub(crate) fn close(&self) -> Vec<Waker> {
        let tasks = self.change(std::mem::take);
        tasks.into_values().flatten().collect()
    }
}
