//! Nothing half-done in the source.

use super::Finding;
use crate::source::{Code, find_word};
use crate::workspace::{self, Workspace};
use anyhow::Result;

/// Macros that mark unfinished work, and what to do instead.
const UNFINISHED: &[(&str, &str)] = &[
    ("todo", "write it, or leave the function out"),
    ("unimplemented", "write it, or leave the function out"),
    ("dbg", "remove it"),
];

pub(super) fn check(workspace: &Workspace) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for path in workspace::files_below(&workspace.root, &is_rust)? {
        let code = Code::new(&workspace::read(&path)?);
        for (line, text) in code.lines() {
            for (name, fix) in UNFINISHED {
                let used = find_word(text, name)
                    .is_some_and(|at| text[at + name.len()..].trim_start().starts_with('!'));
                if used {
                    let place = format!("{}:{line}", workspace.shown(&path));
                    findings.push(Finding::error(
                        place,
                        format!("{name}! is left over; {fix}"),
                    ));
                }
            }
        }
    }
    Ok(findings)
}

/// True for Rust source.
pub(super) fn is_rust(path: &std::path::Path) -> bool {
    path.extension().is_some_and(|extension| extension == "rs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfinished_work_is_found() {
        let source = "fn f() { todo!() }\n// todo!()\nfn g() { let s = \"dbg!\"; dbg!(s) }\n";
        let found = super::super::findings(check, &[("crates/a/src/lib.rs", source)]);
        assert_eq!(found.len(), 2);
        assert!(found[0].starts_with("crates/a/src/lib.rs:1: todo! is left over"));
        assert!(found[1].starts_with("crates/a/src/lib.rs:3: dbg! is left over"));
    }

    #[test]
    fn longer_names_are_not_meant() {
        let source = "fn f() { my_todo!(); let todo = 1 != 2; }\n";
        assert_eq!(
            super::super::findings(check, &[("crates/a/src/lib.rs", source)]),
            [""; 0]
        );
    }
}
