//! shuttle with ten times the gate's schedules, ignored models included.

use super::Came;
use crate::binaries::Checker;
use crate::models::{self, Options};
use crate::workspace::Workspace;
use anyhow::Result;

pub(super) fn run(workspace: &Workspace) -> Result<Came> {
    let options = Options {
        checker: Checker::Shuttle,
        filter: None,
        with_ignored: true,
        environment: Vec::new(),
        rounds: 10,
        budget: None,
        limit: None,
    };
    Ok(Came::of(&models::run(workspace, &options)?))
}
