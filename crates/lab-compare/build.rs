//! Tells the program which commit it was built from, so that every result file names it.

use std::process::Command;

fn main() {
    let commit = git(&[
        "describe",
        "--always",
        "--dirty",
        "--abbrev=12",
        "--exclude=*",
    ]);
    println!(
        "cargo::rustc-env=CORELAY_COMMIT={}",
        commit.as_deref().unwrap_or("unknown")
    );
    println!("cargo::rerun-if-changed=build.rs");
    if commit.is_none() {
        return;
    }
    // Any source of the workspace can make the tree dirty, and a commit makes it clean.
    println!("cargo::rerun-if-changed=../");
    for name in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", name])
            && std::path::Path::new(&path).exists()
        {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}

/// Runs git and returns its one line of output; `None` without git or outside a repository.
fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    let line = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !line.is_empty()).then_some(line)
}
