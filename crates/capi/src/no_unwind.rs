//! The border to C: nothing unwinds across it.

use crate::status::Status;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Does what a call is to do, and says how it went.
#[inline(always)]
pub(crate) fn entered(call: impl FnOnce() -> Result<(), Status>) -> Status {
    // What a panic may have left half done is behind locks that do not mind, or belongs to
    // the caller, who is told.
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => Status::Ok,
        Ok(Err(status)) => status,
        Err(payload) => {
            // Its destructor may panic in turn; what that throws is leaked.
            if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
                std::mem::forget(again);
            }
            Status::Panicked
        }
    }
}

/// Refuses NULL.
#[inline(always)]
pub(crate) fn wanted<T>(to: *const T) -> Result<(), Status> {
    if to.is_null() {
        Err(Status::Null)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_status() {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("and again");
            }
        }
        assert_eq!(entered(|| panic!("a defect")), Status::Panicked);
        assert_eq!(entered(|| std::panic::panic_any(Bomb)), Status::Panicked);
        assert_eq!(entered(|| Err(Status::Full)), Status::Full);
        assert_eq!(entered(|| Ok(())), Status::Ok);
    }
}
