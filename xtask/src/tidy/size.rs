//! Long files are shown: past 700 lines there is usually a seam.

use super::Finding;
use crate::workspace::{self, Workspace};
use anyhow::Result;

/// The longest file that is not shown, in lines.
const LONG: usize = 700;

pub(super) fn check(workspace: &Workspace) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for path in workspace::files_below(&workspace.root, "rs")? {
        let lines = workspace::read(&path)?.lines().count();
        if lines > LONG {
            let what = format!("{lines} lines; look for the seam");
            findings.push(Finding::warning(workspace.shown(&path), what));
        }
    }
    Ok(findings)
}

#[test]
fn a_long_file_is_a_warning() {
    let (long, fits) = ("\n".repeat(LONG + 1), "\n".repeat(LONG));
    let wanted = "a/long.rs: warning: 701 lines; look for the seam";
    super::assert_finds(
        check,
        &[("a/long.rs", &long), ("a/fits.rs", &fits)],
        &[wanted],
    );
}
