//! The files of a store, and a trait in their place for tests that let disks fail.

use super::error::OpenError;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A flat directory of files. Files are read from their beginning and written at their end.
pub trait Storage: Send + Sync + 'static {
    /// The names of all files.
    fn list(&self) -> io::Result<Vec<String>>;

    /// A reader at the beginning of a file, and the file's length in bytes.
    fn open(&self, name: &str) -> io::Result<(Box<dyn Read + Send>, u64)>;

    /// Makes a new, empty file. Fails if there is one of this name.
    fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>>;

    /// Writes `tail` at `offset`, where it becomes the end of the file, and has the disk confirm
    /// the whole file.
    fn mend(&self, name: &str, offset: u64, tail: &[u8]) -> io::Result<()>;

    /// Gives a file another name, whose file it replaces if there is one.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Has the disk confirm which files there are.
    fn sync(&self) -> io::Result<()>;
}

/// A file that is being written.
pub trait StorageFile: Send {
    /// Writes all of `bytes` at the end.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Has the disk confirm everything written so far.
    fn sync(&mut self) -> io::Result<()>;
}

/// A directory of the file system, locked against other processes.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    /// The directory itself, to be synchronized.
    handle: File,
    /// The file that is locked as long as this value lives.
    lock: File,
}

/// The file that is locked. It holds the number of the process that has locked it.
const LOCK: &str = "lock";

impl Directory {
    /// Makes the directory if it is not there, and locks it.
    pub(super) fn open(path: &Path) -> Result<Self, OpenError> {
        let io = |doing: &str| OpenError::io(format!("{doing} {}", path.display()));
        fs::create_dir_all(path).map_err(io("make the directory"))?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut lock = options
            .open(path.join(LOCK))
            .map_err(io("write to the directory"))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let read = lock.read_to_string(&mut text);
                return Err(OpenError::InUse {
                    dir: path.to_owned(),
                    pid: read.ok().and_then(|_| text.trim().parse().ok()),
                });
            }
            Err(TryLockError::Error(error)) => return Err(io("lock")(error)),
        }
        let named = lock.set_len(0);
        let named = named.and_then(|()| writeln!(lock, "{}", std::process::id()));
        named.map_err(io("write to the directory"))?;
        let handle = File::open(path).map_err(io("read the directory"))?;
        // The directory itself may be new.
        let parent = path.canonicalize();
        let parent = parent.map_err(io("find the parent directory of"))?;
        if let Some(parent) = parent.parent() {
            // It may belong to somebody else, who does not let it be read.
            let _ = File::open(parent).and_then(|parent| parent.sync_all());
        }
        Ok(Self {
            path: path.to_owned(),
            handle,
            lock,
        })
    }
}

impl Drop for Directory {
    /// Unlocks the directory for whoever shares the file. Closing it would not: a child process that
    /// another thread is just starting has it open, too, until it runs its program.
    fn drop(&mut self) {
        // If that fails, closing it unlocks it, perhaps a moment later.
        let _ = self.lock.unlock();
    }
}

impl Storage for Directory {
    fn list(&self) -> io::Result<Vec<String>> {
        let entries = fs::read_dir(&self.path)?;
        let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        let mut names = names.collect::<io::Result<Vec<_>>>()?;
        names.retain(|name| name != LOCK);
        Ok(names)
    }

    fn open(&self, name: &str) -> io::Result<(Box<dyn Read + Send>, u64)> {
        let file = File::open(self.path.join(name))?;
        let length = file.metadata()?.len();
        Ok((Box::new(file), length))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        Ok(Box::new(File::create_new(self.path.join(name))?))
    }

    fn mend(&self, name: &str, offset: u64, tail: &[u8]) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).open(self.path.join(name))?;
        file.seek(SeekFrom::Start(offset))?;
        file.write_all(tail)?;
        file.set_len(offset + tail.len() as u64)?;
        file.sync_all()
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn sync(&self) -> io::Result<()> {
        self.handle.sync_all()
    }
}

impl StorageFile for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}
