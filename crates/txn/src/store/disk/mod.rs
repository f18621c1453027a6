//! The disk side of a store: a log, written in groups by epoch, snapshots that let it be cut, and
//! recovery.
//!
//! This knows tables, keys and values as bytes, and no concurrency control. A transaction does, in
//! this order:
//!
//! 1. [`Records::put`] and [`Records::remove`] for everything that it writes.
//! 2. [`Writer::admit`], which waits while the disk is too far behind.
//! 3. It locks everything that it writes. **Then** [`Writer::enter`], which never waits.
//! 4. It draws its commit time and validates what it has read. If that fails, it drops the
//!    [`Entered`], and nothing of it is on disk.
//! 5. It installs its writes, and calls [`Entered::commit`], before or after it unlocks.
//! 6. The [`Durable`] says when the commit is on disk. The commits of an epoch become durable
//!    together, and epoch after epoch.
//!
//! A transaction that writes nothing calls [`Writer::seen`] after its validation: what it has read
//! may not be durable yet.
//!
//! # The files
//! | name | what |
//! |---|---|
//! | `lock` | locked as long as a process has the store open |
//! | `identity` | the version of the format and the store's number |
//! | `log-N` | epochs, one frame each; numbered without gaps |
//! | `snapshot-E` | all entries as of epoch E; newer ones may be newer |
//!
//! | module | idea |
//! |---|---|
//! | `epochs` | which commits are written together |
//! | `logger` | when an epoch ends, and the thread that writes it |
//! | `durable` | handles, and who waits |
//! | `record`, `frame`, `catalogue` | the format |
//! | `log` | the log's files |
//! | `snapshot` | snapshots |
//! | `recover`, `state`, `entries` | opening |
//! | `storage` | the file system, or a made-up one |
//! | `codec` | keys and values as bytes |

mod catalogue;
mod codec;
mod durable;
mod entries;
mod epochs;
mod error;
mod frame;
mod log;
mod logger;
#[cfg(any(corelay_loom, corelay_shuttle))]
#[doc(hidden)]
pub mod model;
mod options;
mod record;
mod recover;
mod snapshot;
mod state;
mod storage;

pub use codec::{Codec, DecodeError};
pub use durable::Durable;
pub use epochs::{Entered, Writer, Writers};
pub use error::{DiskFailed, EncodeError, OpenError, SnapshotError, TableError};
pub use options::{Durability, Options};
pub use record::{MAX_KEY, MAX_TRANSACTION, MAX_VALUE, Records, TableId};
pub use snapshot::{Snapshot, SnapshotReport};
pub use storage::{Storage, StorageFile};

use catalogue::Catalogue;
use corelay_sync::CachePadded;
use corelay_sync::facade::atomic::{AtomicBool, AtomicU64, Ordering};
use corelay_sync::facade::sync::Arc;
use corelay_sync::wait::Sleeper;
use durable::Progress;
use entries::Entries;
use epochs::Epochs;
use log::{Files, Log};
use logger::{Logger, Pace, Shared};
use recover::Recovery;
use std::fmt;
use std::io::{self, Read};
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use storage::Directory;

/// The durable side of a store. Dropping it writes the last epoch.
pub struct Disk {
    storage: std::sync::Arc<dyn Storage>,
    /// The number of the store.
    store: u64,
    epochs: Arc<Epochs>,
    progress: Arc<Progress>,
    /// For the handles of [`now`](Self::now).
    durable: Arc<CachePadded<Arc<Progress>>>,
    shared: Arc<Shared>,
    files: std::sync::Arc<Files>,
    /// Whether a snapshot is being made.
    is_snapshotting: AtomicBool,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Disk {
    /// Opens the store in a directory, or makes one there if the directory is not there or empty.
    ///
    /// # Errors
    /// If the directory is in use, not a store, of another version, damaged, or cannot be written.
    pub fn open(dir: &Path, options: &Options) -> Result<(Self, Recovered), OpenError> {
        let directory = Directory::open(dir)?;
        Self::open_in(std::sync::Arc::new(directory), options).map_err(|error| match error {
            OpenError::NotAStore { file, .. } => OpenError::NotAStore {
                dir: dir.to_owned(),
                file,
            },
            error => error,
        })
    }

    /// Opens the store in a storage that nobody else uses.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_in(
        storage: std::sync::Arc<dyn Storage>,
        options: &Options,
    ) -> Result<(Self, Recovered), OpenError> {
        let start = Instant::now();
        let store = identify(&*storage)?;
        let mut recovery = recover::recover(&*storage, store, options.salvage)?;
        let definitions = recovery.definitions();
        let files = std::sync::Arc::new(Files::new(std::mem::take(&mut recovery.files)));
        let shared = Arc::new(Shared {
            catalogue: corelay_sync::facade::sync::Mutex::new(Catalogue::new(definitions)),
            written: AtomicU64::new(recovery.previous),
            ..Shared::default()
        });
        let log = Log::new(
            std::sync::Arc::clone(&storage),
            std::sync::Arc::clone(&files),
            (store, recovery.next, recovery.previous),
            options.segment_size,
        );
        let (thread, sleeper, hand_over) = start_thread()?;
        let progress = Arc::new(Progress::new(recovery.epoch, sleeper));
        let (epochs, closer) = Epochs::new(recovery.epoch + 1, Arc::clone(&progress));
        let logger = Logger {
            closer,
            log,
            progress: Arc::clone(&progress),
            shared: Arc::clone(&shared),
            options: *options,
            frame: Vec::new(),
            opened: Instant::now(),
            pace: Pace::default(),
        };
        // The thread waits for it.
        let _ = hand_over.send(logger);
        let disk = Self {
            storage,
            store,
            epochs,
            durable: Arc::new(CachePadded::new(Arc::clone(&progress))),
            progress,
            shared,
            files,
            is_snapshotting: AtomicBool::new(false),
            thread: Some(thread),
        };
        Ok((disk, Recovered::new(recovery, start.elapsed())))
    }

