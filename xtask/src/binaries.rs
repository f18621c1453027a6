//! Test programs: built by cargo, listed and run one test at a time by xtask.
//!
//! One process per test gives each its own time and time limit, and one failure does not
//! hide the next.

use crate::process::{self, Ended};
use crate::workspace::{Member, Workspace};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// What a test runs under, told by the name of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Checker {
    /// `loom_*.rs`: every interleaving, weak memory included.
    Loom,
    /// `shuttle_*.rs`: random schedules of more threads.
    Shuttle,
    /// Everything else: hardware.
    Plain,
}

impl Checker {
    /// The checker of `tests/{target}.rs`; `lib` means unit tests.
    pub(crate) fn of(target: &str) -> Self {
        match target {
            _ if target.starts_with("loom_") => Self::Loom,
            _ if target.starts_with("shuttle_") => Self::Shuttle,
            _ => Self::Plain,
        }
    }

    /// Its name, also that of its build folder.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Loom => "loom",
            Self::Shuttle => "shuttle",
            Self::Plain => "test",
        }
    }

    fn rustflags(self) -> Option<&'static str> {
        match self {
            Self::Loom => Some("--cfg corelay_loom"),
            Self::Shuttle => Some("--cfg corelay_shuttle"),
            Self::Plain => None,
        }
    }

    /// Models execute millions of schedules: optimised, but quick to build.
    fn profile(self) -> Option<&'static str> {
        (self != Self::Plain).then_some("model")
    }
}

/// A test target of a package.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Target {
    /// The folder name of its crate: `locks`.
    pub(crate) folder: String,
    /// The package: `corelay-locks`.
    pub(crate) package: String,
    /// The file in `tests/` without `.rs`, or `lib` for unit tests.
    pub(crate) name: String,
}

impl Target {
    pub(crate) fn new(member: &Member, name: &str) -> Self {
        Self {
            folder: member.folder.clone(),
            package: member.package.clone(),
            name: name.to_owned(),
        }
    }
}

/// A built test program.
#[derive(Debug)]
pub(crate) struct Binary {
    /// What it was built from.
    pub(crate) target: Target,
    program: PathBuf,
    dir: PathBuf,
}

/// The command that builds `targets` of the tree at `root` into `into`, without running.
pub(crate) fn build_command(
    root: &Path,
    into: &Path,
    checker: Checker,
    targets: &[Target],
) -> Command {
    let mut command = process::cargo(root);
    command.args([
        "test",
        "--no-run",
        "--locked",
        "--message-format=json-render-diagnostics",
    ]);
    command.env("CARGO_TARGET_DIR", into);
    if let Some(flags) = checker.rustflags() {
        command.env("RUSTFLAGS", flags);
    }
    if let Some(profile) = checker.profile() {
        command.args(["--profile", profile]);
    }
    select(&mut command, targets);
    command
}

/// Tells cargo which test targets are meant. It takes the flags of all packages
/// together, each once.
pub(crate) fn select(command: &mut Command, targets: &[Target]) {
    let packages: BTreeSet<&str> = targets.iter().map(|t| t.package.as_str()).collect();
    let names: BTreeSet<&str> = targets.iter().map(|t| t.name.as_str()).collect();
    for package in packages {
        command.args(["--package", package]);
    }
    for name in names {
        match name {
            "lib" => command.arg("--lib"),
            name => command.args(["--test", name]),
        };
    }
}

/// Builds test programs of the workspace; what the compiler says is passed on.
pub(crate) fn build(
    workspace: &Workspace,
    checker: Checker,
    targets: &[Target],
) -> Result<Vec<Binary>> {
    let into = workspace.target.join(checker.name());
    let mut command = build_command(&workspace.root, &into, checker, targets);
    command.stderr(std::process::Stdio::inherit());
    let output = command.output().context("cannot start cargo")?;
    if !output.status.success() {
        bail!("the {} tests do not build", checker.name());
    }
    find(&String::from_utf8_lossy(&output.stdout), targets)
}

/// The programs named in cargo's messages, in the order of `targets`.
pub(crate) fn find(messages: &str, targets: &[Target]) -> Result<Vec<Binary>> {
    let artifacts: Vec<Value> = messages
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter(|message: &Value| message["reason"] == "compiler-artifact")
        .collect();
    targets
        .iter()
        .map(|target| {
            let built = artifacts
                .iter()
                .find(|artifact| is_built_from(artifact, target));
            let built = built.with_context(|| {
                format!(
                    "cargo built no program for {} of {}",
                    target.name, target.package
                )
            })?;
            let text = |value: &Value| value.as_str().map(PathBuf::from).unwrap_or_default();
            let manifest = text(&built["manifest_path"]);
            let dir = manifest.parent().map(Path::to_owned).unwrap_or_default();
            Ok(Binary {
                target: target.clone(),
                program: text(&built["executable"]),
                dir,
            })
        })
        .collect()
}

fn is_built_from(artifact: &Value, target: &Target) -> bool {
    let manifest = Path::new(artifact["manifest_path"].as_str().unwrap_or_default());
    let folder = manifest.parent().map(crate::workspace::file_name);
    let kind = if target.name == "lib" { "lib" } else { "test" };
    artifact["executable"].is_string()
        && artifact["profile"]["test"] == true
        && artifact["target"]["kind"][0] == kind
        && folder.as_deref() == Some(&target.folder)
        && (kind == "lib" || artifact["target"]["name"] == target.name.as_str())
}

