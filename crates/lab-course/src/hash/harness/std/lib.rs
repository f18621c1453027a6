//! The standard library as an answer sees it while it is checked: all of it, with points in the
//! operations of its locks and atomics, at which the checker holds threads up.
//!
//! The answer is built with this crate under the name `std`. Locks are those of the real one
//! inside, so poisoning, fairness and memory orders are the same.

#![forbid(unsafe_code)]

mod atomics;
mod condvar;
mod mutex;
mod rwlock;

pub use ::std::*;

/// `std::sync` with points.
pub mod sync {
    pub use crate::condvar::Condvar;
    pub use crate::mutex::{Mutex, MutexGuard};
    pub use crate::rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard};
    pub use ::std::sync::*;

    /// `std::sync::atomic` with points.
    pub mod atomic {
        pub use crate::atomics::{
            AtomicBool, AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicIsize, AtomicPtr,
            AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize,
        };
        pub use ::std::sync::atomic::*;
    }
}

/// `std::hint` with a point in its spin hint.
pub mod hint {
    pub use ::std::hint::*;

    /// Tells that the thread waits in a loop.
    #[track_caller]
    pub fn spin_loop() {
        ::std::hint::spin_loop();
        turns::point(turns::Kind::Spin, ::std::panic::Location::caller(), 0);
    }
}

/// `std::thread` with points where a thread waits.
pub mod thread {
    pub use ::std::thread::*;
    use ::std::time::Duration;

    /// Lets other threads run.
    #[track_caller]
    pub fn yield_now() {
        ::std::thread::yield_now();
        turns::point(turns::Kind::Spin, ::std::panic::Location::caller(), 0);
    }

    /// Sleeps for a time.
    pub fn sleep(time: Duration) {
        turns::away(|| ::std::thread::sleep(time));
    }

    /// Sleeps until another thread wakes this one.
    pub fn park() {
        turns::away(::std::thread::park);
    }

    /// Sleeps until another thread wakes this one, or for a time.
    pub fn park_timeout(time: Duration) {
        turns::away(|| ::std::thread::park_timeout(time));
    }
}
