//! The C programs by themselves, under AddressSanitizer and under valgrind; besides, the guide's one as C++.
//!
//! The sanitizer watches the C code, and what it and the library allocate; valgrind watches the
//! library's code too.

use super::{canary, debian};
use crate::capi::install;
use crate::capi::programs::{Linked, Way, compiled, compiler, start, try_all, try_as_cpp};
use crate::process;
use crate::steps::{CANNOT_RUN, Verdict};
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use std::path::Path;

/// A freed word is read.
const FREED: &str = include_str!("canary/freed.c");

const SANITIZED: &[&str] = &["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];

/// Flags without the warnings that would find the canary first.
const CANARY: &[&str] = &["-O0", "-w"];

const MEMCHECK: &[&str] = &[
    "--error-exitcode=99",
    "--leak-check=full",
    // What thread-locals of the main thread hold is found by inner pointers only.
    "--errors-for-leak-kinds=definite",
    // Threads that wait in loops must not keep the one that they wait for from running.
    "--fair-sched=yes",
];

pub(super) fn run(workspace: &Workspace) -> Result<Verdict> {
    let mut under = valgrind(workspace).context(CANNOT_RUN)?;
    under.extend(MEMCHECK.iter().map(ToString::to_string));
    let dir = workspace.target.join("deep").join("capi");
    std::fs::create_dir_all(&dir)?;
    must_die(&dir, SANITIZED, &[], "heap-use-after-free")?;
    must_die(&dir, &[], &under, "Invalid read")?;

    let installed = install(workspace, &dir.join("prefix"))?;
    try_as_cpp(workspace, &installed, &dir)?;
    let way = |linked, flags, under| Way {
        linked,
        flags,
        under,
    };
    let ways = [
        way(Linked::Shared, &[], &[][..]),
        way(Linked::Static, &[], &[]),
        way(Linked::Fixed, &[], &[]),
        way(Linked::Static, SANITIZED, &[]),
        way(Linked::Shared, &[], &under),
        way(Linked::Static, &[], &under),
    ];
    try_all(workspace, &installed, &ways, &dir)
}

/// The words that start valgrind: the system's, or that of Debian's package, unpacked.
fn valgrind(workspace: &Workspace) -> Result<Vec<String>> {
    if process::is_installed("valgrind") {
        return Ok(vec!["valgrind".to_owned()]);
    }
    let root = debian::unpacked(workspace, &["valgrind"])?;
    let root = root.display();
    let library = format!("VALGRIND_LIB={root}/usr/libexec/valgrind");
    let program = format!("{root}/usr/bin/valgrind");
    Ok(vec!["env".to_owned(), library, program])
}

fn must_die(dir: &Path, flags: &[&str], under: &[String], message: &str) -> Result<()> {
    let (source, program) = (dir.join("freed.c"), dir.join("freed"));
    std::fs::write(&source, FREED)?;
    let mut command = compiler(dir);
    command.args(flags).args(CANARY);
    command.arg(&source).arg("-o").arg(&program);
    compiled(command)?;
    canary::has_died(&start(&program, &[], under)?, message)
}
