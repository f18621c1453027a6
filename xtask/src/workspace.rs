//! Where things are: the root, the build folder, the crates.

use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

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
    /// The name in its manifest: `corelay-locks`.
    pub(crate) package: String,
}

impl Workspace {
    /// The checkout that this xtask was started from.
    pub(crate) fn find() -> Result<Self> {
        // `cargo run` names the manifest; a bare start falls back to where it was built.
        let own = std::env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = own
            .parent()
            .context("xtask lies in a folder of the workspace")?
            .to_owned();
        let target = match std::env::var_os("CARGO_TARGET_DIR") {
            Some(dir) => std::path::absolute(dir)?,
            None => root.join("target"),
        };
        Ok(Self { root, target })
    }

    /// A tree at `root`, for tests.
    #[cfg(test)]
    pub(crate) fn at(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            target: root.join("target"),
        }
    }

    /// The crates below `crates/`, by name.
    pub(crate) fn members(&self) -> Result<Vec<Member>> {
        let mut members = Vec::new();
        for dir in sorted(&self.root.join("crates"))? {
            let manifest = dir.join("Cargo.toml");
            if !manifest.is_file() {
                continue;
            }
            let table = read_toml(&manifest)?;
            let package = table
                .get("package")
                .and_then(|package| package.get("name"))
                .and_then(toml::Value::as_str)
                .with_context(|| format!("{} names no package", manifest.display()))?
                .to_owned();
            members.push(Member {
                folder: file_name(&dir),
                dir,
                package,
            });
        }
        Ok(members)
    }

    /// `path` as it is printed: relative to the root.
    pub(crate) fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.root)
            .unwrap_or(path)
            .display()
            .to_string()
    }
}

impl Member {
    /// True where its source is run under the model checkers.
    pub(crate) fn is_modelled(&self) -> bool {
        MODELLED.contains(&self.folder.as_str())
    }

    /// Every Rust file below `src/`.
    pub(crate) fn sources(&self) -> Result<Vec<PathBuf>> {
        let src = self.dir.join("src");
        if !src.is_dir() {
            return Ok(Vec::new());
        }
        files_below(&src, &|path| path.extension().is_some_and(|e| e == "rs"))
    }

    /// The names of the test targets that start with `prefix`: `tests/name.rs` or
    /// `tests/name/main.rs`.
    pub(crate) fn tests(&self, prefix: &str) -> Result<Vec<String>> {
        let dir = self.dir.join("tests");
        if !dir.is_dir() {
            return Ok(Vec::new());
        }
        let is_target = |path: &&PathBuf| {
            path.extension().is_some_and(|e| e == "rs") || path.join("main.rs").is_file()
        };
        Ok(sorted(&dir)?
            .iter()
            .filter(is_target)
            .filter_map(|path| path.file_stem()?.to_str())
            .filter(|stem| stem.starts_with(prefix))
            .map(str::to_owned)
            .collect())
    }
}

/// The entries of `dir`, by name.
pub(crate) fn sorted(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut entries = fs::read_dir(dir)
        .with_context(|| format!("cannot list {}", dir.display()))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<Vec<_>>>()?;
    entries.sort();
    Ok(entries)
}

/// The files below `dir` that `wanted` accepts, without build folders, reports and
/// hidden folders.
pub(crate) fn files_below(dir: &Path, wanted: &dyn Fn(&Path) -> bool) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in sorted(dir)? {
        if path.is_dir() {
            let name = file_name(&path);
            let skipped = name.starts_with('.') || name == "target" || name == "corelay-report";
            if !skipped && !path.is_symlink() {
                found.extend(files_below(&path, wanted)?);
            }
        } else if wanted(&path) {
            found.push(path);
        }
    }
    Ok(found)
}

/// A text file.
pub(crate) fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// A TOML file.
pub(crate) fn read_toml(path: &Path) -> Result<toml::Table> {
    read(path)?
        .parse()
        .with_context(|| format!("{} is not TOML", path.display()))
}

/// The last part of a path.
pub(crate) fn file_name(path: &Path) -> String {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// A small tree of files for a test: path and content.
#[cfg(test)]
pub(crate) fn fake(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for (path, content) in files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, content).expect("a file");
    }
    dir
}
