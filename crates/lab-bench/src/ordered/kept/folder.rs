//! Folders in which stores can keep rows on disk.

use std::io;
use std::path::Path;
use tempfile::TempDir;

/// Makes a new folder in `dir`. It is removed when it is dropped.
pub(super) fn make(dir: &Path) -> io::Result<TempDir> {
    tempfile::Builder::new()
        .prefix("corelay-kept-")
        .tempdir_in(dir)
}

/// Checks that stores can be made in a folder, and that it is on a disk.
///
/// ```
/// use corelay_lab_bench::ordered::kept::check_folder;
/// let why = check_folder("no/such/folder".as_ref()).unwrap_err();
/// assert!(why.contains("there is no such folder"));
/// ```
///
/// # Errors
/// A clause that says what is wrong with it.
pub fn check_folder(dir: &Path) -> Result<(), String> {
    if !dir.is_dir() {
        return Err("there is no such folder".to_owned());
    }
    make(dir).map_err(|error| format!("the folder cannot be written: {}", error.kind()))?;
    match is_in_memory(dir) {
        true => Err(
            "the folder is in memory (tmpfs), where nothing is ever on disk; name one on a disk"
                .to_owned(),
        ),
        false => Ok(()),
    }
}

/// Asks the system to forget the content of the files in a folder, so that it is read from the disk.
///
/// # Errors
/// If the files cannot be opened, or the system cannot do so.
#[cfg(target_os = "linux")]
pub(super) fn forget(dir: &Path) -> io::Result<()> {
    use rustix::fs::{Advice, fadvise};
    for file in std::fs::read_dir(dir)? {
        let file = std::fs::File::open(file?.path())?;
        // Only what is on disk can be forgotten.
        file.sync_all()?;
        fadvise(&file, 0, None, Advice::DontNeed)?;
    }
    Ok(())
}

/// Fails: elsewhere there is no call for it.
#[cfg(not(target_os = "linux"))]
pub(super) fn forget(_: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(target_os = "linux")]
fn is_in_memory(dir: &Path) -> bool {
    /// `TMPFS_MAGIC` of `linux/magic.h`.
    const TMPFS: u64 = 0x0102_1994;
    rustix::fs::statfs(dir).is_ok_and(|found| found.f_type as u64 == TMPFS)
}

/// Whether the folder is known to be in memory: elsewhere it is not known.
#[cfg(not(target_os = "linux"))]
fn is_in_memory(_: &Path) -> bool {
    false
}
