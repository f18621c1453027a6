//! `cargo xtask package`: what a registry would get builds by itself, and a user's lock file names
//! nothing that only corelay's own tests need.

use crate::process;
use crate::steps::Verdict;
use crate::workspace::{self, Workspace};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Crates of tests alone.
const TESTS_ONLY: &[&str] = &["corelay-history", "loom", "proptest", "shuttle", "tempfile"];

/// Packing builds every package from its archive.
const LIMIT: Duration = Duration::from_secs(20 * 60);

pub(crate) fn run(workspace: &Workspace) -> Result<Verdict> {
    let locked = locked_by_a_user(workspace)?;
    let unwanted = tests_only(&locked);
    let mut note = format!("{} packages in a user's lock file", locked.len());
    if !unwanted.is_empty() {
        note += &format!(", of tests alone: {}", unwanted.join(" "));
    }
    println!("{note}");
    // What is packed is the working copy, as everything else here is checked in it.
    let build = workspace.target.join("packed");
    forget(
        &build,
        &format!("corelay-{}", workspace.package("version")?),
    )?;
    let mut command = workspace.cargo("package --workspace --locked --allow-dirty");
    command.env("CARGO_TARGET_DIR", &build);
    println!("{}", process::shown(&command));
    let ended = process::pass_on(command, Some(LIMIT))?;
    if !ended.good() {
        note += &format!("; {}", ended.how());
    }
    Ok(Verdict::of(ended.good() && unwanted.is_empty(), note))
}

/// Removes what cargo keeps of an earlier run. It takes the packages of one version for the same,
/// though it has packed them itself, and would build with their old sources.
fn forget(build: &Path, face: &str) -> Result<()> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    let sources = home.context("there is no home")?.join("registry/src");
    let kept = fs::read_dir(sources).into_iter().flatten().flatten();
    // Those of a registry that is a folder have no host before the dash.
    let packed = kept
        .map(|dir| dir.path())
        .filter(|dir| workspace::file_name(dir).starts_with('-') && dir.join(face).is_dir());
    for dir in packed.chain([build.to_owned()]).filter(|dir| dir.exists()) {
        fs::remove_dir_all(&dir).with_context(|| format!("cannot remove {}", dir.display()))?;
    }
    Ok(())
}

/// The packages in the lock file of a program that depends on corelay.
fn locked_by_a_user(workspace: &Workspace) -> Result<Vec<String>> {
    let dir = workspace.target.join("package-user");
    fs::create_dir_all(dir.join("src"))?;
    let face = workspace.root.join("crates/corelay");
    let edition = workspace.package("edition")?;
    let manifest = format!(
        "[package]\nname = \"user\"\nedition = \"{edition}\"\n\n[workspace]\n\n\
         [dependencies]\ncorelay = {{ path = {face:?} }}\n"
    );
    fs::write(dir.join("Cargo.toml"), manifest)?;
    fs::write(dir.join("src/main.rs"), "fn main() {}\n")?;
    let mut command = process::cargo(&dir, "generate-lockfile --quiet");
    let status = command.status().context("cannot start cargo")?;
    if !status.success() {
        bail!("{} failed in {}", process::shown(&command), dir.display());
    }
    let lock = workspace::read_toml(&dir.join("Cargo.lock"))?;
    let packages = lock.get("package").and_then(|packages| packages.as_array());
    let packages = packages.context("the lock file names no package")?;
    let name = |package: &toml::Value| Some(package.get("name")?.as_str()?.to_owned());
    Ok(packages.iter().filter_map(name).collect())
}

fn tests_only(locked: &[String]) -> Vec<&str> {
    let names = locked.iter().map(String::as_str);
    names.filter(|name| TESTS_ONLY.contains(name)).collect()
}

#[test]
fn a_model_checker_in_a_users_lock_file_is_named() {
    let locked = ["corelay", "loom", "libc", "shuttle"].map(str::to_owned);
    assert_eq!(tests_only(&locked), ["loom", "shuttle"]);
    assert!(tests_only(&locked[..1]).is_empty());
}
