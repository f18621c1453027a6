//! Debian's compiler and tools, unpacked beside the system.
//!
//! ThreadSanitizer needs the standard library's source, and aarch64 its compiled form,
//! from the same build as the compiler. Debian has both as packages. They are downloaded
//! with apt and unpacked into `target/debian`; nothing is installed, root is not needed
//! and rustup's toolchain is not touched.

use crate::process::{self, Ended};
use crate::workspace::{self, Workspace};
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The compiler and what it needs from its own build.
const COMPILER: &[&str] = &["rustc-web", "cargo-web", "libstd-rust-web-dev"];

/// Where the packages were unpacked.
pub(super) struct Debian {
    /// Holds `usr/`.
    pub(super) root: PathBuf,
    release: String,
    llvm: String,
    too_old: bool,
}

impl Debian {
    /// Debian's Rust.
    pub(super) fn compiler(workspace: &Workspace) -> Result<Self> {
        let store = Store::at(workspace);
        store.unpack(COMPILER)?;
        let mut command = process::program(store.root.join("usr/bin/rustc"), &store.root);
        command
            .arg("-vV")
            .env("LD_LIBRARY_PATH", libraries(&store.root));
        let version = said(command)?;
        let field = |name: &str| version.lines().find_map(|line| line.strip_prefix(name));
        let release = field("release: ")
            .context("rustc names no release")?
            .to_owned();
        let llvm = field("LLVM version: ").and_then(|v| v.split('.').next());
        let llvm = llvm.context("rustc names no LLVM version")?.to_owned();
        let wanted = rust_version(workspace)?;
        let too_old = parts(&release) < parts(&wanted);
        println!("debian: rustc {release}, the workspace asks for {wanted}");
        if too_old {
            println!("debian: older than that: trying with --ignore-rust-version");
        }
        Ok(Self {
            root: store.root,
            release,
            llvm,
            too_old,
        })
    }

    /// More packages, unpacked into the same place.
    pub(super) fn and(&self, workspace: &Workspace, packages: &[&str]) -> Result<()> {
        Store::at(workspace).unpack(packages)
    }

    /// The major version of the compiler's LLVM.
    pub(super) fn llvm(&self) -> &str {
        &self.llvm
    }

    /// The compiler's version.
    pub(super) fn release(&self) -> &str {
        &self.release
    }

    /// Debian's cargo with Debian's compiler, to be run in `dir`.
    pub(super) fn cargo(&self, dir: &Path) -> Command {
        let bin = self.root.join("usr/bin");
        let mut command = process::program(bin.join("cargo"), dir);
        // Nothing of the toolchain that started xtask may be mixed in.
        for name in [
            "CARGO",
            "RUSTC",
            "RUSTDOC",
            "RUSTC_WRAPPER",
            "RUSTUP_TOOLCHAIN",
            "RUSTFLAGS",
        ] {
            command.env_remove(name);
        }
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", bin.display()));
        command
            .env("RUSTC", bin.join("rustc"))
            .env("RUSTDOC", bin.join("rustdoc"));
        command.env("LD_LIBRARY_PATH", libraries(&self.root));
        command
    }

    /// What a `cargo test` of this compiler needs beyond the usual.
    pub(super) fn arguments(&self) -> &'static [&'static str] {
        if self.too_old {
            &["--ignore-rust-version"]
        } else {
            &[]
        }
    }
}

/// Packages, unpacked, without the compiler: the folder that holds `usr/`.
pub(super) fn unpacked(workspace: &Workspace, packages: &[&str]) -> Result<PathBuf> {
    let store = Store::at(workspace);
    store.unpack(packages)?;
    Ok(store.root)
}

/// `x86_64-linux-gnu`, where Debian puts the libraries of this machine.
pub(super) fn multiarch() -> String {
    format!("{}-linux-gnu", std::env::consts::ARCH)
}

fn libraries(root: &Path) -> PathBuf {
    root.join("usr/lib").join(multiarch())
}

fn rust_version(workspace: &Workspace) -> Result<String> {
    let manifest = workspace::read_toml(&workspace.root.join("Cargo.toml"))?;
    let version = manifest
        .get("workspace")
        .and_then(|table| table.get("package"))
        .and_then(|table| table.get("rust-version"))
        .and_then(toml::Value::as_str);
    Ok(version
        .context("the workspace has no rust-version")?
        .to_owned())
}

fn parts(version: &str) -> Vec<u32> {
    version
        .split('.')
        .map_while(|part| part.parse().ok())
        .collect()
}

/// The folder with downloaded and unpacked packages and apt's own lists.
struct Store {
    home: PathBuf,
    root: PathBuf,
}

impl Store {
    fn at(workspace: &Workspace) -> Self {
        let home = workspace.target.join("debian");
        Self {
            root: home.join("root"),
            home,
        }
    }

