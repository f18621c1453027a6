//! Events of the crate `tracing`, in builds with the feature of that name.
//!
//! Each function belongs to a slow path, and first compares the level that subscribers want, which
//! is a load and a branch. Whatever else `tracing` does runs code of the user, the subscriber: it is
//! run as such, like a [destructor](super::discard). Its panics end here. On the thread of a trustee
//! or a member it is a leaf, which may not wait; in a launched closure and elsewhere it is a
//! callback. It is not suspended, because `tracing` keeps its state in thread-locals meanwhile.

use super::discard::run_aside;
use super::leaf::Leaf;
use super::serving::Serving;
use super::thread::{in_leaf, in_turn};
use crate::error::{CircularWait, payload_message};
use crate::object::Header;
use crate::object::shared::Shared;
use crate::observe::sampler::Slow;
use crate::wait_graph::describe;
use corelay_sync::wait::on_thread;
use std::any::Any;
use std::cell::Cell;
use std::thread;
use std::time::{Duration, Instant};
use tracing::level_filters::LevelFilter;
use tracing::{Level, Span, event, span};

thread_local! {
    /// Whether a subscriber is being told on this thread. What it does itself is not told: a
    /// subscriber whose requests wait for room would be told without end.
    static TELLS: Cell<bool> = const { Cell::new(false) };
}

/// Runs `tell`, which tells the subscriber, unless none wants events of this level.
fn tell(level: Level, tell: impl FnOnce()) {
    if LevelFilter::current() >= level && !TELLS.get() {
        run(tell);
    }
}

/// Runs the subscriber's code.
fn run(tell: impl FnOnce()) {
    let told_before = TELLS.replace(true);
    // A trustee may be anywhere in its loop, and a member anywhere in a call that serves.
    let serves = Serving::with_current(|_| ()).is_some() && !in_turn() && !in_leaf();
    let _leaf = serves.then(Leaf::enter_subscriber);
    run_aside(|| {
        let _not_suspended = on_thread();
        tell();
    });
    TELLS.set(told_before);
}

/// Nanoseconds as a field: 584 years at most.
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A wait for room in a client's window, by a thread, a fibre or a task: a span from the moment at which
/// it begins, and an event in it when it has ended. The span is never entered, because a fibre or task
/// may go on on another thread.
#[derive(Default)]
pub(crate) struct WaitForRoom(Option<(Instant, Span)>);

impl WaitForRoom {
    /// Begins the wait, unless it has begun. Called where callbacks may run.
    pub(crate) fn begin(&mut self, trustee: &Shared) {
        if self.0.is_some() || LevelFilter::current() < Level::DEBUG {
            return;
        }
        let mut span = Span::none();
        tell(Level::DEBUG, || {
            span = span!(
                target: "corelay::wait_for_room",
                Level::DEBUG,
                "wait_for_room",
                trustee = &*trustee.name,
                window = trustee.settings.window,
            );
        });
        self.0 = Some((Instant::now(), span));
    }

    /// Ends the wait: the request has been sent, or can be. Returns whether anybody was told. Called
    /// where callbacks may run.
    pub(crate) fn end(&mut self, trustee: &Shared) -> bool {
        let Some((since, span)) = self.0.take() else {
            return false;
        };
        let waited = nanos(since.elapsed());
        tell(Level::DEBUG, || {
            event!(
                target: "corelay::wait_for_room",
                parent: &span,
                Level::DEBUG,
                trustee = &*trustee.name,
                window = trustee.settings.window,
                waited_ns = waited,
                "a client's window or ring was full"
            );
        });
        close(span);
        true
    }
}

impl Drop for WaitForRoom {
    /// Closes the span of a task that gives its request up.
    fn drop(&mut self) {
        if let Some((_, span)) = self.0.take() {
            close(span);
        }
    }
}

/// Tells the subscriber that a span has ended, if it knows the span.
fn close(span: Span) {
    if !span.is_none() {
        run(|| drop(span));
    }
}

/// Tells that `closure` has panicked with `payload`, which has poisoned `object`.
pub(crate) fn poisoned(object: &Header, closure: &'static str, payload: &(dyn Any + Send)) {
    tell(Level::ERROR, || {
        event!(
            target: "corelay::poisoned",
            Level::ERROR,
            trustee = &*object.trustee.name,
            object = describe(object),
            closure,
            panic = payload_message(payload),
            "a closure has panicked, its object is poisoned"
        );
    });
}

/// Tells that a wait was refused because it would have closed `ring`.
pub(crate) fn refused_circular(ring: &CircularWait) {
    tell(Level::ERROR, || {
        let objects = ring.objects().collect::<Vec<_>>().join(" -> ");
        event!(
            target: "corelay::circular_wait",
            Level::ERROR,
            objects,
            "launched closures would have waited for each other in a ring"
        );
    });
}

/// Tells of a closure that has taken long, on its trustee's thread, when its batch has ended.
pub(crate) fn ran_slowly(slow: Option<Slow>) {
    let Some(Slow { name, took }) = slow else {
        return;
    };
    tell(Level::WARN, || {
        event!(
            target: "corelay::slow_closure",
            Level::WARN,
            trustee = thread::current().name(),
            closure = name(),
            took_ns = nanos(took),
            "a closure has kept its trustee"
        );
    });
}
