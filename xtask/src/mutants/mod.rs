//! `cargo xtask mutants`: the map from orderings and fences to the tests that need them.
//!
//! A crate's `mutants.toml` says for each ordering what a weaker one would break:
//!
//! ```toml
//! [[mutant]]
//! file = "src/mcs.rs"                                # relative to the crate
//! find = "next.store(node, Ordering::Release)"       # stands there once, or give nth = 2
//! replace = "next.store(node, Ordering::Relaxed)"
//! test = "loom_mcs::hand_over"                       # must fail; `lib::…` for a unit test
//! # crate = "delegate"                               # where the test is another crate's
//! # hangs = true                                     # it fails by never ending
//!
//! [[mutant]]
//! file = "src/mcs.rs"
//! find = "self.tail.load(Ordering::Acquire)"
//! reason = "a stale tail only makes try_lock fail once more"
//! ```
//!
//! Mutants are applied to copies of the tree, one for each CPU. A mutant that does not compile proves
//! nothing and is not caught; so is one whose test fails without it.

mod coverage;
mod entry;
mod run;
mod tree;

use crate::steps::Verdict;
use crate::tidy::Finding;
use crate::workspace::Workspace;
use anyhow::Result;
use entry::Entry;

/// The arguments of `cargo xtask mutants`.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// Only entries whose `crate/source file file::test` contains this
    filter: Option<String>,
    /// Only verify that every entry still matches the source
    #[arg(long)]
    check: bool,
    /// An ordering or fence without an entry is an error
    #[arg(long)]
    strict: bool,
}

impl Options {
    /// The arguments that the gate gives.
    pub(crate) const CHECK: Self = Self {
        filter: None,
        check: true,
        strict: false,
    };
}

/// Checks the map, and without `--check` applies every mutant.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<Verdict> {
    let (entries, mut findings) = entry::load(workspace)?;
    findings.extend(coverage::stale(workspace, &entries)?);
    let stale = findings.len();
    let mut is_good = stale == 0;
    let filter = options.filter.as_deref();
    if filter.is_none() {
        findings.extend(coverage::unmapped(workspace, &entries)?);
    }
    for finding in &findings {
        println!("{finding}");
    }
    let tested = entries.iter().filter(|entry| entry.proof.is_some()).count();
    let (all, reasons) = (entries.len(), entries.len() - tested);
    println!("mutants: {all} entries, {tested} with a test, {reasons} with a reason");
    let mut note = format!("{stale} entries do not match");
    if filter.is_none() {
        let unmapped = findings.len() - stale;
        note += &format!(", {unmapped} orderings and fences have no entry");
        is_good &= !options.strict || unmapped == 0;
    }
    println!("mutants: {note}");
    if !options.check {
        let is_chosen = |entry: &&Entry| entry.label().contains(filter.unwrap_or_default());
        let chosen: Vec<&Entry> = entries.iter().filter(is_chosen).collect();
        if chosen.is_empty() {
            anyhow::bail!("no entry matches `{}`", filter.unwrap_or_default());
        }
        let (all_caught, counts) = run::all(workspace, &chosen)?;
        note = counts;
        is_good &= all_caught;
    }
    Ok(Verdict::of(is_good, note))
}

/// The entries that do not match the source, for `tidy`.
pub(crate) fn stale(workspace: &Workspace) -> Result<Vec<Finding>> {
    let (entries, mut findings) = entry::load(workspace)?;
    findings.extend(coverage::stale(workspace, &entries)?);
    Ok(findings)
}
