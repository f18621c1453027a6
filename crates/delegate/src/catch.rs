//! Catches the panics of user code.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `f`, catching its panic. Under loom a panic is the checker's verdict and passes.
#[inline(always)]
pub(crate) fn guarded<R>(f: impl FnOnce() -> R) -> Result<R, Box<dyn Any + Send>> {
    if cfg!(corelay_loom) {
        Ok(f())
    } else {
        catch_unwind(AssertUnwindSafe(f))
    }
}
