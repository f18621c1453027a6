//! Protocol code takes atomics, cells and threads from the facade, or the model checkers
//! would not see them.

use super::Finding;
use crate::source::{Code, find_word};
use crate::workspace::{self, Workspace};
use anyhow::Result;

/// What the facade stands in for.
const HIDDEN: &[&str] = &[
    "sync::atomic",
    "cell::UnsafeCell",
    "hint::spin_loop",
    "thread::spawn",
    "thread::scope",
    "thread::park",
    "thread::park_timeout",
    "thread::yield_now",
    "thread::Builder",
    "thread::JoinHandle",
    "thread_local",
];

/// Files that may go around the facade: which path, and why.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("crates/sync/src/facade/", "", "it is the facade"),
    (
        "crates/sync/src/wait/aside.rs",
        "thread::Builder",
        "panics are set aside on real threads only; in the models a coroutine is a thread, and waits as such",
    ),
    (
        "crates/sync/src/barrier.rs",
        "sync::atomic",
        "the asymmetric barrier exists on hardware only; the models see two fences",
    ),
    (
        "crates/sync/src/cpus.rs",
        "sync::atomic",
        "whether spinning can help is not decided in the models: they never spin",
    ),
    (
        "crates/sync/src/ticks.rs",
        "sync::atomic",
        "whether the hardware's counter is used is not decided in the models: they never use it",
    ),
    (
        "crates/sync/src/trace/recording.rs",
        "sync::atomic",
        "whether a recording is under way is not decided in the models: they have none",
    ),
    (
        "crates/sync/src/trace/thread.rs",
        "sync::atomic",
        "events that a recording refuses, and in the models there is none; counts, that order nothing",
    ),
    (
        "crates/clock/src/calibrate/mod.rs",
        "thread::scope",
        "counters are measured on hardware only, by threads that are named and pinned",
    ),
    (
        "crates/clock/src/calibrate/mod.rs",
        "thread::Builder",
        "as above",
    ),
    (
        "crates/clock/src/watchdog.rs",
        "thread::Builder",
        "it looks at hardware counters, which the models have not; its thread is named",
    ),
    (
        "crates/clock/src/watchdog.rs",
        "thread::JoinHandle",
        "as above",
    ),
    (
        "crates/delegate/src/launch.rs",
        "thread::Builder",
        "on hardware a trustee's thread is named and pinned; the models do neither",
    ),
    (
        "crates/fibre/src/cluster.rs",
        "thread::Builder",
        "on hardware a processor's thread is named; the models do not",
    ),
    (
        "crates/fibre/src/fibre.rs",
        "thread::park",
        "on a thread a park is the standard library's, with its own unpark; no protocol uses it",
    ),
    (
        "crates/locks/src/clh/pool.rs",
        "thread_local",
        "a constant initialiser spares a check on each access; loom's macro takes none",
    ),
];

pub(super) fn check(workspace: &Workspace) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let mut used = vec![false; EXCEPTIONS.len()];
    for member in workspace.members()? {
        if !member.is_modelled() {
            continue;
        }
        for path in member.sources()? {
            let shown = workspace.shown(&path);
            for (line, hidden) in around(&workspace::read(&path)?) {
                let exception = EXCEPTIONS.iter().position(|(file, path, _)| {
                    shown.starts_with(file) && (path.is_empty() || *path == hidden)
                });
                if let Some(index) = exception {
                    used[index] = true;
                    continue;
                }
                let what = format!(
                    "std::{hidden} goes around the facade; take it from corelay_sync::facade, or \
                     add the file and a reason to xtask/src/tidy/facade.rs"
                );
                findings.push(Finding::error(format!("{shown}:{line}"), what));
            }
        }
    }
    for ((file, path, _), used) in EXCEPTIONS.iter().zip(used) {
        // Where the file itself does not exist this is another tree, not a stale list.
        if !used && workspace.root.join(file).exists() {
            let what = format!("the exception for {path} is not needed; remove it");
            findings.push(Finding::error(
                format!("xtask/src/tidy/facade.rs: {file}"),
                what,
            ));
        }
    }
    Ok(findings)
}

