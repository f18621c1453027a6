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
//! Mutants are applied to a copy of the tree. A mutant that does not compile proves
//! nothing and is not caught; so is one whose test fails without it.

mod coverage;
mod entry;
mod matching;
mod run;
mod tree;

use crate::Verdict;
use crate::tidy::Finding;
use crate::workspace::Workspace;
use anyhow::Result;
use entry::{Entry, Proof};

/// The flags of `cargo xtask mutants`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) check: bool,
    pub(crate) strict: bool,
    /// Only entries whose `crate/file:line test` contains this.
    pub(crate) filter: Option<String>,
}

impl Options {
    /// Reads the arguments; `None` where one is not understood.
    pub(crate) fn parse(args: &[&str]) -> Option<Self> {
        let mut options = Self::default();
        for &arg in args {
            match arg {
                "--check" => options.check = true,
                "--strict" => options.strict = true,
                _ if arg.starts_with('-') || options.filter.is_some() => return None,
                _ => options.filter = Some(arg.to_owned()),
            }
        }
        Some(options)
    }
}

/// Checks the map, and without `--check` applies every mutant.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<Verdict> {
    let (entries, mut stale) = entry::load(workspace)?;
    stale.extend(matching::check(workspace, &entries)?);
    for finding in &stale {
        println!("{finding}");
    }
    let mut good = stale.is_empty();
    if options.check {
        let reasons = entries
            .iter()
            .filter(|e| matches!(e.proof, Proof::Reason))
            .count();
        println!(
            "mutants: {} entries, {} with a test, {reasons} with a reason; {} do not match",
            entries.len(),
            entries.len() - reasons,
            stale.len()
        );
    } else {
        let wanted = |entry: &&Entry| {
            options
                .filter
                .as_ref()
                .is_none_or(|filter| entry.label().contains(filter.as_str()))
        };
        let chosen: Vec<&Entry> = entries.iter().filter(wanted).collect();
        if let (Some(filter), true) = (&options.filter, chosen.is_empty()) {
            anyhow::bail!("no entry matches `{filter}`");
        }
        good &= run::all(workspace, &chosen)?;
    }
    if options.filter.is_none() {
        let unmapped = coverage::unmapped(workspace, &entries)?;
        for finding in &unmapped {
            println!("{finding}");
        }
        println!(
            "mutants: {} orderings and fences have no entry",
            unmapped.len()
        );
        good &= !options.strict || unmapped.is_empty();
    }
    Ok(Verdict::of(good))
}

/// The entries that no longer match the source, for `tidy`.
pub(crate) fn stale(workspace: &Workspace) -> Result<Vec<Finding>> {
    let (entries, mut stale) = entry::load(workspace)?;
    stale.extend(matching::check(workspace, &entries)?);
    Ok(stale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_and_filter_are_read() {
        let options = Options::parse(&["--check", "mcs", "--strict"]).unwrap();
        assert!(options.check && options.strict);
        assert_eq!(options.filter.as_deref(), Some("mcs"));
        assert_eq!(Options::parse(&["--chek"]), None);
        assert_eq!(Options::parse(&["a", "b"]), None);
    }
}
