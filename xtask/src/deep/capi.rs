//! The C programs under AddressSanitizer and under valgrind; besides, the header as C++.
//!
//! The sanitizer watches the C code, and what it and the library allocate; valgrind watches the
//! library's code too.

use super::Came;
use super::debian;
use crate::capi::install;
use crate::capi::programs::{Linked, PROGRAMS, compile, compiled, compiler, complaints, start};
use crate::process;
use crate::workspace::Workspace;
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};

/// A freed word is read.
const FREED: &str = include_str!("canary/freed.c");

const SANITIZED: &[&str] = &["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];

/// Without the warnings that would find the canary first.
const CANARY: &[&str] = &["-O0", "-w"];

const MEMCHECK: &[&str] = &[
    "--error-exitcode=99",
    "--leak-check=full",
    // What thread-locals of the main thread hold is found by inner pointers only.
    "--errors-for-leak-kinds=definite",
    // Threads that wait in loops must not keep the one that they wait for from running.
    "--fair-sched=yes",
];

pub(super) fn run(workspace: &Workspace) -> Result<Came> {
    let valgrind = match valgrind(workspace) {
        Ok(valgrind) => valgrind,
        Err(error) => return Ok(Came::Cannot(format!("{error:#}"))),
    };
    let under: Vec<&str> = valgrind
        .iter()
        .map(String::as_str)
        .chain(MEMCHECK.iter().copied())
        .collect();
    let dir = workspace.target.join("deep").join("capi");
    std::fs::create_dir_all(&dir)?;
    must_die(
        &dir,
        "canary-address",
        SANITIZED,
        &[],
        "heap-use-after-free",
    )?;
    must_die(&dir, "canary-valgrind", &[], &under, "Invalid read")?;

    let installed = install(workspace, &dir.join("prefix"))?;
    let mut plus_plus = process::program("c++", &dir);
    plus_plus.args(["-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]);
    plus_plus.args(["-fsyntax-only", "-x", "c++"]);
    plus_plus.arg(installed.include().join("corelay.h"));
    compiled(plus_plus)?;
    let mut all = Vec::new();
    let mut runs = 0;
    for program in PROGRAMS {
        let address = dir.join("address");
        let path = compile(
            workspace,
            &installed,
            program,
            Linked::Static,
            SANITIZED,
            &address,
        )?;
        all.extend(complaints(program, &path, &[])?);
        for linked in [Linked::Shared, Linked::Static] {
            let path = compile(workspace, &installed, program, linked, &[], &dir)?;
            all.extend(complaints(program, &path, &under)?);
        }
        runs += 3;
    }
    for complaint in &all {
        println!("capi: {complaint}");
    }
    if all.is_empty() {
        Ok(Came::Passed(format!("{runs} programs")))
    } else {
        Ok(Came::Failed(format!("{} complaints", all.len())))
    }
}

/// What starts valgrind: the system's, or Debian's package, unpacked.
fn valgrind(workspace: &Workspace) -> Result<Vec<String>> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|dir| dir.join("valgrind").is_file()) {
        return Ok(vec!["valgrind".to_owned()]);
    }
    let root = debian::unpacked(workspace, &["valgrind"])?;
    Ok(vec![
        "env".to_owned(),
        format!(
            "VALGRIND_LIB={}",
            root.join("usr/libexec/valgrind").display()
        ),
        root.join("usr/bin/valgrind").display().to_string(),
    ])
}

/// A tool that finds nothing in a program with a bug is not at work.
fn must_die(dir: &Path, name: &str, flags: &[&str], under: &[&str], message: &str) -> Result<()> {
    let (source, path): (PathBuf, PathBuf) = (dir.join("freed.c"), dir.join(name));
    std::fs::write(&source, FREED)?;
    let mut command = compiler(dir);
    command
        .args(flags)
        .args(CANARY)
        .arg(&source)
        .arg("-o")
        .arg(&path);
    compiled(command)?;
    let ended = start(&path, &[], under)?;
    if ended.good() || !ended.output.contains(message) {
        bail!(
            "`{message}` is not reported in a program that has it:\n{}",
            ended.output
        );
    }
    println!("canary: `{message}` is reported");
    Ok(())
}
