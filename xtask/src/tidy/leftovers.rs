//! Nothing half-done in the source. Clippy has lints for this, but sees only the code of this
//! machine: neither models nor other platforms.

use super::Finding;
use crate::source::Code;
use crate::workspace::{self, Workspace};
use anyhow::Result;

/// Macros that mark unfinished work.
const UNFINISHED: &[&str] = &["todo", "unimplemented", "dbg"];

pub(super) fn check(workspace: &Workspace) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for path in workspace::files_below(&workspace.root, "rs")? {
        let text = workspace::read(&path)?;
        for name in UNFINISHED.iter().filter(|name| text.contains(*name)) {
            for (line, _) in Code::read(&path)?.find(&[name, "!"]) {
                let place = format!("{}:{line}", workspace.shown(&path));
                let what = format!("{name}! is left over; finish the work, or leave it out");
                findings.push(Finding::error(place, what));
            }
        }
    }
    Ok(findings)
}

#[test]
fn unfinished_work_is_found() {
    let source = "fn f() { todo!() }\n// todo!()\nfn g() { let s = \"dbg!\"; dbg!(s) }\n\
                  fn h() { my_todo!(); let todo = 1 != 2; }\n";
    let wanted = ["a.rs:1: todo! is left over", "a.rs:3: dbg! is left over"];
    super::assert_finds(check, &[("a.rs", source)], &wanted);
}
