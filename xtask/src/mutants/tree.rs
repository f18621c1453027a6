//! The copies of the tree that mutants are applied to.

use crate::workspace::{self, Workspace};
use anyhow::{Context, Result};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Brings the copy in `home` up to date and gives its root.
///
/// Files that are already the same are left alone, so that their times stay and cargo
/// rebuilds only what differs.
pub(crate) fn copy(workspace: &Workspace, home: &Path) -> Result<PathBuf> {
    let (from, target) = (&workspace.root, &workspace.target);
    let root = home.join("tree");
    // The build folder may have another name than `target`, below the root or above it.
    let is_built = |path: &Path| target.starts_with(from) && path.starts_with(target);
    for path in workspace::files_below(from, "")? {
        if !is_built(&path) {
            put(&root.join(path.strip_prefix(from)?), &fs::read(&path)?)?;
        }
    }
    for link in workspace::links_below(from)? {
        let (copy, target) = (root.join(link.strip_prefix(from)?), fs::read_link(&link)?);
        if fs::read_link(&copy).ok().as_ref() != Some(&target) {
            symlink(&target, &copy)?;
        }
    }
    for path in workspace::files_below(&root, "")? {
        if !from.join(path.strip_prefix(&root)?).exists() {
            fs::remove_file(&path)?;
        }
    }
    Ok(root)
}

/// Writes `content` unless the file holds it already.
pub(crate) fn put(path: &Path, content: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|old| old == content) {
        return Ok(());
    }
    let folder = path.parent().context("a file lies in a folder")?;
    fs::create_dir_all(folder)?;
    fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))
}

#[test]
fn the_copy_follows_the_tree() {
    let files = [("a/b.rs", "one"), ("c.md", "two"), ("target/x", "no")];
    let (_dir, workspace) = workspace::fake(&files);
    symlink("a", workspace.root.join("linked")).unwrap();
    let home = workspace.target.join("copies");
    let root = copy(&workspace, &home).unwrap();
    let text = || fs::read_to_string(root.join("a/b.rs")).unwrap();
    let time = || fs::metadata(root.join("c.md")).unwrap().modified().unwrap();
    assert_eq!(text(), "one");
    assert!(!root.join("target/x").exists());
    assert_eq!(fs::read_link(root.join("linked")).unwrap(), Path::new("a"));

    let before = time();
    fs::write(root.join("a/b.rs"), "mutated").unwrap();
    fs::write(root.join("stray"), "").unwrap();
    copy(&workspace, &home).unwrap();
    assert_eq!(text(), "one");
    assert!(!root.join("stray").exists());
    assert_eq!(time(), before);
}
