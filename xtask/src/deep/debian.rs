//! Debian's compiler and tools, unpacked beside the system.
//!
//! ThreadSanitizer needs the standard library's source, and aarch64 its compiled form,
//! from the same build as the compiler. Debian has both as packages. They are downloaded
//! with apt and unpacked into `target/debian`; nothing is installed, root is not needed
//! and rustup's toolchain is not touched.

use crate::process;
use crate::workspace::{self, Workspace};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The compiler and what it needs from its own build.
const COMPILER: &[&str] = &["rustc-web", "cargo-web", "libstd-rust-web-dev"];

/// Debian's Rust, unpacked.
pub(super) struct Debian {
    /// Holds `usr/`.
    pub(super) root: PathBuf,
    /// The major version of the compiler's LLVM.
    pub(super) llvm: String,
    /// An argument that a `cargo test` of this compiler needs.
    pub(super) argument: Option<&'static str>,
}

impl Debian {
    pub(super) fn compiler(workspace: &Workspace) -> Result<Self> {
        let root = unpacked(workspace, COMPILER)?;
        let mut command = process::program(root.join("usr/bin/rustc"), &root);
        command.arg("-vV").env("LD_LIBRARY_PATH", libraries(&root));
        let version = said(command)?;
        let field = |name: &str| {
            let value = version.lines().find_map(|line| line.strip_prefix(name));
            value.with_context(|| format!("rustc says nothing after `{name}`"))
        };
        let (release, llvm) = (field("release: ")?, field("LLVM version: ")?);
        let wanted = workspace.package("rust-version")?;
        println!("debian: rustc {release}, the workspace asks for {wanted}");
        let is_too_old = parts(release) < parts(&wanted);
        Ok(Self {
            llvm: llvm.split('.').take(1).collect(),
            root,
            argument: is_too_old.then_some("--ignore-rust-version"),
        })
    }

    /// Debian's cargo with Debian's compiler, to be run in `dir`.
    pub(super) fn cargo(&self, dir: &Path) -> Command {
        let bin = self.root.join("usr/bin");
        let mut command = process::program(bin.join("cargo"), dir);
        // Nothing of the toolchain that started xtask may be mixed in.
        for name in ["CARGO", "RUSTC_WRAPPER", "RUSTUP_TOOLCHAIN", "RUSTFLAGS"] {
            command.env_remove(name);
        }
        let path = std::env::var("PATH").unwrap_or_default();
        command
            .env("PATH", format!("{}:{path}", bin.display()))
            .env("RUSTC", bin.join("rustc"))
            .env("RUSTDOC", bin.join("rustdoc"))
            .env("LD_LIBRARY_PATH", libraries(&self.root));
        command
    }
}

/// `x86_64-linux-gnu`, where Debian puts the libraries of this machine.
pub(super) fn multiarch() -> String {
    format!("{}-linux-gnu", std::env::consts::ARCH)
}

fn libraries(root: &Path) -> PathBuf {
    root.join("usr/lib").join(multiarch())
}

/// The command of a package's program: the system's own, or one that is unpacked beside it.
pub(crate) fn command(workspace: &Workspace, package: &str, name: &str) -> Result<String> {
    if process::is_installed(name) {
        return Ok(name.to_owned());
    }
    let places = ["usr/bin", "usr/sbin"].map(|dir| format!("{dir}/{name}"));
    let mut own = places.iter();
    if let Some(place) = own.find(|place| Path::new("/").join(place).is_file()) {
        return Ok(format!("/{place}"));
    }
    if !process::is_installed("apt-get") {
        bail!("there is neither {name} nor apt-get");
    }
    let root = unpacked(workspace, &[package])?;
    let place = places.iter().find(|place| root.join(place).is_file());
    let place = place.with_context(|| format!("{package} has no {name}"))?;
    Ok(program(&root, place))
}

/// The words of a shell that run an unpacked program with the libraries that came with it.
pub(super) fn program(root: &Path, name: &str) -> String {
    let (root, libraries) = (root.display(), libraries(root).display().to_string());
    let also = libraries.replace("/usr/lib/", "/lib/");
    format!("env LD_LIBRARY_PATH={libraries}:{also} {root}/{name}")
}

/// The numbers of a version.
fn parts(version: &str) -> Vec<u32> {
    let parts = version.split('.');
    parts.map_while(|part| part.parse().ok()).collect()
}

/// Downloads and unpacks `packages`, and what they depend on and the system lacks, and gives
/// the folder that holds `usr/`. A package of another architecture (`name:arm64`) comes alone.
pub(super) fn unpacked(workspace: &Workspace, packages: &[&str]) -> Result<PathBuf> {
    let home = workspace.target.join("debian");
    let root = home.join("root");
    let name = packages.join("+").replace(':', "-");
    let (debs, stamp) = (home.join(&name), home.join(format!("{name}.unpacked")));
    if stamp.is_file() {
        return Ok(root);
    }
    for dir in [&root, &debs.join("partial"), &home.join("lists/partial")] {
        fs::create_dir_all(dir)?;
    }
    println!("debian: fetching {}", packages.join(" "));
    said(apt(&home, &debs, &["update"]))
        .context("apt-get update (this part needs Debian's apt)")?;
    let is_foreign = |package: &&str| package.contains(':');
    let (foreign, own): (Vec<&str>, Vec<&str>) = packages.iter().partition(|p| is_foreign(p));
    if !own.is_empty() {
        let install = ["install", "-y", "--no-install-recommends", "--reinstall"];
        let args = [&install[..], &["--download-only"], &own].concat();
        let names = own.join(", ");
        said(apt(&home, &debs, &args))
            .with_context(|| format!("this system's archive must have {names}"))?;
    }
    if !foreign.is_empty() {
        said(apt(&home, &debs, &[&["download"], &foreign[..]].concat()))?;
    }
    for deb in workspace::sorted(&debs)?.iter().filter(|deb| deb.is_file()) {
        let mut unpack = process::program("dpkg", &home);
        unpack.arg("-x").args([deb, &root]);
        said(unpack)?;
    }
    fs::write(&stamp, "")?;
    Ok(root)
}

/// apt with lists of its own, run in the folder of its downloads: it needs no root and leaves
/// the system alone.
fn apt(home: &Path, debs: &Path, args: &[&str]) -> Command {
    let own = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let mut command = process::program("apt-get", debs);
    command.arg("-q");
    for option in [
        format!("Dir::State::lists={}", home.join("lists").display()),
        format!("Dir::Cache={}", home.display()),
        format!("Dir::Cache::archives={}", debs.display()),
        format!("APT::Architectures::={own}"),
        "APT::Architectures::=arm64".to_owned(),
        "APT::Sandbox::User=".to_owned(),
        "Debug::NoLocking=1".to_owned(),
    ] {
        command.args(["-o", &option]);
    }
    command.args(args);
    command
}

/// Gives a command's output, or its last lines as an error if it fails.
pub(super) fn said(command: Command) -> Result<String> {
    let what = process::shown(&command);
    let ended = process::capture(command, None)?;
    if ended.good() {
        return Ok(ended.output);
    }
    let lines: Vec<&str> = ended.output.lines().collect();
    let last = lines[lines.len().saturating_sub(5)..].join(" / ");
    let what = what.split(" -o ").next().unwrap_or(&what);
    bail!("`{what}` failed: {last}")
}

#[test]
fn versions_compare_by_number() {
    assert!(parts("1.96.0") > parts("1.95"));
    assert!(parts("1.85.0") < parts("1.95"));
    assert!(parts("1.100.0") > parts("1.95"));
}
