//! Stores whose power is cut: what was answered as durable is there, and every transaction whole, with
//! all that it depends on.

use super::{Over, by_every_protocol, open, ordered_rows, rows_of};
use crate::faulty::{Faulty, Image, Plan};
use crate::history::lazy;
use corelay_txn::store::disk::Options;
use corelay_txn::store::{Protocol, Store, Table};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

by_every_protocol![
    power_cuts_leave_a_prefix,
    what_depends_on_a_commit_is_not_kept_without_it,
    last_writer_wins_on_disk,
    rows_that_come_and_go_are_on_disk_as_in_memory,
];

const ACCOUNTS: u64 = 8;

/// The sum of all accounts, and the number of transfers that are there.
fn sums<P: Protocol>(protocol: P, image: &Image) -> (i64, u64) {
    let store = open(protocol, &Faulty::new(image), &Options::default());
    let accounts = store.kept_ordered::<u64, i64>("accounts").unwrap();
    let transfers = store.kept_table::<u64, u64>("transfers").unwrap();
    let sums = store.read_only(|tx| {
        let sum = tx.rows(&accounts, ..)?.iter().map(|(_, cents)| cents).sum();
        Ok((sum, tx.get(&transfers, &0)?.unwrap_or(0)))
    });
    sums.unwrap()
}

/// One thread; the power is cut after each number of steps.
fn power_cuts_leave_a_prefix<P: Protocol>(protocol: impl Fn() -> P) {
    let options = Options {
        segment_size: 600,
        ..lazy()
    };
    let mut random = 1_u64;
    for off_after in (1..4_000).step_by(97) {
        let storage = Faulty::default();
        let store = open(protocol(), &storage, &options);
        let accounts = store.kept_ordered::<u64, i64>("accounts").unwrap();
        let transfers = store.kept_table::<u64, u64>("transfers").unwrap();
        storage.plan(Plan {
            off_after: Some(off_after),
            ..Plan::default()
        });
        let mut answered = 0;
        for number in 1..60 {
            let transfer = store.transact_durable(|tx| {
                for (account, cents) in [(number % ACCOUNTS, -1), (number * 3 % ACCOUNTS, 1)] {
                    let left = tx.get(&accounts, &account)?.unwrap_or(0) + cents;
                    match left {
                        0 => drop(tx.remove(&accounts, &account)?),
                        _ => tx.put(&accounts, account, left)?,
                    }
                }
                tx.put(&transfers, 0, number)
            });
            let Ok((_, durable)) = transfer else { break };
            if number % 3 == 0 {
                if durable.wait().is_err() {
                    break;
                }
                answered = number;
            }
            if number % 20 == 0 && store.snapshot().is_err() {
                break;
            }
        }
        drop((store, accounts, transfers));
        let cut = storage.cut(|below| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) as usize % below
        });
        for image in [cut, storage.image()] {
            let (sum, there) = sums(protocol(), &image);
            assert_eq!(sum, 0, "half a transfer, cut after {off_after}");
            assert!(
                there >= answered,
                "{answered} were answered, {there} are there"
            );
        }
    }
}

