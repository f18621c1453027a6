//! Commits of several threads in one transaction of a store that has one writer at a time.

use super::contender::Keeper;
use super::embedded::Embedded;
use std::mem;
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The longest time that a leader waits for other threads: a fraction of a sync.
const GATHERING: Duration = Duration::from_micros(100);

/// A store whose threads commit together.
pub(super) struct Grouped<E> {
    store: E,
    /// The threads that commit.
    clients: usize,
    group: Mutex<Group>,
    changed: Condvar,
}

/// The transactions that wait for the next commit.
#[derive(Default)]
struct Group {
    waiting: Vec<Vec<u64>>,
    /// The number of the next commit.
    number: u64,
    /// Whether a thread gathers or commits.
    has_leader: bool,
    /// Numbers below it are on disk.
    done: u64,
    /// The error of the last commit that failed. None works after it.
    failed: Option<String>,
}

impl<E> Grouped<E> {
    pub(super) fn new(store: E, clients: usize) -> Self {
        Self {
            store,
            clients,
            group: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    fn group(&self) -> MutexGuard<'_, Group> {
        self.group.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<E: Embedded> Grouped<E> {
    /// Gathers the transactions of the other threads, and commits them.
    fn lead<'a>(&'a self, mut group: MutexGuard<'a, Group>) -> MutexGuard<'a, Group> {
        group.has_leader = true;
        let is_small = |group: &mut Group| group.waiting.len() < self.clients;
        let gathered = self.changed.wait_timeout_while(group, GATHERING, is_small);
        (group, _) = gathered.unwrap_or_else(PoisonError::into_inner);
        let transactions = mem::take(&mut group.waiting);
        group.number += 1;
        drop(group);
        let committed = self.store.commit(&transactions);
        let mut group = self.group();
        group.failed = group.failed.take().or(committed.err());
        group.done = group.number;
        group.has_leader = false;
        self.changed.notify_all();
        group
    }
}

impl<E: Embedded> Keeper for Grouped<E> {
    /// The number of the commit that the transaction will be in.
    type Pending = u64;

    fn fill(&self, rows: Range<u64>, bytes: usize) -> Result<(), String> {
        self.store.fill(rows, bytes)
    }

    fn add(&self, rows: &[u64]) -> Result<u64, String> {
        let mut group = self.group();
        group.waiting.push(rows.to_vec());
        // A leader may be gathering.
        self.changed.notify_all();
        Ok(group.number)
    }

    fn wait(&self, number: u64) -> Result<(), String> {
        let mut group = self.group();
        while group.done <= number {
            group = match group.has_leader {
                false => self.lead(group),
                true => {
                    let changed = self.changed.wait(group);
                    changed.unwrap_or_else(PoisonError::into_inner)
                }
            };
        }
        group.failed.clone().map_or(Ok(()), Err)
    }

    fn sum(&self) -> Result<u64, String> {
        self.store.sum()
    }
}
