//! Every ordinary test, optimised and with ten times the rounds; snapshots with more.

use super::Came;
use crate::process;
use crate::workspace::{self, Workspace};
use anyhow::Result;

/// Snapshots by every clock, of TL2 and of RLU: ten million reads of each at least.
const SNAPSHOTS: &[&str] = &["snapshots_are_whole", "a_section_sees_all_of_a_commit"];
const OF_SNAPSHOTS: &str = "110";

/// Stress tests multiply their rounds by it.
const VARIABLE: &str = "CORELAY_STRESS";

pub(super) fn run(workspace: &Workspace) -> Result<Came> {
    let mut readers = 0;
    for member in workspace.members()? {
        let reads = |text: String| text.contains(VARIABLE);
        let rust = |path: &std::path::Path| path.extension().is_some_and(|e| e == "rs");
        for path in workspace::files_below(&member.dir, &rust)? {
            readers += usize::from(reads(workspace::read(&path)?));
        }
    }
    if readers == 0 {
        return Ok(Came::Failed(format!(
            "no test reads {VARIABLE}: none is a stress test"
        )));
    }
    println!("stress: {readers} files read {VARIABLE}");
    // A test loads it; where targets are named, cargo builds no examples by itself.
    let mut library = process::cargo(&workspace.root);
    library
        .args([
            "build",
            "--locked",
            "--profile",
            "model",
            "--package",
            "corelay-fibre",
        ])
        .args(["--example", "shared"])
        .env("CARGO_TARGET_DIR", &workspace.target);
    let library = process::pass_on(library, None)?;
    if !library.good {
        return Ok(Came::Failed(
            "the example `shared` was not built".to_owned(),
        ));
    }
    let mut command = process::cargo(&workspace.root);
    super::test(&mut command, &super::targets(workspace)?);
    command.args(["--profile", "model"]);
    command
        .env("CARGO_TARGET_DIR", &workspace.target)
        .env(VARIABLE, "10");
    let mut came = super::tested(command)?;
    for snapshots in SNAPSHOTS {
        let Came::Passed(before) = came else {
            return Ok(came);
        };
        let mut command = process::cargo(&workspace.root);
        command
            .args(["test", "--locked", "--profile", "model"])
            .args(["--package", "corelay-txn", "--test", "rlu", "--test", "tl2"])
            .args(["--", snapshots])
            .env("CARGO_TARGET_DIR", &workspace.target)
            .env(VARIABLE, OF_SNAPSHOTS);
        came = match super::tested(command)? {
            Came::Passed(more) => Came::Passed(format!("{before}; {snapshots}: {more}")),
            other => other,
        };
    }
    Ok(came)
}
