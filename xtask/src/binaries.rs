//! Test programs: built by cargo, listed and run one test at a time by xtask.
//!
//! One process per test gives each its own time and time limit, and one failure does not
//! hide the next.

use crate::process::{self, Ended, Tally};
use crate::workspace::{file_name, package_of};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The checker that a test runs under; the name of its file says which.
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

    /// The name of the checker and of its build folder.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Loom => "loom",
            Self::Shuttle => "shuttle",
            Self::Plain => "test",
        }
    }
}

/// A test target of a package.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Target {
    /// The folder name of its crate: `locks`.
    pub(crate) folder: String,
    /// The file in `tests/` without `.rs`, or `lib` for unit tests.
    pub(crate) name: String,
}

impl Target {
    pub(crate) fn new(folder: &str, name: &str) -> Self {
        let (folder, name) = (folder.to_owned(), name.to_owned());
        Self { folder, name }
    }
}

/// Tells cargo which test targets are meant. It takes the flags of all packages together,
/// each once.
pub(crate) fn select(command: &mut Command, targets: &[Target]) {
    let packages: BTreeSet<String> = targets.iter().map(|t| package_of(&t.folder)).collect();
    let names: BTreeSet<&str> = targets.iter().map(|t| t.name.as_str()).collect();
    for package in packages {
        command.args(["--package", &package]);
    }
    for name in names {
        match name {
            "lib" => command.arg("--lib"),
            name => command.args(["--test", name]),
        };
    }
}

/// Builds test programs of the tree at `root` into `into`, in the order of `targets`, or gives
/// the compiler's messages. `errors` says where they go besides.
pub(crate) fn build(
    root: &Path,
    into: &Path,
    checker: Checker,
    targets: &[Target],
    errors: Stdio,
) -> Result<Result<Vec<Binary>, String>> {
    let flags = "test --no-run --locked --message-format=json-render-diagnostics";
    let mut command = process::cargo(root, flags);
    command.env("CARGO_TARGET_DIR", into).stderr(errors);
    if checker != Checker::Plain {
        // Models execute millions of schedules: optimised, but quick to build.
        command.args(["--profile", "model"]);
        command.env("RUSTFLAGS", format!("--cfg corelay_{}", checker.name()));
    }
    select(&mut command, targets);
    let output = command.output().context("cannot start cargo")?;
    if !output.status.success() {
        return Ok(Err(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    find(&String::from_utf8_lossy(&output.stdout), targets).map(Ok)
}

/// The programs named in cargo's messages, in the order of `targets`.
fn find(messages: &str, targets: &[Target]) -> Result<Vec<Binary>> {
    let messages = messages.lines().map(serde_json::from_str);
    let artifacts: Vec<Value> = messages.filter_map(Result::ok).collect();
    let program = |target: &Target| {
        let built = artifacts.iter().find_map(|a| Binary::of(a, target));
        let (name, folder) = (&target.name, &target.folder);
        built.with_context(|| format!("cargo built no program for {name} of {folder}"))
    };
    targets.iter().map(program).collect()
}

/// A built test program.
#[derive(Debug)]
pub(crate) struct Binary {
    /// The target that it was built from.
    pub(crate) target: Target,
    pub(crate) program: PathBuf,
    /// The folder of its crate.
    dir: PathBuf,
}

impl Binary {
    /// The program of an artifact in cargo's messages, if it was built from `target`.
    fn of(artifact: &Value, target: &Target) -> Option<Self> {
        let program = Path::new(artifact["executable"].as_str()?);
        let dir = Path::new(artifact["manifest_path"].as_str()?).parent()?;
        let (kind, name) = match target.name.as_str() {
            "lib" => ("lib", artifact["target"]["name"].as_str()?),
            name => ("test", name),
        };
        let is_built_from = artifact["profile"]["test"] == true
            && artifact["target"]["kind"][0] == kind
            && artifact["target"]["name"] == name
            && file_name(dir) == target.folder;
        is_built_from.then(|| Self {
            target: target.clone(),
            program: program.to_owned(),
            dir: dir.to_owned(),
        })
    }

    /// The names of its tests, ignored ones included.
    pub(crate) fn tests(&self) -> Result<Vec<String>> {
        let mut command = process::program(&self.program, &self.dir);
        command.args(["--list", "--format", "terse"]);
        let Ended { code, output, .. } = process::capture(command, None)?;
        if code != Some(0) {
            bail!("{} cannot list its tests:\n{output}", self.target.name);
        }
        let named = output
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
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        let ended = process::capture(command, limit)?;
        let tests = Tally::of(&ended.output);
        let outcome = match ended.good() {
            _ if ended.timed_out => Outcome::TimedOut,
            true if tests.passed == 1 => Outcome::Passed,
            true if tests.ignored == 1 => Outcome::Ignored,
            true => Outcome::Absent,
            false => Outcome::Failed,
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
    /// The runner's closing line, or how the process ended if there is none.
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
    let (dir, workspace) = crate::workspace::fake(&[("run", &format!("#!/bin/sh\n{text}\n"))]);
    let program = dir.path().join("run");
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&program, executable).expect("the file was just written");
    let binary = Binary {
        target: Target::new("locks", "loom_x"),
        program,
        dir: workspace.root,
    };
    (dir, binary)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(text: &str) -> Outcome {
        let (_dir, binary) = scripted(text);
        let limit = Some(Duration::from_millis(500));
        binary.run("t", false, &[], limit).unwrap().outcome
    }

    #[test]
    fn outcomes_are_told_apart() {
        let closing = "echo 'test result: ok. 1 passed; 0 failed; 0 ignored'";
        assert_eq!(outcome(closing), Outcome::Passed);
        assert_eq!(outcome(&format!("{closing}; exit 101")), Outcome::Failed);
        assert_eq!(outcome("kill -SEGV $$"), Outcome::Failed);
        assert_eq!(outcome("exec sleep 100"), Outcome::TimedOut);
        let none = closing.replace("1 passed", "0 passed");
        assert_eq!(outcome(&none), Outcome::Absent);
        let ignored = none.replace("0 ignored", "1 ignored");
        assert_eq!(outcome(&ignored), Outcome::Ignored);
    }

    #[test]
    fn programs_are_found_by_crate_and_name() {
        let message = |folder: &str| {
            format!(
                r#"{{"manifest_path":"/w/crates/{folder}/Cargo.toml","target":{{"kind":["test"],"name":"loom_x"}},"profile":{{"test":true}},"executable":"/t/{folder}"}}"#
            )
        };
        let messages = format!("{}\n{}\nnoise", message("sync"), message("locks"));
        let [x, y] = ["loom_x", "loom_y"].map(|name| Target::new("locks", name));
        let found = find(&messages, &[x]).unwrap();
        assert_eq!(found[0].program, Path::new("/t/locks"));
        let error = find(&messages, &[y]).unwrap_err();
        assert!(error.to_string().contains("loom_y of locks"), "{error}");
    }

    #[test]
    fn flags_are_given_once() {
        let mut command = Command::new("cargo");
        let targets = ["lib", "b", "b"].map(|name| Target::new("locks", name));
        select(&mut command, &targets);
        let args: Vec<_> = command.get_args().collect();
        assert_eq!(args, ["--package", "corelay-locks", "--test", "b", "--lib"]);
    }
}
