//! Directories that cannot be opened, and what is said about them.

use corelay_txn::store::disk::{
    Codec, Disk, EncodeError, MAX_VALUE, OpenError, Options, Records, TableError,
};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

fn error(dir: &Path) -> OpenError {
    match Disk::open(dir, &Options::default()) {
        Ok(_) => panic!("it opened"),
        Err(error) => error,
    }
}

/// A new directory below the system's for temporary files, removed when dropped.
pub(crate) struct TempDir(pub(crate) std::path::PathBuf);

impl TempDir {
    pub(crate) fn new(name: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let pid = std::process::id();
        let dir = std::env::temp_dir().join(format!("corelay-{name}-{pid}-{number}"));
        let _ = fs::remove_dir_all(&dir);
        Self(dir)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn directory_is_made_and_opens_again() {
    let dir = TempDir::new("again");
    let path = dir.0.join("deep/er");
    for round in 0..3_u64 {
        let (disk, recovered) = Disk::open(&path, &Options::default()).unwrap();
        let codec = Codec::<u64, String>::postcard();
        let table = disk.table("names", &(codec.tag)()).unwrap();
        if let Some(table) = recovered.tables.first() {
            let mut entries: Vec<_> = table.entries().collect();
            entries.sort();
            for (index, (key, value)) in (0..).zip(&entries) {
                assert_eq!((codec.decode_key)(key), Ok(index));
                assert_eq!((codec.decode_value)(value), Ok(format!("n{index}")));
            }
            assert_eq!(entries.len() as u64, round);
        }
        let mut records = Records::new();
        let value = format!("n{round}");
        let key = |bytes: &mut Vec<u8>| (codec.encode_key)(&round, bytes);
        let put = records.put(table, key, |bytes| (codec.encode_value)(&value, bytes));
        put.unwrap();
        let mut writer = disk.writer();
        let handle = writer.enter().unwrap().commit(round, &records);
        handle.wait().unwrap();
        assert_eq!(recovered.epoch > 0, round > 0);
    }
}

/// A child process that another thread starts has the files of this one open until it runs its
/// program.
#[test]
fn directory_is_free_while_a_child_process_starts() {
    let dir = TempDir::new("forked");
    let opened = Disk::open(&dir.0, &Options::default()).unwrap();
    // SAFETY: the child calls nothing but `pause`.
    let child = unsafe { libc::fork() };
    // A call for child -1 below would mean every process.
    assert!(child >= 0, "cannot fork");
    if child == 0 {
        loop {
            // SAFETY: it may be called between `fork` and the program.
            unsafe { libc::pause() };
        }
    }
    drop(opened);
    let again = Disk::open(&dir.0, &Options::default());
    // SAFETY: the child is this test's, and has not been waited for.
    unsafe { libc::kill(child, libc::SIGKILL) };
    // SAFETY: as before; nobody wants its status.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    again.unwrap();
}

#[test]
fn directory_in_use_is_refused() {
    let dir = TempDir::new("in-use");
    let opened = Disk::open(&dir.0, &Options::default()).unwrap();
    let said = error(&dir.0).to_string();
    assert!(said.contains("is in use by this process"), "{said}");
    drop(opened);
    Disk::open(&dir.0, &Options::default()).unwrap();
}

#[test]
fn directory_of_another_version_is_refused() {
    let dir = TempDir::new("version");
    drop(Disk::open(&dir.0, &Options::default()).unwrap());
    let path = dir.0.join("identity");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("version 1", "version 9")).unwrap();
    let said = error(&dir.0).to_string();
    assert!(
        said.contains("version 9") && said.contains("version 1"),
        "{said}"
    );
}

#[test]
fn directory_of_something_else_is_refused() {
    let dir = TempDir::new("else");
    fs::create_dir_all(&dir.0).unwrap();
    fs::write(dir.0.join("thesis.tex"), "x").unwrap();
    let error = error(&dir.0);
    assert!(matches!(error, OpenError::NotAStore { .. }));
    let said = error.to_string();
    assert!(
        said.contains("thesis.tex") && said.contains("corelay-else"),
        "{said}"
    );
}

#[test]
fn directory_that_cannot_be_written_is_refused() {
    let dir = TempDir::new("file");
    fs::create_dir_all(&dir.0).unwrap();
    let file = dir.0.join("file");
    fs::write(&file, "x").unwrap();
    for path in [file.clone(), file.join("below")] {
        let error = error(&path);
        assert!(matches!(error, OpenError::Io { .. }), "{error}");
        assert!(error.to_string().contains("cannot make the directory"));
    }
}

#[test]
fn table_of_other_types_is_refused() {
    let dir = TempDir::new("types");
    let (disk, _) = Disk::open(&dir.0, &Options::default()).unwrap();
    let first = disk.table("t", "u64 -> u64").unwrap();
    assert_eq!(disk.table("t", "u64 -> u64"), Ok(first));
    let error = disk.table("t", "u64 -> String").unwrap_err();
    assert!(matches!(error, TableError::Tag { .. }));
    assert!(error.to_string().contains("holds u64 -> u64 on disk"));
    let long = "x".repeat(70_000);
    assert_eq!(
        disk.table(&long, ""),
        Err(TableError::TooLarge { name: long.clone() })
    );
}

#[test]
fn large_value_is_refused_before_the_commit() {
    let dir = TempDir::new("large");
    let (disk, _) = Disk::open(&dir.0, &Options::default()).unwrap();
    let table = disk.table("t", "").unwrap();
    let mut records = Records::new();
    let value = |bytes: &mut Vec<u8>| {
        bytes.resize(bytes.len() + MAX_VALUE + 1, 0);
        Ok(())
    };
    let error = records.put(table, |_| Ok(()), value).unwrap_err();
    let limit = MAX_VALUE;
    let bytes = limit + 1;
    let what = "value";
    assert_eq!(error, EncodeError::TooLarge { what, bytes, limit });
    assert!(records.is_empty());
}
