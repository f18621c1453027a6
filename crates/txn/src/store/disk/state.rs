//! The newest version of every entry, put together from the records of the log.
//!
//! Entries are divided by their keys among a few threads. Each gets all frames and applies the
//! records of its part, so that no record has to be copied on the way.

use super::catalogue::{self, Definition};
use super::entries::Entries;
use super::frame::Frame;
use super::record::{self, Record};
use super::{RecoveredTable, TableId};
use corelay_sync::facade::thread::{self, JoinHandle};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

/// The bytes of frames that are handed to the threads together.
const BATCH: usize = 1 << 20;

/// The batches that may wait for a thread.
const AHEAD: usize = 8;

/// The entries of one part of the keys, for each table.
type Part = Vec<Entries>;

/// The frames of a batch, and the epoch that counts for their records.
type Batch = Vec<(u64, Arc<Frame>)>;

/// Applies frames to an empty state.
pub(super) struct Builder {
    threads: Vec<(SyncSender<Arc<Batch>>, Applier)>,
    batch: Batch,
    bytes: usize,
    definitions: Vec<Option<Definition>>,
}

/// A thread that applies the records of its part. `None` if some made no sense.
type Applier = JoinHandle<Option<Applied>>;

#[derive(Default)]
struct Applied {
    part: Part,
    records: u64,
}

/// The state of all tables.
pub(super) struct State {
    pub(super) tables: Vec<RecoveredTable>,
    pub(super) definitions: Vec<Definition>,
    /// The records that were applied.
    pub(super) records: u64,
}

impl Builder {
    pub(super) fn new() -> Self {
        let count = std::thread::available_parallelism().map_or(1, |n| n.get().min(4));
        let hasher = RandomState::new();
        let threads = (0..count).map(|index| {
            let (sender, batches) = sync_channel::<Arc<Batch>>(AHEAD);
            let hasher = hasher.clone();
            let thread = thread::spawn(move || {
                let mut applied = Applied::default();
                for batch in batches {
                    applied.apply(&batch, |key| {
                        let hash = hasher.hash_one(key);
                        ((hash >> 32) as usize % count == index).then_some(hash)
                    })?;
                }
                Some(applied)
            });
            (sender, thread)
        });
        Self {
            threads: threads.collect(),
            batch: Vec::new(),
            bytes: 0,
            definitions: Vec::new(),
        }
    }

    /// Applies a frame, whose records are as old as `epoch`. `None` if its payload makes no sense.
    pub(super) fn apply(&mut self, epoch: u64, frame: Arc<Frame>) -> Option<()> {
        let definitions = &mut self.definitions;
        catalogue::for_each(frame.definitions(), |id, definition| {
            let id = id as usize;
            if definitions.len() <= id {
                definitions.resize(id + 1, None);
            }
            definitions[id] = Some(definition);
        })?;
        self.bytes += frame.bytes.len();
        self.batch.push((epoch, frame));
        if self.bytes >= BATCH {
            self.flush()?;
        }
        Some(())
    }

    fn flush(&mut self) -> Option<()> {
        self.bytes = 0;
        let batch = Arc::new(std::mem::take(&mut self.batch));
        // A thread that is gone has found bytes that make no sense.
        let mut threads = self.threads.iter();
        threads.try_for_each(|(sender, _)| sender.send(Arc::clone(&batch)).ok())
    }

    /// The state after all frames. `None` if the payload of one makes no sense.
    pub(super) fn finish(mut self) -> Option<State> {
        self.flush()?;
        let definitions = self.definitions.into_iter().collect::<Option<Vec<_>>>()?;
        let mut records = 0;
        let mut tables: Vec<_> = (0..)
            .zip(&definitions)
            .map(|(id, definition)| RecoveredTable {
                id: TableId(id),
                name: definition.name.clone(),
                tag: definition.tag.clone(),
                parts: Vec::new(),
            })
            .collect();
        for (sender, thread) in self.threads {
            drop(sender);
            let applied = thread.join().ok()??;
            records += applied.records;
            for (id, entries) in applied.part.into_iter().enumerate() {
                // A record of a table that is not defined makes no sense.
                tables.get_mut(id)?.parts.push(entries);
            }
        }
        Some(State {
            tables,
            definitions,
            records,
        })
    }
}

/// The records that are looked up together, so that their cache misses overlap.
const TOGETHER: usize = 16;

impl Applied {
    /// Applies the records for whose keys `hash` has a hash.
    fn apply(&mut self, batch: &Batch, hash: impl Fn(&[u8]) -> Option<u64>) -> Option<()> {
        let mut group = Vec::with_capacity(TOGETHER);
        for (epoch, frame) in batch {
            record::for_each(frame.commits(), |record| {
                let Some(hash) = hash(record.key) else {
                    return;
                };
                let table = record.table as usize;
                if self.part.len() <= table {
                    self.part.resize_with(table + 1, Entries::default);
                }
                self.part[table].prefetch(hash);
                group.push((hash, *epoch, record));
                if group.len() == TOGETHER {
                    self.apply_group(&mut group);
                }
            })?;
        }
        self.apply_group(&mut group);
        Some(())
    }

    fn apply_group(&mut self, group: &mut Vec<(u64, u64, Record<'_>)>) {
        self.records += group.len() as u64;
        for (hash, _, record) in &*group {
            self.part[record.table as usize].prefetch_entry(*hash);
        }
        for (hash, epoch, record) in group.drain(..) {
            let table = &mut self.part[record.table as usize];
            table.apply(hash, record.key, (epoch, record.order), record.value);
        }
    }
}