    /// The maker of this store's writers.
    pub fn writers(&self) -> Writers {
        Writers(Arc::clone(&self.epochs))
    }

    /// A writer, as [`Writers::writer`] makes it.
    pub fn writer(&self) -> Writer {
        Epochs::writer(&self.epochs)
    }

    /// The number of the table `name`, which is made if it is not there. `tag` says of what types
    /// its entries are.
    ///
    /// # Errors
    /// If the table was made with another tag.
    pub fn table(&self, name: &str, tag: &str) -> Result<TableId, TableError> {
        self.shared.catalogue.lock().unwrap().table(name, tag)
    }

    /// The durability of everything that was committed before.
    pub fn now(&self) -> Durable {
        Durable::new(Arc::clone(&self.durable), self.epochs.now())
    }

    /// Begins a snapshot. The caller puts the committed version of every entry of every table into
    /// it, as it is at any time after this call, and finishes it. Commits go on meanwhile. An entry
    /// that is removed meanwhile may be in it or not.
    ///
    /// # Errors
    /// If another snapshot is being made, the store has failed, or the file cannot be written.
    pub fn snapshot(&self) -> Result<Snapshot<'_>, SnapshotError> {
        Snapshot::begin(self)
    }

    /// The newest durable epoch.
    pub fn durable_epoch(&self) -> u64 {
        self.progress.durable()
    }

    /// The reason why the store takes no more commits, if it does not.
    pub fn failure(&self) -> Option<DiskFailed> {
        self.progress.failure()
    }

    /// Counts the epochs, commits and bytes written since the store was opened.
    pub fn report(&self) -> DiskReport {
        let counters = &self.shared.counters;
        // Relaxed, all: counts that order nothing.
        let nanoseconds =
            |counter: &AtomicU64| Duration::from_nanos(counter.load(Ordering::Relaxed));
        let (log_files, log_bytes) = self.files.size();
        DiskReport {
            epochs: counters.epochs.load(Ordering::Relaxed),
            commits: counters.commits.load(Ordering::Relaxed),
            bytes: counters.bytes.load(Ordering::Relaxed),
            write_time: nanoseconds(&counters.write),
            longest_write: nanoseconds(&counters.longest),
            log_files,
            log_bytes,
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.progress.close();
        if let Some(thread) = self.thread.take()
            // A waker that the log thread has called may drop the store. The thread then ends the
            // log after the waker has returned.
            && thread.thread().id() != std::thread::current().id()
        {
            // Its panic was reported to all that waited.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Disk")
            .field("durable_epoch", &self.durable_epoch())
            .field("report", &self.report())
            .finish_non_exhaustive()
    }
}

type Started = (
    std::thread::JoinHandle<()>,
    std::sync::Arc<Sleeper>,
    mpsc::Sender<Logger>,
);

/// Starts the log thread, which waits for what it shall do.
fn start_thread() -> Result<Started, OpenError> {
    let (tell, told) = mpsc::channel();
    let (hand_over, handed_over) = mpsc::channel::<Logger>();
    let body = move || {
        let sleeper = Sleeper::current();
        let _ = tell.send(std::sync::Arc::clone(&sleeper));
        // If opening fails, there is nothing to do.
        if let Ok(logger) = handed_over.recv() {
            logger.run(&sleeper);
        }
    };
    let builder = std::thread::Builder::new().name("corelay-log".to_owned());
    let thread = builder.spawn(body);
    let thread = thread.map_err(OpenError::io("start the log thread"))?;
    let sleeper = told.recv().expect("the thread tells before it waits");
    Ok((thread, sleeper, hand_over))
}

/// The number of the store, which is made if there is none.
fn identify(storage: &dyn Storage) -> Result<u64, OpenError> {
    let doing = || OpenError::io(format!("read {}", frame::IDENTITY));
    let names = storage.list().map_err(doing())?;
    if names.iter().any(|name| name == frame::IDENTITY) {
        let (mut file, _) = storage.open(frame::IDENTITY).map_err(doing())?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(doing())?;
        return frame::parse_identity(&String::from_utf8_lossy(&bytes));
    }
    let unfinished = format!("{}{}", frame::IDENTITY, snapshot::UNFINISHED);
    if let Some(file) = names.into_iter().find(|name| *name != unfinished) {
        return Err(OpenError::NotAStore {
            dir: Path::new(".").to_owned(),
            file,
        });
    }
    let store = random();
    let make = || -> io::Result<()> {
        let _ = storage.remove(&unfinished);
        let mut file = storage.create(&unfinished)?;
        file.append(frame::identity(store).as_bytes())?;
        file.sync()?;
        drop(file);
        storage.rename(&unfinished, frame::IDENTITY)?;
        storage.sync()
    };
    make().map_err(OpenError::io("make the store"))?;
    Ok(store)
}

/// A number that no other store has, most likely.
fn random() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(Instant::now())
}

