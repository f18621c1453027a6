//! shuttle with ten times the gate's schedules, ignored models included.

use super::Came;
use crate::binaries::Checker;
use crate::models::{self, Options};
use crate::workspace::Workspace;
use anyhow::Result;

/// Schedules per model. The tests' own default is a tenth of it.
const ITERATIONS: u32 = 10_000;

pub(super) fn run(workspace: &Workspace) -> Result<Came> {
    let options = Options {
        checker: Checker::Shuttle,
        filter: None,
        with_ignored: true,
        environment: vec![("CORELAY_SHUTTLE_ITERATIONS", ITERATIONS.to_string())],
        budget: None,
    };
    Ok(Came::of(&models::run(workspace, &options)?))
}
