//! Protocol code takes atomics, cells and threads from the facade, or the model checkers
//! would not see them. Clippy's `disallowed_types` cannot tell: on hardware the facade's
//! types are the standard library's.

use super::Finding;
use crate::source::{Code, Mention};
use crate::workspace::Workspace;
use anyhow::Result;

/// The paths that the facade stands in for.
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
        "crates/txn/src/store/kept/load.rs",
        "",
        "no model opens a store that is on disk",
    ),
    (
        "crates/txn/src/store/index/hash/tests.rs",
        "",
        "tests on real threads; the models are in tests/loom_models",
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
        "crates/delegate/src/trustee/spawn.rs",
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
        "crates/txn/src/store/disk/mod.rs",
        "thread::Builder",
        "the log thread is named, and its failure to start an error; the models play it themselves",
    ),
    (
        "crates/txn/src/store/disk/mod.rs",
        "thread::JoinHandle",
        "as above",
    ),
    (
        "crates/locks/src/pool.rs",
        "thread_local",
        "a constant initialiser spares a check on each access; loom's macro takes none",
    ),
];

pub(super) fn check(workspace: &Workspace) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let mut is_used = vec![false; EXCEPTIONS.len()];
    for member in workspace.members()? {
        if !member.is_modelled() {
            continue;
        }
        for path in member.sources()? {
            let shown = workspace.shown(&path);
            for (line, hidden) in bypasses(&Code::shipped(&path)?.mentions()) {
                let exception = EXCEPTIONS.iter().position(|(file, path, _)| {
                    shown.starts_with(file) && (path.is_empty() || *path == hidden)
                });
                if let Some(index) = exception {
                    is_used[index] = true;
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
    for ((file, path, _), is_used) in EXCEPTIONS.iter().zip(is_used) {
        // If the file itself does not exist this is another tree, not a stale list.
        if !is_used && workspace.root.join(file).exists() {
            let place = format!("xtask/src/tidy/facade.rs: {file}");
            let what = format!("the exception for {path} is not needed; remove it");
            findings.push(Finding::error(place, what));
        }
    }
    Ok(findings)
}

/// Every way around the facade in the paths of a file: line and path.
fn bypasses(mentions: &[Mention]) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    for hidden in HIDDEN {
        let (module, name) = hidden.rsplit_once("::").unwrap_or(("", hidden));
        // After `use std::thread;` the path is `thread::spawn`.
        let is_module = |m: &&Mention| m.is_import && standard(&m.path) == Some(module);
        let module_name = module.rsplit("::").next().unwrap_or(module);
        let short = mentions.iter().find(is_module).map(|_| module_name);
        for mention in mentions {
            let path = mention.path.as_str();
            let is_hidden = match standard(path) {
                Some(path) if mention.is_import && path.strip_suffix("::*") == Some(module) => true,
                Some(path) => begins(path, hidden),
                None => short.is_some_and(|short| begins(path, &format!("{short}::{name}"))),
            };
            if is_hidden {
                found.push((mention.line, *hidden));
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Whether `path` is `start` or goes on from there.
fn begins(path: &str, start: &str) -> bool {
    let rest = path.strip_prefix(start);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// The part of a path after `std::` or `core::`.
fn standard(path: &str) -> Option<&str> {
    let roots = ["std::", "core::"];
    roots.iter().find_map(|root| path.strip_prefix(root))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn finds(source: &str, wanted: &[(usize, &str)]) {
        let code = Code::parse(source, false).unwrap();
        assert_eq!(bypasses(&code.mentions()), wanted, "{source}");
    }

    #[test]
    fn each_way_around_is_found() {
        let (atomic, cell) = ("sync::atomic", "cell::UnsafeCell");
        finds("use std::sync::atomic::AtomicBool;", &[(1, atomic)]);
        finds("use core::{sync::atomic, mem};", &[(1, atomic)]);
        finds("\nlet x = ::std::sync::atomic::fence(o);", &[(2, atomic)]);
        finds("use std::sync;\nsync::atomic::fence(o);", &[(2, atomic)]);
        finds("use std::sync::*;", &[(1, atomic)]);
        finds(
            "use std::thread;\nthread::spawn(f);",
            &[(2, "thread::spawn")],
        );
        finds("std::hint::spin_loop();", &[(1, "hint::spin_loop")]);
        finds("std::thread_local! { }", &[(1, "thread_local")]);
        finds("pub use std::cell::{Cell, UnsafeCell};", &[(1, cell)]);
        finds("m! { std::cell::UnsafeCell<T> }", &[(1, cell)]);
    }

    #[test]
    fn the_rest_of_std_is_free() {
        finds(
            "use std::thread;\nthread::sleep(d); thread::current();",
            &[],
        );
        finds("use crate::facade::thread;\nthread::spawn(f);", &[]);
        finds("use std::sync::Arc;\nuse std::cell::Cell;", &[]);
        finds(
            "// std::sync::atomic\n/// std::thread::spawn\nfn f() {}",
            &[],
        );
        finds("#[cfg(test)]\nmod tests { use std::thread::spawn; }", &[]);
    }

    #[test]
    fn only_modelled_crates_are_bound_and_exceptions_must_be_needed() {
        let finds = |path: &str, source: &str, wanted: &[_]| {
            super::super::assert_finds(check, &[(path, source)], wanted);
        };
        let bypass = "use std::sync::atomic::AtomicBool;";
        let wanted = "crates/locks/src/mcs.rs:1: std::sync::atomic";
        finds("crates/locks/src/mcs.rs", bypass, &[wanted]);
        finds("crates/lab/src/run.rs", bypass, &[]);
        finds("crates/sync/src/facade/std.rs", bypass, &[]);
        finds("crates/sync/src/barrier.rs", bypass, &[]);
        let wanted = "barrier.rs: the exception for sync::atomic";
        finds("crates/sync/src/barrier.rs", "fn nothing() {}", &[wanted]);
    }
}
