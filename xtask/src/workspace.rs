//! The places of things: the root, the build folder, the crates.

use crate::process;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The crates whose protocols run under the model checkers.
const MODELLED: &[&str] = &[
    "sync",
    "clock",
    "literature",
    "locks",
    "delegate",
    "fibre",
    "txn",
    "structures",
];

/// The checkout that xtask works on.
#[derive(Debug)]
pub(crate) struct Workspace {
    /// The folder of the root `Cargo.toml`.
    pub(crate) root: PathBuf,
    /// `$CARGO_TARGET_DIR`, or `target` in the root.
    pub(crate) target: PathBuf,
}

/// A crate below `crates/`.
#[derive(Debug)]
pub(crate) struct Member {
    /// The name of its folder: `locks`.
    pub(crate) folder: String,
    /// The folder itself.
    pub(crate) dir: PathBuf,
}

/// The package in a crate's folder: `corelay-locks`. `tidy` holds it up.
pub(crate) fn package_of(folder: &str) -> String {
    match folder {
        "corelay" => folder.to_owned(),
        _ => format!("corelay-{folder}"),
    }
}

impl Workspace {
    /// The checkout that this xtask was started from.
    pub(crate) fn find() -> Result<Self> {
        // `cargo run` names the manifest; a bare start falls back to where it was built.
        let own = std::env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = own.parent();
        let root = root.context("xtask lies in a folder of the workspace")?;
        let target = match std::env::var_os("CARGO_TARGET_DIR") {
            Some(dir) => std::path::absolute(dir)?,
            None => root.join("target"),
        };
        let root = root.to_owned();
        Ok(Self { root, target })
    }

    /// A cargo command that builds into the build folder.
    pub(crate) fn cargo(&self, args: &str) -> Command {
        let mut command = process::cargo(&self.root, args);
        command.env("CARGO_TARGET_DIR", &self.target);
        command
    }

    /// The crates below `crates/`, by name.
    pub(crate) fn members(&self) -> Result<Vec<Member>> {
        let mut dirs = sorted(&self.root.join("crates"))?;
        dirs.retain(|dir| dir.join("Cargo.toml").is_file());
        let member = |dir: PathBuf| Member {
            folder: file_name(&dir),
            dir,
        };
        Ok(dirs.into_iter().map(member).collect())
    }

    /// The field of all packages that the workspace sets: `version`.
    pub(crate) fn package(&self, field: &str) -> Result<String> {
        let manifest = read_toml(&self.root.join("Cargo.toml"))?;
        let packages = manifest.get("workspace").and_then(|w| w.get("package"));
        let text = packages.and_then(|package| package.get(field)?.as_str());
        let text = text.with_context(|| format!("the workspace has no {field}"))?;
        Ok(text.to_owned())
    }

    /// `path` as it is printed: relative to the root.
    pub(crate) fn shown(&self, path: &Path) -> String {
        let path = path.strip_prefix(&self.root).unwrap_or(path);
        path.display().to_string()
    }
}

impl Member {
    /// Whether its source is run under the model checkers.
    pub(crate) fn is_modelled(&self) -> bool {
        MODELLED.contains(&self.folder.as_str())
    }

    /// Every Rust file below `src/`.
    pub(crate) fn sources(&self) -> Result<Vec<PathBuf>> {
        files_below(&self.dir.join("src"), "rs")
    }

    /// The names of the test targets that start with `prefix`: `tests/name.rs` or
    /// `tests/name/main.rs`. Those that need features are left out: cargo refuses them without, and the
    /// gate's step `features` runs them.
    pub(crate) fn tests(&self, prefix: &str) -> Result<Vec<String>> {
        let manifest = read_toml(&self.dir.join("Cargo.toml"))?;
        let declared = manifest.get("test").and_then(|tests| tests.as_array());
        let needs_features = |name: &str| {
            let mut all = declared.into_iter().flatten();
            all.any(|test| {
                test.get("name").and_then(|n| n.as_str()) == Some(name)
                    && test.get("required-features").is_some()
            })
        };
        let is_target =
            |path: &&PathBuf| has_extension(path, "rs") || path.join("main.rs").exists();
        let entries = sorted(&self.dir.join("tests"))?;
        let targets = entries.iter().filter(is_target);
        let names = targets.filter_map(|path| path.file_stem()?.to_str());
        let chosen = names.filter(|name| name.starts_with(prefix) && !needs_features(name));
        Ok(chosen.map(str::to_owned).collect())
    }
}

/// The entries of `dir`, by name; none if there is no such folder.
pub(crate) fn sorted(dir: &Path) -> Result<Vec<PathBuf>> {
    if !dir.is_dir() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))?;
    let entries = entries.map(|entry| Ok(entry?.path()));
    let mut entries = entries.collect::<Result<Vec<_>>>()?;
    entries.sort();
    Ok(entries)
}

/// The files below `dir` with this extension (with any if it is empty), without build folders,
/// reports and hidden folders.
pub(crate) fn files_below(dir: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut found = below(dir)?;
    found.retain(|path| !path.is_dir() && (extension.is_empty() || has_extension(path, extension)));
    Ok(found)
}

/// The symbolic links to folders below `dir`.
pub(crate) fn links_below(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut found = below(dir)?;
    found.retain(|path| path.is_dir());
    Ok(found)
}

/// The files below `dir`, and the links to folders, which are not followed.
fn below(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in sorted(dir)? {
        if path.is_dir() && !path.is_symlink() {
            let name = file_name(&path);
            let is_skipped = name.starts_with('.') || name == "target" || name == "corelay-report";
            if !is_skipped {
                found.extend(below(&path)?);
            }
        } else {
            found.push(path);
        }
    }
    Ok(found)
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}

/// A text file.
pub(crate) fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// A TOML file.
pub(crate) fn read_toml(path: &Path) -> Result<toml::Table> {
    let table = read(path)?.parse();
    table.with_context(|| format!("{} is not TOML", path.display()))
}

/// The last part of a path.
pub(crate) fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// A small tree of files for a test, path and content; crates get their manifests.
#[cfg(test)]
pub(crate) fn fake(files: &[(&str, &str)]) -> (tempfile::TempDir, Workspace) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let put = |path: &Path, content: &str| {
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, content).expect("a file");
    };
    for (path, content) in files {
        put(&dir.path().join(path), content);
        let mut parts = path.split('/');
        if let (Some("crates"), Some(folder)) = (parts.next(), parts.next()) {
            let manifest = dir.path().join("crates").join(folder).join("Cargo.toml");
            if !manifest.exists() {
                let name = format!("[package]\nname = \"corelay-{folder}\"\n");
                put(&manifest, &name);
            }
        }
    }
    let root = dir.path().to_owned();
    let target = root.join("target");
    (dir, Workspace { root, target })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_that_need_features_are_left_out() {
        let members = Workspace::find().unwrap().members().unwrap();
        let delegate = members.iter().find(|member| member.folder == "delegate");
        let tests = delegate.unwrap().tests("").unwrap();
        assert!(tests.iter().any(|name| name == "suite"), "{tests:?}");
        assert!(!tests.iter().any(|name| name == "metrics"), "{tests:?}");
    }
}
