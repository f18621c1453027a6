//! Closures that may be taken back until their trustee begins them.

use crate::operation::Operation;
use corelay_sync::facade::atomic::{AtomicBool, Ordering};
use corelay_sync::facade::cell::UnsafeCell;
use corelay_sync::facade::sync::Arc;

/// A closure that two sides may take: its trustee, to run it, and its sender, to take it back.
/// The side that comes first has it.
pub(crate) struct Claim<F>(Arc<Inner<F>>);

struct Inner<F> {
    is_taken: AtomicBool,
    closure: UnsafeCell<Option<F>>,
}

// SAFETY: the exchange in `take` lets one thread use the cell, before the last handle goes, and the
// `Arc` orders that handle's drop after it.
unsafe impl<F: Send> Sync for Inner<F> {}

impl<F> Claim<F> {
    pub(crate) fn new(closure: F) -> Self {
        Self(Arc::new(Inner {
            is_taken: AtomicBool::new(false),
            closure: UnsafeCell::new(Some(closure)),
        }))
    }

    /// The claim of the other side.
    pub(crate) fn share(&self) -> Self {
        Self(Arc::clone(&self.0))
    }

    /// Takes the closure, unless the other side has.
    pub(crate) fn take(&self) -> Option<F> {
        // Relaxed: the closure was there before the claim was shared, and only one thread uses it.
        if self.0.is_taken.swap(true, Ordering::Relaxed) {
            return None;
        }
        // SAFETY: of all exchanges only this one has found false, so nobody else uses the cell
        // before the last handle is dropped.
        self.0
            .closure
            .with_mut(|closure| unsafe { &mut *closure }.take())
    }
}

/// The trustee's side: runs the closure unless the sender has taken it back, and has its name.
impl<T, R, F: Operation<T, R>> Operation<T, Option<R>> for Claim<F> {
    fn run(self, value: &mut T) -> Option<R> {
        self.take().map(|f| f.run(value))
    }

    fn run_boxed(self: Box<Self>, value: &mut T) -> Option<R> {
        self.run(value)
    }

    fn name() -> &'static str {
        F::name()
    }
}

/// A claim for the models.
#[cfg(any(corelay_loom, corelay_shuttle))]
pub mod checked {
    use super::Claim;

    /// One side of a claim.
    pub struct Side<F>(Claim<F>);

    impl<F> Side<F> {
        /// Both sides of a claim of `closure`.
        pub fn both(closure: F) -> (Self, Self) {
            let claim = Claim::new(closure);
            (Self(claim.share()), Self(claim))
        }

        /// Takes the closure, unless the other side has.
        pub fn take(self) -> Option<F> {
            self.0.take()
        }
    }
}
