//! The free stacks of this thread.
//!
//! All clusters share their stacks, for good: a handle to a fibre may outlive its cluster, and the
//! fibre's record lies on its stack.

use super::pool::{LocalStacks, Stacks};
use super::{Kind, Stack, StackError};
use std::cell::RefCell;
use std::sync::{Arc, LazyLock};

static STACKS: LazyLock<Arc<Stacks>> = LazyLock::new(Stacks::new);

thread_local! {
    static LOCAL: RefCell<LocalStacks> = RefCell::new(LocalStacks::new(Arc::clone(&STACKS)));
}

/// Not inlined, as whatever looks at a thread-local on a fibre: see
/// [`here`](crate::processor::here).
#[inline(never)]
fn with_local<R>(f: impl Fn(&mut LocalStacks) -> R) -> R {
    match LOCAL.try_with(|local| f(&mut local.borrow_mut())) {
        Ok(result) => result,
        // Late in a thread's end.
        Err(_) => f(&mut LocalStacks::new(Arc::clone(&STACKS))),
    }
}

/// Takes a stack, which is the caller's until it is given back.
pub(crate) fn take(kind: Kind) -> Result<Stack, StackError> {
    with_local(|local| local.take(kind))
}

/// Gives a stack back.
///
/// # Safety
/// It was [taken](take), nothing on it will be used again, and nobody gives it a second time.
pub(crate) unsafe fn give(stack: Stack) {
    // SAFETY: the caller's duties.
    with_local(|local| unsafe { local.give(stack) });
}

/// Gives memory of free stacks back to the system, for a processor that has nothing else to do.
pub(crate) fn trim() {
    STACKS.trim(KEEP);
}

/// Free stacks of each kind whose memory is kept.
const KEEP: usize = 1024;
