//! `core` with the atomics of the checked `std`, so that an answer may name either.

#![forbid(unsafe_code)]

pub use ::core::*;

/// `core::sync` with points in its atomics.
pub mod sync {
    pub use ::core::sync::*;
    pub use checked::sync::atomic;
}

/// `core::hint` with a point in its spin hint.
pub mod hint {
    pub use ::core::hint::*;
    pub use checked::hint::spin_loop;
}
