//! The contender: clients that add to numbers in rows, and the check that all additions are on disk.

use super::folder;
use crate::ordered::ledger::Ledger;
use corelay_lab_measure::method::{Contender, SetupLimit};
use corelay_lab_measure::schema::ConflictCounts;
use corelay_lab_measure::workload::point::Point;
use corelay_lab_measure::workload::random::{Client, Random};
use std::collections::VecDeque;
use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::time::Instant;
use tempfile::TempDir;

/// Rows that are filled in at once.
const BATCH: u64 = 1024;

/// The parameters of `kept`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Number of rows.
    pub rows: u64,
    /// Bytes of a row, at least 8.
    pub bytes: usize,
    /// Number of rows that a transaction adds to; they differ.
    pub requests: usize,
}

/// A store that keeps numbered rows on disk. The first eight bytes of a row are a number.
pub(super) trait Keeper: Send + Sync + Sized + 'static {
    /// A transaction that has been made, and may not be on disk yet.
    type Pending;

    /// Inserts rows of so many bytes, all 0.
    ///
    /// # Errors
    /// That of the store, in words.
    fn fill(&self, rows: Range<u64>, bytes: usize) -> Result<(), String>;

    /// Adds 1 to the numbers of these rows, in one transaction.
    ///
    /// # Errors
    /// That of the store, in words.
    fn add(&self, rows: &[u64]) -> Result<Self::Pending, String>;

    /// Waits until a transaction is on disk.
    ///
    /// # Errors
    /// That of the store, in words.
    fn wait(&self, pending: Self::Pending) -> Result<(), String>;

    /// Adds up the numbers of all rows.
    ///
    /// # Errors
    /// That of the store, in words.
    fn sum(&self) -> Result<u64, String>;

    /// Aborted attempts by reason since the store was opened, if it counts them.
    fn counts(&self) -> ConflictCounts {
        ConflictCounts::default()
    }
}

type Open<K> = Box<dyn Fn(&Path) -> Result<K, String> + Send + Sync>;

struct KeptContender<K> {
    shape: Shape,
    window: usize,
    clients: usize,
    /// `None` after the check.
    store: RwLock<Option<K>>,
    open: Open<K>,
    /// Additions that were answered.
    answered: Mutex<u64>,
    ledger: Ledger,
    /// Dropped after the store.
    folder: TempDir,
}

/// Makes a contender, whose files are in a new folder in `dir`.
pub(super) fn contender<K: Keeper>(
    shape: Shape,
    dir: &Path,
    point: &Point,
    limit: &SetupLimit,
    open: impl Fn(&Path, Shape) -> Result<K, String> + Send + Sync + 'static,
) -> Result<Box<dyn Contender>, String> {
    let folder = folder::make(dir);
    let folder = folder.map_err(|e| format!("no folder can be made in {}: {e}", dir.display()))?;
    let store = open(folder.path(), shape)?;
    for first in (0..shape.rows).step_by(BATCH as usize) {
        store.fill(first..(first + BATCH).min(shape.rows), shape.bytes)?;
        limit.check()?;
    }
    Ok(Box::new(KeptContender {
        shape,
        window: point.window,
        clients: point.threads,
        store: RwLock::new(Some(store)),
        open: Box::new(move |dir| open(dir, shape)),
        answered: Mutex::new(0),
        ledger: Ledger::default(),
        folder,
    }))
}

impl<K: Keeper> KeptContender<K> {
    fn store(&self) -> RwLockReadGuard<'_, Option<K>> {
        self.store.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Draws the rows of a transaction. One that is drawn twice is replaced by the next that is free.
    fn draw(&self, random: u64, rows: &mut Vec<u64>) {
        let mut random = Random::new(random);
        rows.clear();
        while rows.len() < self.shape.requests {
            let mut row = random.below(self.shape.rows);
            while rows.contains(&row) {
                row = (row + 1) % self.shape.rows;
            }
            rows.push(row);
        }
    }
}

impl<K: Keeper> Contender for KeptContender<K> {
    fn clients(&self) -> Range<usize> {
        0..self.clients
    }

    fn client(&self, client: Client) -> u64 {
        let store = self.store();
        let store = store.as_ref().expect("the check comes last");
        let mut latencies = client.latencies();
        let mut outstanding: VecDeque<(Instant, K::Pending)> = VecDeque::new();
        let (mut rows, mut answered, mut failed, mut why) = (Vec::new(), 0, 0, String::new());
        let mut settle = |result: Result<Instant, String>| match result {
            Ok(start) => {
                latencies.record(start.elapsed());
                answered += self.shape.requests as u64;
            }
            Err(error) => {
                failed += 1;
                why = error;
            }
        };
        let wait = |(start, pending)| store.wait(pending).map(|()| start);
        let done = client.among(usize::MAX).drive_slow(|random| {
            self.draw(random as u64, &mut rows);
            let start = Instant::now();
            match store.add(&rows) {
                Ok(pending) => outstanding.push_back((start, pending)),
                Err(error) => settle(Err(error)),
            }
            if outstanding.len() >= self.window {
                outstanding.pop_front().map(wait).map(&mut settle);
            }
            0
        });
        outstanding.drain(..).map(wait).for_each(&mut settle);
        self.ledger.report(failed, || why);
        *self.answered.lock().unwrap_or_else(PoisonError::into_inner) += answered;
        done
    }

    fn total(&self) -> Result<u64, String> {
        self.ledger.check()?;
        let mut store = self.store.write().unwrap_or_else(PoisonError::into_inner);
        // Closed, and opened again: what counts is on disk.
        drop(store.take());
        let sum = (self.open)(self.folder.path())?.sum()?;
        let answered = *self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        (sum == answered).then_some(0).ok_or_else(|| {
            format!("{answered} additions were answered, and {sum} are there after a new start")
        })
    }

    fn counts(&self) -> Option<ConflictCounts> {
        let so_far = self.store().as_ref().map(K::counts)?;
        Some(self.ledger.take(so_far))
    }
}
