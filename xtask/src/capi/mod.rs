//! The C interface: its header, its libraries, and the C programs that try them.
//!
//! | module | idea |
//! |---|---|
//! | `header` | `cargo xtask header` writes `corelay.h`; `tidy` finds it out of date |
//! | `install` | `cargo xtask install-capi`: header, libraries and pkg-config file in their places |
//! | `programs` | the C programs: how they are compiled and what they must say |

pub(crate) mod header;
mod install;
pub(crate) mod programs;

use crate::steps::Verdict;
use crate::workspace::Workspace;
use anyhow::Result;
pub(crate) use install::{Installed, install};
use programs::{Linked, Way};

/// The crate.
const DIR: &str = "crates/capi";
const PACKAGE: &str = "corelay-capi";

/// The gate's step, what a C programmer does: installs into the build folder, compiles every
/// program with either library, and runs it.
pub(crate) fn check(workspace: &Workspace) -> Result<Verdict> {
    let dir = workspace.target.join("capi");
    let installed = install(workspace, &dir.join("prefix"))?;
    let ways = [Linked::Shared, Linked::Static, Linked::Fixed].map(|linked| Way {
        linked,
        flags: &[],
        under: &[],
    });
    programs::try_all(workspace, &installed, &ways, &dir)
}