/// A thread counts in one row; another copies the count into a second row; a third one copies the
/// copy. Whatever is cut off, no copy is ahead of what it was copied from.
fn what_depends_on_a_commit_is_not_kept_without_it<P: Protocol>(protocol: impl Fn() -> P) {
    const CHAIN: u64 = 3;
    let options = Options {
        // Many epochs, so that transactions meet their borders.
        epoch_interval: Duration::from_micros(20),
        ..lazy()
    };
    for _ in 0..3 * crate::stress() {
        let storage = Faulty::default();
        let store: Store<P> = open(protocol(), &storage, &options);
        let table = store.kept_table::<u64, u64>("chain").unwrap();
        let init = store.transact(|tx| (0..CHAIN).try_for_each(|row| tx.put(&table, row, 0)));
        init.unwrap();
        let is_over = AtomicBool::new(false);
        let answered: [AtomicU64; CHAIN as usize] = Default::default();
        let mut images = Vec::new();
        std::thread::scope(|scope| {
            for row in 0..CHAIN {
                let (store, table, is_over, answered) = (&store, &table, &is_over, &answered);
                scope.spawn(move || {
                    while !is_over.load(Ordering::Relaxed) {
                        let step = store.transact_durable(|tx| {
                            let next = match row {
                                0 => tx.get(table, &0)?.unwrap() + 1,
                                _ => tx.get(table, &(row - 1))?.unwrap(),
                            };
                            tx.put(table, row, next)?;
                            Ok(next)
                        });
                        let (next, durable) = step.unwrap();
                        if next % 8 == row {
                            durable.wait().unwrap();
                            answered[row as usize].store(next, Ordering::SeqCst);
                        }
                    }
                });
            }
            let _over = Over(&is_over);
            for _ in 0..20 {
                let before = answered
                    .each_ref()
                    .map(|count| count.load(Ordering::SeqCst));
                images.push((before, storage.image()));
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        for (answered, image) in images {
            let store = open(protocol(), &Faulty::new(&image), &options);
            let table = store.kept_table::<u64, u64>("chain").unwrap();
            let rows = store.read_only(|tx| {
                let rows = (0..CHAIN).map(|row| Ok(tx.get(&table, &row)?.unwrap_or(0)));
                rows.collect::<Result<Vec<_>, _>>()
            });
            let rows = rows.unwrap();
            assert!(
                rows.is_sorted_by(|before, after| before >= after),
                "{rows:?}"
            );
            for (row, answered) in rows.iter().zip(answered) {
                assert!(*row >= answered, "{answered} was answered, {row} is there");
            }
        }
    }
}

/// Threads write the same rows without reading them: the last one in memory is the last one on disk.
fn last_writer_wins_on_disk<P: Protocol>(protocol: impl Fn() -> P) {
    const ROWS: u64 = 4;
    let options = Options {
        epoch_interval: Duration::ZERO,
        ..lazy()
    };
    for _ in 0..20 * crate::stress() {
        let storage = Faulty::default();
        let store = open(protocol(), &storage, &options);
        let table = store.kept_table::<u64, u64>("rows").unwrap();
        std::thread::scope(|scope| {
            for thread in 0..3_u64 {
                let (store, table) = (&store, &table);
                scope.spawn(move || {
                    for number in 0..200 {
                        let value = number * 3 + thread;
                        let put = store.transact(|tx| {
                            // A large write set: locking it takes a while.
                            (0..ROWS).try_for_each(|row| tx.put(table, row, value))
                        });
                        put.unwrap();
                    }
                });
            }
        });
        let rows = |store: &Store<P>, table: &Table<u64, u64>| {
            let all = store.read_only(|tx| {
                let rows = (0..ROWS).map(|row| tx.get(table, &row));
                rows.collect::<Result<Vec<_>, _>>()
            });
            all.unwrap()
        };
        let wanted = rows(&store, &table);
        drop((store, table));
        let store = open(protocol(), &storage, &options);
        let table = store.kept_table::<u64, u64>("rows").unwrap();
        assert_eq!(rows(&store, &table), wanted);
    }
}

/// Threads insert, write and remove the same few rows, within one epoch or in many, beside snapshots: the
/// number of a commit has to grow from one of a key to the next, also if the key was gone between them.
fn rows_that_come_and_go_are_on_disk_as_in_memory<P: Protocol>(protocol: impl Fn() -> P) {
    const ROWS: u8 = 6;
    for round in 0..6 * crate::stress() {
        let options = Options {
            epoch_interval: [Duration::ZERO, Duration::MAX][round as usize % 2],
            segment_size: 4096,
            ..Options::default()
        };
        let storage = Faulty::default();
        let store = open(protocol(), &storage, &options);
        let hashed = store.kept_table::<u8, u32>("hashed").unwrap();
        let ordered = store.kept_ordered::<u8, u32>("ordered").unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..3_u64)
                .map(|thread| {
                    let (store, hashed, ordered) = (&store, &hashed, &ordered);
                    scope.spawn(move || {
                        let mut random = thread + 100 * u64::from(round);
                        for number in 0..400_u32 {
                            random = random
                                .wrapping_mul(6_364_136_223_846_793_005)
                                .wrapping_add(1);
                            let key = (random >> 33) as u8 % ROWS;
                            let value = number * 3 + thread as u32;
                            let change = store.transact(|tx| match (random >> 50) % 5 {
                                0 | 1 => {
                                    tx.remove(hashed, &key)?;
                                    tx.remove(ordered, &key).map(drop)
                                }
                                2 => {
                                    tx.insert(hashed, key, value)?;
                                    tx.insert(ordered, key, value)?;
                                    tx.remove(hashed, &((key + 1) % ROWS)).map(drop)
                                }
                                3 => {
                                    tx.put(ordered, key, value)?;
                                    tx.put(hashed, key, value)
                                }
                                // Inserted and removed by one transaction.
                                _ => {
                                    tx.put(ordered, key, value)?;
                                    tx.remove(ordered, &key)?;
                                    tx.update(hashed, &key, |row| *row += 1).map(drop)
                                }
                            });
                            change.unwrap();
                        }
                    })
                })
                .collect();
            let (store, is_over) = (&store, &is_over);
            if round % 3 == 0 {
                scope.spawn(move || {
                    while !is_over.load(Ordering::Relaxed) {
                        store.snapshot().unwrap();
                    }
                });
            }
            let _over = Over(is_over);
            for writer in writers {
                writer.join().unwrap();
            }
        });
        let wanted = (rows_of(&store, &hashed), ordered_rows(&store, &ordered));
        drop((store, hashed, ordered));
        // Opened as the other kind.
        let store = open(protocol(), &storage, &options);
        let hashed = store.kept_ordered::<u8, u32>("hashed").unwrap();
        let ordered = store.kept_table::<u8, u32>("ordered").unwrap();
        let found = (ordered_rows(&store, &hashed), rows_of(&store, &ordered));
        assert_eq!(found, wanted);
    }
}