/// Every way around the facade in a source file: line and path.
fn around(source: &str) -> Vec<(usize, &'static str)> {
    let code = Code::without_tests(source);
    let mut found = Vec::new();
    let mut short = Vec::new();
    for (line, path) in code.imports() {
        let Some(path) = standard(&path) else {
            continue;
        };
        for hidden in HIDDEN {
            let (module, name) = hidden.rsplit_once("::").unwrap_or(("", hidden));
            let rest = path.strip_prefix(hidden);
            let whole = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"));
            let glob = path.strip_suffix("::*") == Some(module);
            if whole || glob {
                found.push((line, *hidden));
            } else if path == module {
                // `use std::thread;` and later `thread::spawn`.
                let last = module.rsplit("::").next().unwrap_or(module);
                short.push((format!("{last}::{name}"), *hidden));
            }
        }
    }
    for (line, text) in code.lines() {
        if text.trim_start().starts_with("use ") || text.trim_start().starts_with("pub use ") {
            continue;
        }
        for hidden in HIDDEN {
            let full = ["std::", "core::"].map(|root| format!("{root}{hidden}"));
            if full.iter().any(|path| find_word(text, path).is_some()) {
                found.push((line, *hidden));
            }
        }
        for (path, hidden) in &short {
            if find_word(text, path).is_some() && !text.contains(&format!("::{path}")) {
                found.push((line, *hidden));
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// The part of a path after `std::` or `core::`.
fn standard(path: &str) -> Option<&str> {
    let path = path.strip_prefix("::").unwrap_or(path);
    path.strip_prefix("std::")
        .or_else(|| path.strip_prefix("core::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(source: &str) -> Vec<(usize, &'static str)> {
        around(source)
    }

    #[test]
    fn each_way_around_is_found() {
        assert_eq!(
            found("use std::sync::atomic::AtomicBool;"),
            [(1, "sync::atomic")]
        );
        assert_eq!(
            found("use core::{sync::atomic, mem};"),
            [(1, "sync::atomic")]
        );
        assert_eq!(
            found("\nlet x = std::sync::atomic::fence(o);"),
            [(2, "sync::atomic")]
        );
        assert_eq!(
            found("use std::thread;\nthread::spawn(f);"),
            [(2, "thread::spawn")]
        );
        assert_eq!(
            found("use std::sync;\nsync::atomic::fence(o);"),
            [(2, "sync::atomic")]
        );
        assert_eq!(found("use std::thread::*;")[0].0, 1);
        assert_eq!(found("std::hint::spin_loop();"), [(1, "hint::spin_loop")]);
        assert_eq!(found("std::thread_local! { }"), [(1, "thread_local")]);
        assert_eq!(
            found("pub use std::cell::{Cell, UnsafeCell};"),
            [(1, "cell::UnsafeCell")]
        );
    }

    #[test]
    fn the_rest_of_std_is_free() {
        assert_eq!(
            found("use std::thread;\nthread::sleep(d); thread::current();"),
            []
        );
        assert_eq!(found("use crate::facade::thread;\nthread::spawn(f);"), []);
        assert_eq!(found("use std::sync::Arc;\nuse std::cell::Cell;"), []);
        assert_eq!(
            found("// std::sync::atomic\n/// std::thread::spawn\nfn f() {}"),
            []
        );
        assert_eq!(
            found("#[cfg(test)]\nmod tests { use std::thread::spawn; }"),
            []
        );
    }

    #[test]
    fn only_modelled_crates_are_bound_and_exceptions_hold() {
        let around = "use std::sync::atomic::AtomicBool;\n";
        let tree = |folder: &str, file: &str| {
            let manifest = format!("[package]\nname = \"corelay-{folder}\"\n");
            let files = [
                (format!("crates/{folder}/Cargo.toml"), manifest),
                (format!("crates/{folder}/src/{file}"), around.to_owned()),
            ];
            let files: Vec<_> = files
                .iter()
                .map(|(p, c)| (p.as_str(), c.as_str()))
                .collect();
            super::super::findings(check, &files)
        };
        assert!(tree("locks", "mcs.rs")[0].starts_with("crates/locks/src/mcs.rs:1: std::sync::"));
        assert_eq!(tree("lab", "run.rs"), [""; 0]);
        assert_eq!(tree("sync", "facade/std.rs"), [""; 0]);
        assert_eq!(tree("sync", "barrier.rs"), [""; 0]);
    }

    #[test]
    fn an_exception_that_is_not_needed_is_found() {
        let files = [
            (
                "crates/sync/Cargo.toml",
                "[package]\nname = \"corelay-sync\"\n",
            ),
            ("crates/sync/src/barrier.rs", "fn nothing() {}\n"),
        ];
        let found = super::super::findings(check, &files);
        assert!(
            found[0].contains("barrier.rs: the exception for sync::atomic"),
            "{found:?}"
        );
    }
}
