//! Every mutant, applied.

use super::Came;
use crate::mutants::{self, Options};
use crate::workspace::Workspace;
use anyhow::Result;

pub(super) fn run(workspace: &Workspace) -> Result<Came> {
    Ok(Came::of(&mutants::run(workspace, &Options::default())?))
}
