//! The log thread: it closes epochs, writes them and says that they are durable.
//!
//! # When an epoch ends
//! * If somebody waits for it: as soon as the disk is free. First those get a moment to join whose
//!   waits have just ended, because most of them commit and wait again. They join this epoch, or
//!   wait for the next one after it. The moment ends when as many wait as did before, after a
//!   quarter of the last write's time at most.
//! * If a writer has many bytes in it: likewise.
//! * Otherwise after the interval of the [options](super::Options).
//!
//! A log thread that has found no commit for an interval sleeps until a committer wakes it, who is
//! told so by the epoch's word.

use super::catalogue::Catalogue;
use super::durable::Progress;
use super::epochs::{Closer, Next};
use super::error::DiskFailed;
use super::frame::{FRAME_HEADER, FrameHeader, UNSYNCED};
use super::log::Log;
use super::options::{Durability, Options};
use corelay_sync::facade::atomic::{AtomicBool, AtomicU64, Ordering};
use corelay_sync::facade::sync::{Arc, Mutex};
use corelay_sync::wait::Sleeper;
use std::time::{Duration, Instant};

/// The memory that is kept for the bytes of an epoch.
const KEPT: usize = 16 << 20;

/// The log thread's own.
pub(super) struct Logger {
    pub(super) closer: Closer,
    pub(super) log: Log,
    pub(super) progress: Arc<Progress>,
    pub(super) shared: Arc<Shared>,
    pub(super) options: Options,
    /// The bytes of the epoch that is written.
    pub(super) frame: Vec<u8>,
    /// When the open epoch was opened.
    pub(super) opened: Instant,
    pub(super) pace: Pace,
}

/// How long the last write took, and how many had waited then.
#[derive(Debug, Default)]
pub(super) struct Pace {
    write: Duration,
    waiters: usize,
}

/// The state that the store shares with the log thread: orders, and counts.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) catalogue: Mutex<Catalogue>,
    /// A new file shall be begun with the next epoch that is written.
    pub(super) rotate: AtomicBool,
    /// The epoch that is written next shall be synchronized, whatever the options say.
    pub(super) sync: AtomicBool,
    /// The newest epoch that is durable and has commits.
    pub(super) written: AtomicU64,
    pub(super) counters: Counters,
}

/// Counted by the log thread.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) epochs: AtomicU64,
    pub(super) commits: AtomicU64,
    pub(super) bytes: AtomicU64,
    /// Nanoseconds.
    pub(super) write: AtomicU64,
    /// Nanoseconds.
    pub(super) longest: AtomicU64,
}

impl Counters {
    fn add(&self, commits: u32, bytes: usize, time: Duration) {
        let nanoseconds = time.as_nanos() as u64;
        // Relaxed, all: counts that order nothing.
        self.epochs.fetch_add(1, Ordering::Relaxed);
        self.commits
            .fetch_add(u64::from(commits), Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.write.fetch_add(nanoseconds, Ordering::Relaxed);
        self.longest.fetch_max(nanoseconds, Ordering::Relaxed);
    }
}

impl Logger {
    /// Runs until the store is closed or a write fails.
    pub(super) fn run(mut self, sleeper: &Sleeper) {
        loop {
            let next = self.pause(sleeper);
            if let Err(failure) = self.end_epoch(next) {
                // Later commits are refused before the waiters learn why.
                self.closer.refuse();
                self.progress.fail(failure);
                return;
            }
            if next == Next::Refuse {
                self.progress.fail(DiskFailed::closed());
                return;
            }
        }
    }

    /// Sleeps until it is time to close the open epoch. Returns what comes after it.
    fn pause(&mut self, sleeper: &Sleeper) -> Next {
        let progress = &*self.progress;
        let open = self.closer.open();
        let mut hold_until = None;
        progress.expect(1);
        while !progress.is_closing() {
            let now = Instant::now();
            if progress.is_wanted(open) {
                let until = *hold_until.get_or_insert_with(|| {
                    progress.expect(self.pace.waiters);
                    now + self.pace.write / 4
                });
                let has_joined = || progress.waiters() >= self.pace.waiters;
                if now >= until || has_joined() {
                    return Next::Open;
                }
                sleeper.sleep(Some(until - now), || progress.is_closing() || has_joined());
                continue;
            }
            let open_for = now.saturating_duration_since(self.opened);
            // The interval may be longer than any time.
            let left = self.options.epoch_interval.saturating_sub(open_for);
            if !left.is_zero() {
                sleeper.sleep(Some(left), || {
                    progress.is_closing() || progress.is_wanted(open)
                });
            } else if self.closer.is_used() {
                return Next::Open;
            } else {
                self.closer.set_idle(true);
                sleeper.sleep(None, || {
                    progress.is_closing() || progress.is_wanted(open) || self.closer.is_used()
                });
                self.closer.set_idle(false);
                self.opened = Instant::now();
            }
        }
        Next::Refuse
    }

    fn end_epoch(&mut self, next: Next) -> Result<(), DiskFailed> {
        let epoch = self.closer.open();
        self.frame.clear();
        self.frame.shrink_to(KEPT);
        self.frame.resize(FRAME_HEADER, 0);
        self.opened = Instant::now();
        let mut commits = 0;
        self.closer.close(next, |bytes, count| {
            self.frame.extend_from_slice(bytes);
            commits += count;
        });
        // After the commits were taken, so that the tables that they use are defined.
        let definitions = self.shared.catalogue.lock().unwrap().take_pending();
        self.frame.extend_from_slice(&definitions);
        let is_synced = match self.options.durability {
            Durability::Disk => true,
            // Acquire: pairs with the Release of a snapshot, which waits for an epoch afterwards.
            Durability::OperatingSystem => self.shared.sync.swap(false, Ordering::Acquire),
        };
        let start = Instant::now();
        if self.frame.len() > FRAME_HEADER {
            // Relaxed: one file earlier or later does not matter.
            if self.shared.rotate.swap(false, Ordering::Relaxed) {
                let rotated = self.log.rotate();
                rotated.map_err(|error| DiskFailed::io("ending a log file", error))?;
            }
            let header = FrameHeader {
                flags: if is_synced { 0 } else { UNSYNCED },
                epoch,
                commits,
                definitions: definitions.len() as u32,
                ..FrameHeader::default()
            };
            let written = self.log.append(&mut self.frame, header);
            written.map_err(|error| DiskFailed::io("writing the log", error))?;
        }
        if is_synced || next == Next::Refuse {
            // Not tried again: after an error the operating system may have forgotten what was not
            // written (Rebello et al., "Can Applications Recover from fsync Failures?", ATC 2020).
            let synced = self.log.sync();
            synced.map_err(|error| DiskFailed::io("synchronizing the log", error))?;
        }
        let time = start.elapsed();
        // Relaxed: published by the Release of `Progress::publish`.
        self.shared
            .written
            .store(self.log.previous, Ordering::Relaxed);
        if self.frame.len() > FRAME_HEADER {
            self.shared.counters.add(commits, self.frame.len(), time);
        }
        let woken = self.progress.publish(epoch);
        self.pace = Pace {
            write: time,
            waiters: woken + self.progress.waiters(),
        };
        Ok(())
    }
}

impl Drop for Logger {
    fn drop(&mut self) {
        // Only the first failure counts, so this one does after a panic.
        self.closer.refuse();
        self.progress.fail(DiskFailed::panicked());
    }
}
