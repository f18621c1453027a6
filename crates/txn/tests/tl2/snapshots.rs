//! Every attempt sees the state of one moment, with any clock, even if it will be aborted.

use super::{scaled, skewed};
use corelay_clock::{Clock, Logical, Ordo};
use corelay_sync::counter;
use corelay_txn::tl2::{Stm, TVar};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

/// Writers keep all cells equal. Readers look at all of them, in both orders, and every attempt is
/// checked, even if it will be aborted. Returns how many saw different values.
pub(super) fn torn<C: Clock>(stm: &Stm<C>, cells: usize, reads: u64) -> u64 {
    torn_by(&[false, true], stm, cells, reads)
}

/// The same check with a writer for each direction.
fn torn_by<C: Clock>(backwards: &[bool], stm: &Stm<C>, cells: usize, reads: u64) -> u64 {
    let cells: Vec<TVar<u64>> = (0..cells).map(|_| TVar::new(0)).collect();
    let (stop, torn) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|s| {
        for &backwards in backwards {
            let (cells, stop, torn) = (&cells, &stop, &torn);
            s.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    stm.atomically(|tx| {
                        let mut seen = None;
                        for at in 0..cells.len() {
                            let at = if backwards { cells.len() - 1 - at } else { at };
                            let value = tx.read(&cells[at])?;
                            if *seen.get_or_insert(value) != value {
                                torn.fetch_add(1, Ordering::Relaxed);
                            }
                            tx.write(&cells[at], value + 1)?;
                        }
                        Ok(())
                    });
                    thread::yield_now();
                }
            });
        }
        let mut last = 0;
        for read in 0..reads {
            last = stm.atomically(|tx| {
                let mut seen = None;
                for at in 0..cells.len() {
                    let at = if read % 2 == 0 {
                        at
                    } else {
                        cells.len() - 1 - at
                    };
                    let value = tx.read(&cells[at])?;
                    if *seen.get_or_insert(value) != value {
                        torn.fetch_add(1, Ordering::Relaxed);
                    }
                }
                let seen = seen.unwrap();
                if seen < last {
                    // Real time: a snapshot is not older than the one before.
                    torn.fetch_add(1, Ordering::Relaxed);
                }
                Ok(seen)
            });
        }
        stop.store(true, Ordering::Relaxed);
    });
    torn.into_inner()
}

fn never_torn<C: Clock>(clock: impl Fn() -> C) {
    assert_eq!(torn(&Stm::new(clock()), 2, scaled(60_000)), 0);
    assert_eq!(torn(&Stm::new(clock()), 16, scaled(20_000)), 0);
}

#[test]
fn snapshots_are_whole_by_the_counter() {
    never_torn(Logical::new);
}

#[test]
fn snapshots_are_whole_by_hardware_clocks() {
    if counter::usable() {
        // Some ten times the offset measured between any two cores.
        never_torn(|| Ordo::with_boundary(5_000));
    }
}

#[test]
fn snapshots_are_whole_within_the_boundary() {
    for delay in [0, 20] {
        never_torn(|| skewed(7, 9, delay));
        never_torn(|| skewed(0, 2, delay));
    }
}

/// Beyond the boundary the same body fails; otherwise it would test nothing. It fails for a reader
/// that is ahead of the one writer, which nobody can notice. (Two writers catch each other's
/// clocks.)
#[test]
fn skew_beyond_the_boundary_is_seen() {
    let rounds = 1_000;
    let seen = (0..rounds).any(|round| {
        // More cells, and more delay, give the writer more time inside a reader's snapshot.
        let stm = Stm::new(skewed(100_000, 2, round % 3 * 20));
        let read = || {
            // A thread is ahead by its number; each round has two new ones.
            if round % 2 == 0 {
                stm.clock().now();
            }
            torn_by(&[round % 4 < 2], &stm, 32, 2_000) > 0
        };
        thread::scope(|s| s.spawn(read).join().unwrap())
    });
    assert!(seen, "the tests would not notice a wrong clock");
}
