//! The C interface: its header.
//!
//! | module | idea |
//! |---|---|
//! | `header` | `cargo xtask header` writes `corelay.h`; `tidy` finds it out of date |

pub(crate) mod header;

/// The crate.
const DIR: &str = "crates/capi";