impl Binary {
    /// The names of its tests, ignored ones included.
    pub(crate) fn tests(&self) -> Result<Vec<String>> {
        let mut command = process::program(&self.program, &self.dir);
        command.args(["--list", "--format", "terse"]);
        let ended = process::capture(command, None)?;
        if !ended.good() {
            bail!(
                "{} cannot list its tests:\n{}",
                self.target.name,
                ended.output
            );
        }
        let named = ended
            .output
            .lines()
            .filter_map(|line| line.strip_suffix(": test"));
        Ok(named.map(str::to_owned).collect())
    }

    /// Runs one test in a process of its own.
    pub(crate) fn run(
        &self,
        test: &str,
        with_ignored: bool,
        environment: &[(&str, String)],
        limit: Option<Duration>,
    ) -> Result<TestRun> {
        let mut command = process::program(&self.program, &self.dir);
        command.args(["--exact", test, "--test-threads=1", "--nocapture"]);
        if with_ignored {
            command.arg("--include-ignored");
        }
        command.env("CARGO_MANIFEST_DIR", &self.dir);
        for (name, value) in environment {
            command.env(name, value);
        }
        let ended = process::capture(command, limit)?;
        let mut tests = process::Tally::default();
        ended.output.lines().for_each(|line| tests.read(line));
        let outcome = match () {
            () if ended.timed_out => Outcome::TimedOut,
            () if ended.good() && tests.passed == 1 => Outcome::Passed,
            () if ended.good() && tests.ignored == 1 => Outcome::Ignored,
            () if ended.good() => Outcome::Absent,
            () => Outcome::Failed,
        };
        Ok(TestRun { outcome, ended })
    }
}

/// One test, run.
#[derive(Debug)]
pub(crate) struct TestRun {
    pub(crate) outcome: Outcome,
    pub(crate) ended: Ended,
}

impl TestRun {
    /// The runner's closing line, or how the process ended where there is none.
    pub(crate) fn closing_line(&self) -> String {
        let mut lines = self.ended.output.lines().rev();
        match lines.find_map(|line| line.find("test result: ").map(|at| &line[at..])) {
            Some(line) if !self.ended.timed_out => line.to_owned(),
            _ => format!("no closing line: {}", self.ended.how()),
        }
    }
}

/// How a test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    Failed,
    TimedOut,
    Ignored,
    /// The program has no test of that name.
    Absent,
}

/// A test program that is a shell script. The folder lives as long as the first part.
#[cfg(test)]
pub(crate) fn scripted(text: &str) -> (tempfile::TempDir, Binary) {
    use std::os::unix::fs::PermissionsExt;
    let dir = crate::workspace::fake(&[("run", &format!("#!/bin/sh\n{text}\n"))]);
    let program = dir.path().join("run");
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&program, executable).expect("the file was just written");
    let target = Target {
        folder: "locks".to_owned(),
        package: "corelay-locks".to_owned(),
        name: "loom_x".to_owned(),
    };
    let binary = Binary {
        target,
        program,
        dir: dir.path().to_owned(),
    };
    (dir, binary)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(name: &str) -> Target {
        Target {
            folder: "locks".into(),
            package: "corelay-locks".into(),
            name: name.into(),
        }
    }

    fn outcome(text: &str) -> Outcome {
        let (_dir, binary) = scripted(text);
        let run = binary
            .run("t", false, &[], Some(Duration::from_millis(500)))
            .unwrap();
        run.outcome
    }

    #[test]
    fn outcomes_are_told_apart() {
        let closing = "echo 'test result: ok. 1 passed; 0 failed; 0 ignored'";
        assert_eq!(outcome(closing), Outcome::Passed);
        assert_eq!(outcome(&format!("{closing}; exit 101")), Outcome::Failed);
        assert_eq!(outcome("kill -SEGV $$"), Outcome::Failed);
        assert_eq!(outcome("exec sleep 100"), Outcome::TimedOut);
        assert_eq!(
            outcome("echo 'test result: ok. 0 passed; 0 failed; 0 ignored'"),
            Outcome::Absent
        );
        assert_eq!(
            outcome("echo 'test result: ok. 0 passed; 0 failed; 1 ignored'"),
            Outcome::Ignored
        );
    }

    #[test]
    fn programs_are_found_by_crate_and_name() {
        let message = |folder: &str, name: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/w/crates/{folder}/Cargo.toml","target":{{"kind":["test"],"name":"{name}"}},"profile":{{"test":true}},"executable":"/t/{folder}-{name}"}}"#
            )
        };
        let messages = [
            message("sync", "loom_x"),
            message("locks", "loom_x"),
            "noise".into(),
        ];
        let found = find(&messages.join("\n"), &[target("loom_x")]).unwrap();
        assert_eq!(found[0].program, Path::new("/t/locks-loom_x"));
        let error = find(&messages.join("\n"), &[target("loom_y")]).unwrap_err();
        assert!(
            error.to_string().contains("loom_y of corelay-locks"),
            "{error}"
        );
    }

    #[test]
    fn flags_are_given_once() {
        let mut command = Command::new("cargo");
        select(&mut command, &[target("lib"), target("b"), target("b")]);
        let args: Vec<_> = command.get_args().collect();
        assert_eq!(args, ["--package", "corelay-locks", "--test", "b", "--lib"]);
    }

    #[test]
    fn the_checker_is_told_by_the_file() {
        assert_eq!(Checker::of("loom_mcs"), Checker::Loom);
        assert_eq!(Checker::of("shuttle_mcs"), Checker::Shuttle);
        assert_eq!(Checker::of("lib"), Checker::Plain);
    }
}