/// The contents of the directory, as they were found by opening it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Recovered {
    /// The last epoch of the history that was recovered; 0 if there is none.
    pub epoch: u64,
    /// The snapshot with which recovery began.
    pub snapshot: Option<RecoveredSnapshot>,
    /// The epochs that were read from the log after the snapshot.
    pub epochs: u64,
    /// The commits in them.
    pub commits: u64,
    /// The records of the snapshot and of these commits.
    pub records: u64,
    /// The bytes of the files that were read.
    pub bytes: u64,
    /// The end of the log, if it was dropped.
    pub dropped: Option<Dropped>,
    /// Other things that were not as they should be: sentences.
    pub notes: Vec<String>,
    /// The time that it took.
    pub time: Duration,
    /// All tables, by their numbers. A store has taken them out.
    #[doc(hidden)]
    pub tables: Vec<RecoveredTable>,
}

/// The snapshot with which recovery began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveredSnapshot {
    /// The epoch up to which it has all commits.
    pub epoch: u64,
    /// The snapshot's size in bytes.
    pub bytes: u64,
}

/// An end of the log that was not whole, and was cut off.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dropped {
    /// The log file in which the history ends.
    pub file: String,
    /// The place in the file, in bytes from its beginning.
    pub offset: u64,
    /// The bytes that were dropped, those of later files included.
    pub bytes: u64,
    /// The fault of the first of them, in words.
    pub what: &'static str,
    /// The first epoch that was dropped, if that can be read.
    pub epoch: Option<u64>,
    /// The number of the commits in that epoch, if that can be read.
    pub commits: Option<u64>,
    /// Whether the bytes are kept in files whose names begin with `dropped-`.
    pub is_kept: bool,
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            offset,
            bytes,
            what,
            ..
        } = self;
        write!(f, "dropped {bytes} bytes of {file} from byte {offset} on")?;
        if let (Some(epoch), Some(commits)) = (self.epoch, self.commits) {
            write!(f, ", epoch {epoch} with {commits} commits")?;
        }
        write!(f, ": {what}")
    }
}

/// A table that was found on disk.
pub struct RecoveredTable {
    id: TableId,
    name: String,
    tag: String,
    parts: Vec<Entries>,
}

impl RecoveredTable {
    /// The table's number.
    pub fn id(&self) -> TableId {
        self.id
    }

    /// The table's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The types that the table was made with.
    pub fn tag(&self) -> &str {
        &self.tag
    }

    /// The table's entries, as keys and values, in no order.
    pub fn entries(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.parts().flatten()
    }

    /// The table's entries in a few parts, so that several threads can load them.
    pub fn parts(&self) -> impl Iterator<Item = impl Iterator<Item = (&[u8], &[u8])> + Send> {
        self.parts.iter().map(Entries::iter)
    }
}

impl fmt::Debug for RecoveredTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecoveredTable")
            .field("name", &self.name)
            .field("tag", &self.tag)
            .finish_non_exhaustive()
    }
}

impl Recovered {
    fn new(recovery: Recovery, time: Duration) -> Self {
        Self {
            epoch: recovery.epoch,
            snapshot: recovery.snapshot,
            epochs: recovery.epochs,
            commits: recovery.commits,
            records: recovery.state.records,
            bytes: recovery.bytes,
            dropped: recovery.dropped,
            notes: recovery.notes,
            time,
            tables: recovery.state.tables,
        }
    }
}

/// The epochs, commits and bytes written since the store was opened, and the size of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiskReport {
    /// The epochs that had commits.
    pub epochs: u64,
    /// The commits in them.
    pub commits: u64,
    /// The bytes written to the log.
    pub bytes: u64,
    /// The time that the log thread took to write and synchronize.
    pub write_time: Duration,
    /// The longest of these times for one epoch.
    pub longest_write: Duration,
    /// The log's files.
    pub log_files: usize,
    /// The bytes in them.
    pub log_bytes: u64,
}
