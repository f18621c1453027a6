//! The side that C sees: nothing unwinds out of a call.

use crate::status::Status;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a call, and turns its result, or its panic, into a status.
#[inline(always)]
pub(crate) fn entered(call: impl FnOnce() -> Result<(), Status>) -> Status {
    // Data that a panic has left half done lies behind locks that tolerate it, or belongs to the
    // caller, who gets the status.
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => Status::Ok,
        Ok(Err(status)) => status,
        Err(payload) => {
            // The destructor of the payload may panic in turn; that second payload is leaked.
            if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
                std::mem::forget(again);
            }
            Status::Panicked
        }
    }
}

/// Refuses a null pointer.
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
