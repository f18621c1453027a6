//! A storage in memory whose disk fails when it is told to, and forgets what was not synchronized
//! when its power is cut.

use corelay_txn::store::disk::{Storage, StorageFile};
use std::collections::BTreeMap;
use std::io::{self, Cursor, Read};
use std::sync::{Arc, Mutex, MutexGuard};

/// Files by their names.
pub(crate) type Image = BTreeMap<String, Vec<u8>>;

/// A disk that fails when told to.
#[derive(Clone, Default)]
pub(crate) struct Faulty(Arc<Mutex<Disk>>);

#[derive(Default)]
struct Disk {
    files: Vec<File>,
    /// The files as the running program sees them: the indexes of their contents.
    names: BTreeMap<String, usize>,
    /// The files as they are after a power cut, if no change since is on disk.
    synced_names: BTreeMap<String, usize>,
    /// The changes of names since.
    changes: Vec<Change>,
    plan: Plan,
    /// The bytes that were appended, and how often the disk was synchronized.
    pub(crate) appended: u64,
    pub(crate) syncs: u64,
    /// No call succeeds any more.
    is_off: bool,
}

#[derive(Clone)]
enum Change {
    Create(String, usize),
    Rename(String, String),
    Remove(String),
}

#[derive(Default, Clone)]
struct File {
    bytes: Vec<u8>,
    /// The contents that the disk has confirmed.
    synced: Vec<u8>,
}

/// When something fails.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Plan {
    /// After so many appended bytes the disk is full: the rest of the write is missing.
    pub(crate) full_after: Option<u64>,
    /// The synchronization of this number, and every later one, fails.
    pub(crate) sync_fails_from: Option<u64>,
    /// The power is cut after so many steps: a step is a byte appended, or another call.
    pub(crate) off_after: Option<u64>,
}

impl Faulty {
    pub(crate) fn new(image: &Image) -> Self {
        let faulty = Self::default();
        let mut disk = faulty.disk();
        for (name, bytes) in image {
            let index = disk.files.len();
            disk.files.push(File {
                bytes: bytes.clone(),
                synced: bytes.clone(),
            });
            disk.names.insert(name.clone(), index);
        }
        disk.synced_names = disk.names.clone();
        drop(disk);
        faulty
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.0.lock().unwrap()
    }

    pub(crate) fn plan(&self, plan: Plan) {
        self.disk().plan = plan;
    }

    /// The number of synchronizations so far.
    pub(crate) fn syncs(&self) -> u64 {
        self.disk().syncs
    }

    /// The files as the running program sees them: what a killed process leaves.
    pub(crate) fn image(&self) -> Image {
        let disk = self.disk();
        let names = disk.names.iter();
        names
            .map(|(name, &index)| (name.clone(), disk.files[index].bytes.clone()))
            .collect()
    }

    /// The files after a power cut. `choose(n)` is a number below `n`: it says how many of the
    /// changes of names are on disk, how many bytes of each file that were not synchronized, and
    /// whether the last of them are torn.
    pub(crate) fn cut(&self, mut choose: impl FnMut(usize) -> usize) -> Image {
        let disk = self.disk();
        let mut names = disk.synced_names.clone();
        let kept = choose(disk.changes.len() + 1);
        for change in &disk.changes[..kept] {
            change.clone().apply(&mut names);
        }
        let mut image = Image::new();
        for (name, index) in names {
            let File { bytes, synced } = &disk.files[index];
            let common = bytes.iter().zip(synced).take_while(|(a, b)| a == b).count();
            // What was written since is there up to a place.
            let place = common + choose(bytes.len() - common + 1);
            let mut after = bytes[..place].to_vec();
            if place < synced.len() {
                after.extend_from_slice(&synced[place..]);
            }
            if place > common && choose(4) == 0 {
                // A page before the place was not written, though the length was.
                let hole = common + choose(place - common);
                let end = place.min(hole + 1 + choose(64));
                after[hole..end].fill(0);
            }
            image.insert(name, after);
        }
        image
    }
}

