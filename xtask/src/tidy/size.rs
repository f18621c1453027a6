//! Long files are shown: past 700 lines there is usually a seam.

use super::{Finding, leftovers};
use crate::workspace::{self, Workspace};
use anyhow::Result;

/// In lines.
const LONG: usize = 700;

pub(super) fn check(workspace: &Workspace) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for path in workspace::files_below(&workspace.root, &leftovers::is_rust)? {
        let lines = workspace::read(&path)?.lines().count();
        if lines > LONG {
            let what = format!("{lines} lines; look for the seam");
            findings.push(Finding::warning(workspace.shown(&path), what));
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_file_is_a_warning() {
        let long = "\n".repeat(LONG + 1);
        let fits = "\n".repeat(LONG);
        let found = super::super::findings(check, &[("a/long.rs", &long), ("a/fits.rs", &fits)]);
        assert_eq!(found, ["a/long.rs: warning: 701 lines; look for the seam"]);
    }
}
