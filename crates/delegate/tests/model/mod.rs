//! How models with a whole trustee in them are explored. `LOOM_MAX_PREEMPTIONS` sets the number of
//! preemptions; the gate asks for two, `cargo xtask deep` for three.

use corelay_delegate::Trustees;
use corelay_sync::Futex;
use corelay_sync::facade::atomic::Ordering;
use corelay_sync::facade::sync::Arc;
use loom::model::Builder;

/// Preemptions if `LOOM_MAX_PREEMPTIONS` is not set.
const GATE: usize = 2;

/// Explores all of a trustee's life, with one preemption fewer than asked for: it takes hundreds of
/// steps.
#[allow(dead_code, reason = "each file of models has one of the two kinds")]
pub(crate) fn model(f: impl Fn() + Sync + Send + 'static) {
    explore(1, f);
}

/// Explores one scene of it, with all preemptions asked for. The steps that lead to the scene, and
/// away from it, are left [`unexplored`].
#[allow(dead_code, reason = "as above")]
pub(crate) fn scene(f: impl Fn() + Sync + Send + 'static) {
    explore(0, f);
}

/// Runs `f`, and the other threads meanwhile, in one order and without stale reads. Only one thread
/// at a time may ask for it.
#[allow(dead_code, reason = "as above")]
pub(crate) fn unexplored<R>(f: impl FnOnce() -> R) -> R {
    loom::stop_exploring();
    let result = f();
    loom::explore();
    result
}

/// Runs all of a trustee's life, and explores the [`explored`] parts of it, with all preemptions
/// asked for.
#[allow(dead_code, reason = "as above")]
pub(crate) fn excerpt(f: impl Fn() + Sync + Send + 'static) {
    explore_explicitly(0, f);
}

/// Like [`excerpt`], with one preemption fewer: for long parts.
#[allow(dead_code, reason = "as above")]
pub(crate) fn long_excerpt(f: impl Fn() + Sync + Send + 'static) {
    explore_explicitly(1, f);
}

/// Like [`excerpt`], with two preemptions fewer: for the ends of two trustees.
#[allow(dead_code, reason = "as above")]
pub(crate) fn longest_excerpt(f: impl Fn() + Sync + Send + 'static) {
    explore_explicitly(2, f);
}

/// Runs `f`, and the other threads meanwhile, in every order. Only one thread at a time may ask for
/// it.
#[allow(dead_code, reason = "as above")]
pub(crate) fn explored<R>(f: impl FnOnce() -> R) -> R {
    loom::explore();
    let result = f();
    loom::stop_exploring();
    result
}

fn explore_explicitly(fewer: usize, f: impl Fn() + Sync + Send + 'static) {
    let mut builder = builder(fewer);
    builder.expect_explicit_explore = true;
    builder.check(f);
}

fn explore(fewer: usize, f: impl Fn() + Sync + Send + 'static) {
    builder(fewer).check(f);
}

fn builder(fewer: usize) -> Builder {
    let mut builder = Builder::new();
    let asked = builder.preemption_bound.unwrap_or(GATE);
    builder.preemption_bound = Some(asked.saturating_sub(fewer));
    builder.max_branches = 20_000;
    builder
}

/// One trustee, with room for two requests of each client.
#[allow(dead_code, reason = "some ask for another kind")]
pub(crate) fn trustees() -> Trustees {
    Trustees::dedicated(1).window(2).start().unwrap()
}

/// A flag that a closure or a destructor raises and another thread waits for, without corelay.
#[derive(Clone)]
pub(crate) struct Flag(Arc<Futex>);

impl Flag {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Futex::new(0)))
    }

    pub(crate) fn raise(&self) {
        // Release: pairs with the Acquire of `wait`.
        self.0.word().store(1, Ordering::Release);
        self.0.wake_all();
    }

    pub(crate) fn wait(&self) {
        // Acquire: pairs with the Release of `raise`.
        while self.0.word().load(Ordering::Acquire) == 0 {
            self.0.wait(0, None);
        }
    }
}
