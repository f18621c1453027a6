//! Epochs without a disk, for the model checkers.

use super::durable::Progress;
use super::epochs::{Closer, Epochs, Next};
use super::record;
use super::{Writer, Writers};
use corelay_sync::facade::sync::Arc;
use corelay_sync::wait::Sleeper;

/// The epochs of a store whose log thread the model plays.
#[derive(Debug)]
pub struct Model {
    epochs: Arc<Epochs>,
    progress: Arc<Progress>,
}

/// The order of a record's commit, its key, and its value unless it was removed.
pub type LoggedRecord = (u64, Vec<u8>, Option<Vec<u8>>);

/// The part of the log thread.
#[derive(Debug)]
pub struct LogThread {
    closer: Closer,
    progress: Arc<Progress>,
}

impl Model {
    /// A store whose first epoch is 1.
    #[allow(clippy::new_without_default)]
    pub fn new() -> (Self, LogThread) {
        let progress = Arc::new(Progress::new(0, Sleeper::current()));
        let (epochs, closer) = Epochs::new(1, Arc::clone(&progress));
        let log_thread = LogThread {
            closer,
            progress: Arc::clone(&progress),
        };
        (Self { epochs, progress }, log_thread)
    }

    /// The maker of writers.
    pub fn writers(&self) -> Writers {
        Writers(Arc::clone(&self.epochs))
    }

    /// A writer.
    pub fn writer(&self) -> Writer {
        Epochs::writer(&self.epochs)
    }

    /// The newest durable epoch.
    pub fn durable(&self) -> u64 {
        self.progress.durable()
    }
}

impl LogThread {
    /// Closes the open epoch. Returns the orders of its commits.
    pub fn close(&mut self) -> Vec<u64> {
        self.close_for(Next::Open)
    }

    /// Closes the open epoch, and refuses later commits.
    pub fn close_last(&mut self) -> Vec<u64> {
        self.close_for(Next::Refuse)
    }

    fn close_for(&mut self, next: Next) -> Vec<u64> {
        self.records(next)
            .into_iter()
            .map(|(order, ..)| order)
            .collect()
    }

    /// Closes the open epoch. Returns the order, the key and the value of each of its records.
    pub fn close_with_records(&mut self) -> Vec<LoggedRecord> {
        self.records(Next::Open)
    }

    fn records(&mut self, next: Next) -> Vec<LoggedRecord> {
        let mut records = Vec::new();
        self.closer.close(next, |bytes, _| {
            let each = |record: record::Record<'_>| {
                let value = record.value.map(<[u8]>::to_vec);
                records.push((record.order, record.key.to_vec(), value));
            };
            record::for_each(bytes, each).expect("whole commits");
        });
        records
    }

    /// Publishes an epoch as durable.
    pub fn publish(&self, epoch: u64) {
        self.progress.publish(epoch);
    }

    /// Sets the word of a log thread that is about to sleep, and looks for commits. Returns whether
    /// it would sleep.
    pub fn would_sleep(&self) -> bool {
        self.closer.set_idle(true);
        corelay_sync::barrier::heavy();
        !self.closer.is_used()
    }
}
