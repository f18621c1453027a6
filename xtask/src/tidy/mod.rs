//! `cargo xtask tidy`: what a compiler does not check. Each rule is a file.

mod design;
mod facade;
mod floors;
mod guide;
mod layers;
mod leftovers;
mod links;
mod lock;
mod models;
mod shadows;
mod size;
mod sources;

use crate::steps::Verdict;
use crate::workspace::Workspace;
use anyhow::Result;
use std::fmt;

/// Something to be put right, or to be thought about.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    place: String,
    what: String,
    is_warning: bool,
}

impl Finding {
    /// Makes the check fail. `what` says what is wrong and how to fix it.
    pub(crate) fn error(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            what: what.into(),
            is_warning: false,
        }
    }

    /// Is only shown.
    pub(crate) fn warning(place: impl Into<String>, what: impl Into<String>) -> Self {
        let finding = Self::error(place, what);
        Self {
            is_warning: true,
            ..finding
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_warning { "warning: " } else { "" };
        write!(f, "{}: {kind}{}", self.place, self.what)
    }
}

type Rule = fn(&Workspace) -> Result<Vec<Finding>>;

const RULES: &[Rule] = &[
    floors::check,
    layers::check,
    facade::check,
    models::check,
    leftovers::check,
    shadows::check,
    size::check,
    lock::check,
    links::check,
    guide::check,
    design::check,
    sources::check,
    crate::mutants::stale,
    crate::capi::header::check,
];

/// Applies every rule and prints what it finds.
pub(crate) fn run(workspace: &Workspace) -> Result<Verdict> {
    let mut findings = Vec::new();
    for rule in RULES {
        findings.extend(rule(workspace)?);
    }
    for finding in &findings {
        println!("{finding}");
    }
    let errors = findings.iter().filter(|f| !f.is_warning).count();
    let warnings = findings.len() - errors;
    println!("tidy: {errors} errors, {warnings} warnings");
    Ok(Verdict::of(errors == 0, ""))
}

/// Applies `rule` to a small tree of files, and demands as many findings as `wanted` has, each
/// with its text in it.
#[cfg(test)]
#[track_caller]
pub(crate) fn assert_finds(
    rule: impl Fn(&Workspace) -> Result<Vec<Finding>>,
    files: &[(&str, &str)],
    wanted: &[&str],
) {
    let (_dir, workspace) = crate::workspace::fake(files);
    let found = rule(&workspace).expect("the rule itself works");
    let found: Vec<String> = found.iter().map(Finding::to_string).collect();
    let fits = found.iter().zip(wanted).all(|(f, w)| f.contains(w));
    assert!(
        fits && found.len() == wanted.len(),
        "found {found:#?}\nnot {wanted:#?}"
    );
}