    /// Downloads and unpacks `packages` and what they depend on and the system lacks.
    /// A package of another architecture (`name:arm64`) comes alone.
    fn unpack(&self, packages: &[&str]) -> Result<()> {
        let stamp = self
            .home
            .join(format!("{}.unpacked", packages.join("+").replace(':', "-")));
        if stamp.is_file() {
            return Ok(());
        }
        let debs = self.home.join("debs");
        for dir in [
            &debs,
            &self.root,
            &self.home.join("lists/partial"),
            &self.home.join("cache"),
        ] {
            fs::create_dir_all(dir)?;
        }
        println!("debian: fetching {}", packages.join(" "));
        said(self.apt(&["update"])).context("apt-get update (this part needs Debian's apt)")?;
        let (foreign, own): (Vec<&str>, Vec<&str>) =
            packages.iter().partition(|name| name.contains(':'));
        let mut wanted: BTreeSet<String> = foreign.iter().map(|&name| name.to_owned()).collect();
        if !own.is_empty() {
            let flags = [
                "install",
                "-y",
                "--no-install-recommends",
                "--reinstall",
                "--print-uris",
            ];
            let listed = said(self.apt(&[&flags[..], &own].concat()))
                .with_context(|| format!("this system's archive must have {}", own.join(", ")))?;
            wanted.extend(listed.lines().filter_map(package_of));
        }
        let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
        let mut download = self.apt(&[&["download"][..], &wanted].concat());
        download.current_dir(&debs);
        said(download).context("apt-get download")?;
        for deb in workspace::sorted(&debs)? {
            let name = workspace::file_name(&deb);
            if wanted.iter().any(|wanted| is_file_of(&name, wanted)) {
                let mut unpack = process::program("dpkg", &self.home);
                unpack.arg("-x").arg(&deb).arg(&self.root);
                said(unpack)?;
            }
        }
        fs::write(&stamp, wanted.join("\n"))?;
        Ok(())
    }

    /// apt with lists of its own: it needs no root and leaves the system's alone.
    fn apt(&self, args: &[&str]) -> Command {
        let mut command = process::program("apt-get", &self.home);
        command.arg("-q");
        for option in [
            format!("Dir::State::lists={}", self.home.join("lists").display()),
            format!("Dir::Cache={}", self.home.join("cache").display()),
            format!(
                "APT::Architectures::={}",
                debian_name(std::env::consts::ARCH)
            ),
            "APT::Architectures::=arm64".to_owned(),
            "APT::Sandbox::User=".to_owned(),
            "Debug::NoLocking=1".to_owned(),
        ] {
            command.args(["-o", &option]);
        }
        command.args(args);
        command
    }
}

fn debian_name(arch: &str) -> &str {
    match arch {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// The package of a line that `--print-uris` gives: `'address' name_version_arch.deb …`
/// becomes `name:arch=version`.
fn package_of(line: &str) -> Option<String> {
    let file = line
        .strip_prefix('\'')?
        .split_once("' ")?
        .1
        .split(' ')
        .next()?;
    let mut parts = file.strip_suffix(".deb")?.split('_');
    let (name, version, arch) = (parts.next()?, parts.next()?, parts.next()?);
    let version = version.replace("%3a", ":");
    if arch == "all" {
        Some(format!("{name}={version}"))
    } else {
        Some(format!("{name}:{arch}={version}"))
    }
}

/// True where the downloaded file is of the package `name[:arch][=version]`.
fn is_file_of(file: &str, wanted: &str) -> bool {
    let (name, version) = wanted.split_once('=').unwrap_or((wanted, ""));
    let (name, arch) = name.split_once(':').unwrap_or((name, ""));
    let version = version.replace(':', "%3a");
    let Some(rest) = file.strip_prefix(&format!("{name}_")) else {
        return false;
    };
    let Some((found, of)) = rest
        .strip_suffix(".deb")
        .and_then(|rest| rest.split_once('_'))
    else {
        return false;
    };
    (version.is_empty() || version == found) && (arch.is_empty() || arch == of)
}

/// What a command says; an error with its last lines where it fails.
fn said(command: Command) -> Result<String> {
    let what = process::shown(&command);
    let Ended { code, output, .. } = process::capture(command, None)?;
    if code == Some(0) {
        return Ok(output);
    }
    let lines: Vec<&str> = output.lines().collect();
    let last = &lines[lines.len().saturating_sub(5)..];
    bail!(
        "`{}` failed: {}",
        what.split(" -o ").next().unwrap_or(&what),
        last.join(" / ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apt_lines_become_packages() {
        let line =
            "'http://e.org/l.deb' libllvm22_1%3a22.1.8-1~deb12u1_amd64.deb 29378692 MD5Sum:0";
        assert_eq!(
            package_of(line).unwrap(),
            "libllvm22:amd64=1:22.1.8-1~deb12u1"
        );
        let line = "'http://e.org/s.deb' rust-web-src_1.96.0_all.deb 1 ";
        assert_eq!(package_of(line).unwrap(), "rust-web-src=1.96.0");
        assert_eq!(package_of("Reading package lists..."), None);
    }

    #[test]
    fn files_belong_to_packages() {
        let file = "libllvm22_1%3a22.1.8-1~deb12u1_amd64.deb";
        assert!(is_file_of(file, "libllvm22:amd64=1:22.1.8-1~deb12u1"));
        assert!(!is_file_of(file, "libllvm22:amd64=1:22.1.9"));
        assert!(is_file_of(
            "libstd-rust-web-dev_1_arm64.deb",
            "libstd-rust-web-dev:arm64"
        ));
        assert!(!is_file_of(
            "libstd-rust-web-dev_1_amd64.deb",
            "libstd-rust-web-dev:arm64"
        ));
    }

    #[test]
    fn versions_compare_by_number() {
        assert!(parts("1.96.0") > parts("1.95"));
        assert!(parts("1.85.0") < parts("1.95"));
        assert!(parts("1.100.0") > parts("1.95"));
    }
}