impl Change {
    fn apply(self, names: &mut BTreeMap<String, usize>) {
        match self {
            Self::Create(name, index) => {
                names.insert(name, index);
            }
            Self::Rename(from, to) => {
                if let Some(index) = names.remove(&from) {
                    names.insert(to, index);
                }
            }
            Self::Remove(name) => {
                names.remove(&name);
            }
        }
    }
}

impl Disk {
    /// Takes steps until the power is cut. Returns how many were taken.
    fn steps(&mut self, wanted: u64) -> u64 {
        if self.is_off {
            return 0;
        }
        let Some(left) = &mut self.plan.off_after else {
            return wanted;
        };
        let taken = wanted.min(*left);
        *left -= taken;
        self.is_off = taken < wanted;
        taken
    }

    fn step(&mut self) -> io::Result<()> {
        match self.steps(1) {
            1 => Ok(()),
            _ => Err(io::Error::other("the power is off")),
        }
    }

    fn change(&mut self, change: Change) -> io::Result<()> {
        self.step()?;
        self.changes.push(change.clone());
        change.apply(&mut self.names);
        Ok(())
    }

    fn index(&self, name: &str) -> io::Result<usize> {
        let index = self.names.get(name).copied();
        index.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    fn sync_file(&mut self, index: usize) -> io::Result<()> {
        self.step()?;
        let number = self.syncs;
        self.syncs += 1;
        if self.plan.sync_fails_from.is_some_and(|from| number >= from) {
            return Err(io::Error::from_raw_os_error(5));
        }
        let file = &mut self.files[index];
        file.synced = file.bytes.clone();
        Ok(())
    }
}

impl Storage for Faulty {
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.disk().names.keys().cloned().collect())
    }

    fn open(&self, name: &str) -> io::Result<(Box<dyn Read + Send>, u64)> {
        let disk = self.disk();
        let bytes = disk.files[disk.index(name)?].bytes.clone();
        let length = bytes.len() as u64;
        Ok((Box::new(Cursor::new(bytes)), length))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        let mut disk = self.disk();
        if disk.names.contains_key(name) {
            return Err(io::Error::from(io::ErrorKind::AlreadyExists));
        }
        let index = disk.files.len();
        disk.files.push(File::default());
        disk.change(Change::Create(name.to_owned(), index))?;
        let disk = self.clone();
        Ok(Box::new(Open { disk, index }))
    }

    fn mend(&self, name: &str, offset: u64, tail: &[u8]) -> io::Result<()> {
        let mut disk = self.disk();
        let index = disk.index(name)?;
        let written = disk.steps(tail.len() as u64) as usize;
        let bytes = &mut disk.files[index].bytes;
        let offset = offset as usize;
        bytes.resize(bytes.len().max(offset + written), 0);
        bytes[offset..offset + written].copy_from_slice(&tail[..written]);
        disk.step()?;
        disk.files[index].bytes.truncate(offset + tail.len());
        disk.sync_file(index)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut disk = self.disk();
        disk.index(from)?;
        disk.change(Change::Rename(from.to_owned(), to.to_owned()))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut disk = self.disk();
        disk.index(name)?;
        disk.change(Change::Remove(name.to_owned()))
    }

    fn sync(&self) -> io::Result<()> {
        let mut disk = self.disk();
        disk.step()?;
        disk.synced_names = disk.names.clone();
        disk.changes.clear();
        Ok(())
    }
}

struct Open {
    disk: Faulty,
    index: usize,
}

impl StorageFile for Open {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut disk = self.disk.disk();
        let mut written = disk.steps(bytes.len() as u64);
        let mut result = Ok(());
        if written < bytes.len() as u64 {
            result = Err(io::Error::other("the power is off"));
        }
        if let Some(limit) = disk.plan.full_after
            && disk.appended + written > limit
        {
            written = limit.saturating_sub(disk.appended);
            result = Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        disk.appended += written;
        disk.files[self.index]
            .bytes
            .extend_from_slice(&bytes[..written as usize]);
        result
    }

    fn sync(&mut self) -> io::Result<()> {
        self.disk.disk().sync_file(self.index)
    }
}
