//! The C interface: its header, its libraries, and the C programs that try them.
//!
//! | module | idea |
//! |---|---|
//! | `header` | `cargo xtask header` writes `corelay.h`; `tidy` finds it out of date |
//! | `install` | `cargo xtask install-capi`: header, libraries and pkg-config file in their places |
//! | `programs` | the C programs: how they are compiled and what they must say |
//! | `check` | the gate's step: every program, with either library |

mod check;
pub(crate) mod header;
mod install;
pub(crate) mod programs;

pub(crate) use check::run as check;
pub(crate) use install::{Installed, install};

/// The crate.
const DIR: &str = "crates/capi";
const PACKAGE: &str = "corelay-capi";
