//! The copy of the tree that mutants are applied to.

use crate::workspace::{self, Workspace};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// Brings the copy up to date and gives its root.
///
/// Files that are already the same are left alone, so that their times stay and cargo
/// rebuilds only what differs.
pub(crate) fn copy(workspace: &Workspace) -> Result<PathBuf> {
    let root = workspace.target.join("mutants").join("tree");
    fs::create_dir_all(&root)?;
    let mut wanted = Vec::new();
    // The build folder may have another name than `target`, below the root or above it.
    let inside = workspace.target.starts_with(&workspace.root);
    for path in workspace::files_below(&workspace.root, &|_| true)? {
        if inside && path.starts_with(&workspace.target) {
            continue;
        }
        let relative = path.strip_prefix(&workspace.root)?.to_owned();
        put(&root.join(&relative), &fs::read(&path)?)?;
        wanted.push(relative);
    }
    for path in workspace::files_below(&root, &|_| true)? {
        if !wanted.iter().any(|relative| root.join(relative) == path) {
            fs::remove_file(&path)?;
        }
    }
    Ok(root)
}

/// Writes `content` where the file does not hold it already.
pub(crate) fn put(path: &Path, content: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|old| old == content) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_copy_follows_the_tree() {
        let dir = workspace::fake(&[("a/b.rs", "one"), ("c.md", "two"), ("target/x", "no")]);
        let workspace = Workspace::at(dir.path());
        let root = copy(&workspace).unwrap();
        assert_eq!(fs::read_to_string(root.join("a/b.rs")).unwrap(), "one");
        assert!(!root.join("target/x").exists());

        let time = fs::metadata(root.join("c.md")).unwrap().modified().unwrap();
        fs::write(root.join("a/b.rs"), "mutated").unwrap();
        fs::write(root.join("stray"), "").unwrap();
        copy(&workspace).unwrap();
        assert_eq!(fs::read_to_string(root.join("a/b.rs")).unwrap(), "one");
        assert!(!root.join("stray").exists());
        assert_eq!(
            fs::metadata(root.join("c.md")).unwrap().modified().unwrap(),
            time
        );
    }
}
