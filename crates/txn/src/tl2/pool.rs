//! A thread's log, lent to its running transaction; and which transactions run here.
//!
//! A transaction takes the log out and puts it back. If a fibre waits inside its transaction,
//! another transaction of the thread finds none and makes one; it does not matter which of them is
//! kept. Only the transaction itself remembers anything across a wait.

use super::log::Log;
use corelay_sync::facade::atomic::{AtomicU64, Ordering};
use corelay_sync::facade::thread_local;
use corelay_sync::wait;
use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

#[derive(Default)]
struct Pool {
    log: Cell<Option<Box<Log>>>,
    running: RefCell<Vec<Running>>,
}

thread_local! {
    static POOL: Pool = Pool::default();
}

/// A transaction that began on this thread and has not ended here.
struct Running {
    who: usize,
    domain: u64,
    /// For a coroutine's transaction, which may end on another thread: the log's count, and its
    /// value when the transaction began. If the count has changed, the transaction has ended.
    ended: Option<(Arc<AtomicU64>, u64)>,
}

/// A name for the coroutine or thread that runs here. No two that live have the same name; a thread
/// that is ending has none (0).
#[cold]
#[inline(never)]
pub(crate) fn who_is_here() -> usize {
    POOL.try_with(|pool| who(pool).0).unwrap_or(0)
}

fn who(pool: &Pool) -> (usize, bool) {
    match wait::running() {
        Some(stand) => (stand.addr().get(), true),
        None => (std::ptr::from_ref(pool).addr(), false),
    }
}

/// A log that is lent to a transaction for as long as it runs. Dropping the lease puts the log back
/// into the pool of the thread that drops it.
#[derive(Debug)]
pub(super) struct Lease {
    log: ManuallyDrop<Box<Log>>,
    who: usize,
}

impl Lease {
    /// Takes this thread's log for a transaction of `domain`, or makes one.
    ///
    /// # Panics
    /// If a transaction of that domain runs already, on this thread or in this fibre.
    // Not inlined, nor is `put_back`: after a move to another thread it must find that one's pool.
    #[inline(never)]
    #[track_caller]
    pub(super) fn take(domain: u64) -> Self {
        let taken = POOL.try_with(|pool| {
            let (who, is_coroutine) = who(pool);
            let mut running = pool.running.borrow_mut();
            if !running.is_empty() {
                refuse_nested(&mut running, who, domain);
            }
            let mut log = pool.log.take().unwrap_or_else(|| Box::new(Log::of(domain)));
            let ended = is_coroutine.then(|| {
                let ended = log.ended.get_or_insert_default();
                // Relaxed: a hint, compared on the thread where the transaction that changes it has
                // run.
                (Arc::clone(ended), ended.load(Ordering::Relaxed))
            });
            running.push(Running { who, domain, ended });
            (log, who)
        });
        // A thread that is ending has no pool any more.
        let (mut log, who) = taken.unwrap_or_else(|_| (Box::new(Log::of(domain)), 0));
        log.belong_to(domain);
        Self {
            log: ManuallyDrop::new(log),
            who,
        }
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn refuse_nested(running: &mut Vec<Running>, who: usize, domain: u64) {
    running.retain(|other| {
        let ended = other.ended.as_ref();
        // Relaxed: see `take`.
        ended.is_none_or(|(ended, then)| ended.load(Ordering::Relaxed) == *then)
    });
    let nested = running
        .iter()
        .any(|other| other.who == who && other.domain == domain);
    assert!(
        !nested,
        "corelay: `atomically` inside `atomically`: call what is inside with the outer one's `tx` \
         instead of beginning another transaction"
    );
}

#[inline(never)]
fn put_back(log: Box<Log>, who: usize) {
    let domain = log.domain;
    if let Some(ended) = &log.ended {
        // Relaxed: see `take`.
        ended.fetch_add(1, Ordering::Relaxed);
    }
    let _ = POOL.try_with(|pool| {
        let mut running = pool.running.borrow_mut();
        let at = running
            .iter()
            .rposition(|other| other.who == who && other.domain == domain);
        if let Some(at) = at {
            running.swap_remove(at);
        }
        drop(running);
        // The old log is dropped only after it has been replaced.
        drop(pool.log.replace(Some(log)));
    });
}

impl Deref for Lease {
    type Target = Log;
    #[inline(always)]
    fn deref(&self) -> &Log {
        &self.log
    }
}

impl DerefMut for Lease {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.log
    }
}

impl Drop for Lease {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: this is the only `take`: the lease is being dropped.
        let log = unsafe { ManuallyDrop::take(&mut self.log) };
        put_back(log, self.who);
    }
}
