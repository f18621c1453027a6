//! The calls of a client thread besides its requests: poll, barrier, and leaving.

use super::connect::for_each_client;
use crate::context::discard::discard;
use crate::context::member::serve_once;
use crate::context::state::{Activity, ThreadState};
use crate::context::thread::{self, KeptClient};
use crate::error::BarrierError;
use corelay_sync::trace::{self, Mark};
use corelay_sync::wait::NoSwitch;
use std::sync::Arc;

/// A call of [`barrier`], with the callbacks that it runs.
static BARRIER: Mark = Mark::new("barrier");

/// Runs the callbacks of requests of this thread that have been answered. Does not wait. On a
/// member of a flat team it serves too.
///
/// ```
/// # use corelay_delegate::{Trustees, poll};
/// # use std::{cell::Cell, rc::Rc};
/// let trustees = Trustees::dedicated(1).start().unwrap();
/// let hits = trustees.entrust(1u64);
/// let seen = Rc::new(Cell::new(0));
/// let note = Rc::clone(&seen);
/// hits.apply_then(|h| *h, move |n| note.set(n));
/// while seen.get() == 0 {
///     poll(); // between other work
/// }
/// ```
///
/// # Panics
/// Inside a delegated closure or a callback. With the panic of a callback, after all callbacks that
/// could run have run.
#[track_caller]
pub fn poll() {
    refuse("corelay::poll");
    serve_once();
    run_callbacks();
}

/// Runs the callbacks of requests of this thread that have been answered, and publishes requests.
/// Does not wait. Returns whether a callback has run.
///
/// # Panics
/// The same as for [`poll`].
pub(crate) fn run_callbacks() -> bool {
    let Some(state) = thread::state() else {
        return false;
    };
    let mut some = state.has_left_callbacks();
    for_each_client(|client| some |= client.catch_up());
    if state.has_left_callbacks() {
        some = true;
        state.run_callback(|| ());
    }
    state.raise_held();
    some
}

/// Waits until every request of this thread is done and its callbacks have run, including the
/// requests that callbacks make.
///
/// ```
/// # use corelay_delegate::{Trustees, barrier};
/// let trustees = Trustees::dedicated(1).start().unwrap();
/// let log = trustees.entrust(Vec::new());
/// (0..3).for_each(|i| log.post(move |log| log.push(i)));
/// barrier().unwrap(); // all three have run
///
/// log.post(|log| assert!(log.is_empty(), "three are there"));
/// let failed = barrier().unwrap_err();
/// assert_eq!((failed.count(), failed.message()), (1, "three are there"));
/// ```
///
/// # Errors
/// Requests without an answer have failed since the last barrier: they panicked, reached a poisoned
/// object or were refused as part of a ring of launched closures. The error has their number and
/// the first one's payload.
///
/// # Panics
/// Inside a delegated closure or a callback. With the panic of a callback, after all callbacks have
/// run.
#[track_caller]
pub fn barrier() -> Result<(), BarrierError> {
    refuse("corelay::barrier");
    let Some(state) = thread::state() else {
        return Ok(());
    };
    let _span = trace::span(&BARRIER);
    let mut error: Option<BarrierError> = None;
    let mut report = |faults: Option<BarrierError>| {
        if let Some(faults) = faults {
            match &mut error {
                None => error = Some(faults),
                Some(earlier) => discard(earlier.merge(faults)),
            }
        }
    };
    finish_all(&state, |orphan| report(orphan.take_faults()));
    state.raise_held();
    report(state.take_own_faults());
    for_each_client(|client| report(client.take_faults()));
    error.map_or(Ok(()), Err)
}

/// Waits until every request of this thread is done, as [`barrier`] does, and drops the failures
/// that no barrier has reported. For the end of a member's function.
pub(crate) fn finish_clients() {
    let Some(state) = thread::state() else { return };
    finish_all(&state, |_| ());
    discard(state.take_own_faults());
    for_each_client(|client| discard(client.take_faults()));
    state.raise_held();
}

fn finish_all(state: &ThreadState, mut orphan_ends: impl FnMut(&dyn KeptClient)) {
    // Callbacks on one client may make requests on another, so this goes on until no client has
    // anything.
    loop {
        let mut idle = true;
        for_each_client(|client| {
            idle &= client.is_idle();
            client.finish();
        });
        while let Some(orphan) = state.take_orphan() {
            idle = false;
            orphan.finish(true);
            orphan_ends(&*orphan);
        }
        if state.has_left_callbacks() {
            idle = false;
            state.run_callback(|| ());
        }
        if idle {
            return;
        }
    }
}

/// Panics inside a delegated closure or a callback, where `call` is not allowed.
#[track_caller]
pub(crate) fn refuse(call: &str) {
    NoSwitch::refuse(call);
    if thread::activity() != Activity::Idle {
        panic!("corelay: {call} inside a callback: the call that runs callbacks is under way");
    }
}

/// A guard that ends this thread's time as a client when it is dropped: it waits for the answers,
/// runs the callbacks, and gives the thread's channels back.
///
/// A thread does the same at its end, by a thread-local destructor. But `std::thread::scope` does
/// not wait for those: hold a guard in each scoped thread whose callbacks must have run when the
/// scope ends (the thesis's barrier before the join).
///
/// Panics of callbacks that run only then, and failures that no [`barrier`] has reported, are
/// dropped: call [`barrier`] before to learn of them. Dropped inside a callback, a delegated
/// closure or a destructor that corelay runs, a guard does nothing.
///
/// ```
/// # use corelay_delegate::{ClientGuard, Trustees};
/// # use std::sync::atomic::{AtomicU64, Ordering};
/// let trustees = Trustees::dedicated(1).start().unwrap();
/// let hits = trustees.entrust(0u64);
/// static SEEN: AtomicU64 = AtomicU64::new(0);
/// std::thread::scope(|s| {
///     s.spawn(|| {
///         let _client = ClientGuard::new();
///         hits.apply_then(|h| { *h += 1; *h }, |n| SEEN.store(n, Ordering::Relaxed));
///     });
/// });
/// assert_eq!(SEEN.load(Ordering::Relaxed), 1);
/// ```
#[derive(Debug)]
pub struct ClientGuard {
    _of_this_thread: std::marker::PhantomData<*const ()>,
}

impl ClientGuard {
    /// A guard for the calling thread.
    #[allow(clippy::new_without_default)] // It is an act, not a value.
    pub fn new() -> Self {
        Self {
            _of_this_thread: std::marker::PhantomData,
        }
    }
}

impl ClientGuard {
    /// A guard for the calling thread, which as a client has that name from now on:
    /// [`Trustees::report`](crate::Trustees::report) shows it. Without a guard's name a client has
    /// its thread's. The name outlives the guard.
    ///
    /// ```
    /// # use corelay_delegate::{ClientGuard, Trustees};
    /// let trustees = Trustees::dedicated(1).start().unwrap();
    /// let hits = trustees.entrust(0u64);
    /// let _client = ClientGuard::named("front end");
    /// hits.apply(|h| *h += 1);
    /// let report = trustees.report();
    /// assert_eq!(report.trustees[0].clients[0].name.as_deref(), Some("front end"));
    /// ```
    pub fn named(name: &str) -> Self {
        if let Some(state) = thread::state() {
            trace::name_thread(name);
            let name = Arc::from(name);
            for_each_client(|client| client.rename(&name));
            state.set_name(name);
        }
        Self::new()
    }
}

impl Drop for ClientGuard {
    fn drop(&mut self) {
        thread::retire_clients();
    }
}
