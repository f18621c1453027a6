//! `cargo xtask tidy`: what a compiler does not check.

mod design;
mod facade;
mod floors;
mod leftovers;
mod links;
mod lock;
mod models;
mod shadows;
mod size;
mod sources;

use crate::Verdict;
use crate::workspace::Workspace;
use anyhow::Result;
use std::fmt;

/// Something to be put right, or to be thought about.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    place: String,
    what: String,
    warning: bool,
}

impl Finding {
    /// Makes the check fail. `what` says what is wrong and how to fix it.
    pub(crate) fn error(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            what: what.into(),
            warning: false,
        }
    }

    /// Is only shown.
    pub(crate) fn warning(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            what: what.into(),
            warning: true,
        }
    }

    /// `file:line`.
    #[cfg(test)]
    pub(crate) fn place(&self) -> &str {
        &self.place
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.warning { "warning: " } else { "" };
        write!(f, "{}: {kind}{}", self.place, self.what)
    }
}

/// Runs every check and prints what it finds.
pub(crate) fn run(workspace: &Workspace) -> Result<Verdict> {
    let findings = [
        floors::check(workspace)?,
        facade::check(workspace)?,
        models::check(workspace)?,
        leftovers::check(workspace)?,
        shadows::check(workspace)?,
        size::check(workspace)?,
        lock::check(workspace)?,
        links::check(workspace)?,
        design::check(workspace)?,
        sources::check(workspace)?,
        crate::mutants::stale(workspace)?,
        crate::capi::header::check(workspace)?,
    ]
    .concat_all();
    for finding in &findings {
        println!("{finding}");
    }
    let errors = findings.iter().filter(|finding| !finding.warning).count();
    println!(
        "tidy: {errors} errors, {} warnings",
        findings.len() - errors
    );
    Ok(Verdict::of(errors == 0))
}

trait ConcatAll {
    fn concat_all(self) -> Vec<Finding>;
}

impl<const N: usize> ConcatAll for [Vec<Finding>; N] {
    fn concat_all(self) -> Vec<Finding> {
        self.into_iter().flatten().collect()
    }
}

/// What a check says about a small tree of files.
#[cfg(test)]
fn findings(check: fn(&Workspace) -> Result<Vec<Finding>>, files: &[(&str, &str)]) -> Vec<String> {
    let dir = crate::workspace::fake(files);
    let found = check(&Workspace::at(dir.path())).expect("the check itself works");
    found.iter().map(Finding::to_string).collect()
}
