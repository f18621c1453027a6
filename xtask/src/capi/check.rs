//! The gate's step: what a C programmer does, from the installation on.

use super::install;
use super::programs::{Linked, PROGRAMS, compile, complaints};
use crate::Verdict;
use crate::workspace::Workspace;
use anyhow::Result;

/// Installs into the build folder, compiles every program in each way, runs it.
pub(crate) fn run(workspace: &Workspace) -> Result<Verdict> {
    let dir = workspace.target.join("capi");
    let installed = install(workspace, &dir.join("prefix"))?;
    let mut all = Vec::new();
    for program in PROGRAMS {
        for linked in [Linked::Shared, Linked::Static, Linked::Fixed] {
            let path = compile(workspace, &installed, program, linked, &[], &dir)?;
            all.extend(complaints(program, &path, &[])?);
        }
    }
    for complaint in &all {
        println!("capi: {complaint}");
    }
    println!("capi: {} complaints", all.len());
    Ok(Verdict::of(all.is_empty()))
}
