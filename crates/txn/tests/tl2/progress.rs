//! Transactions that disturb each other: no update is lost, an aborted transaction gets through in
//! the end, and the reasons are counted.

use super::snapshots::torn;
use super::{scaled, skewed};
use corelay_clock::{Clock, Logical, Ordo};
use corelay_sync::counter;
use corelay_txn::tl2::{Stm, TVar};
use std::thread;

fn transfers_keep_the_sum<C: Clock>(stm: &Stm<C>) {
    const ACCOUNTS: usize = 8;
    let accounts: Vec<TVar<i64>> = (0..ACCOUNTS).map(|_| TVar::new(100)).collect();
    thread::scope(|s| {
        for thread in 0..3_usize {
            let accounts = &accounts;
            s.spawn(move || {
                let mut session = stm.session();
                for i in 0..scaled(10_000) as usize {
                    let from = &accounts[(i * 7 + thread) % ACCOUNTS];
                    let to = &accounts[(i * 3 + thread * 5 + 1) % ACCOUNTS];
                    if std::ptr::eq(from, to) {
                        continue;
                    }
                    if i % 2 == 0 {
                        session.atomically(|tx| {
                            tx.update(from, |a| a - 1)?;
                            tx.update(to, |a| a + 1)
                        });
                    } else {
                        stm.atomically(|tx| {
                            let (a, b) = (tx.read(from)?, tx.read(to)?);
                            tx.write(to, b + 1)?;
                            tx.write(from, a - 1)
                        });
                    }
                }
            });
        }
        for _ in 0..scaled(1_000) {
            let sum = stm.atomically(|tx| {
                let mut sum = 0;
                for account in &accounts {
                    sum += tx.read(account)?;
                }
                Ok(sum)
            });
            assert_eq!(sum, 100 * ACCOUNTS as i64);
        }
    });
    let sum: i64 = accounts.iter().map(TVar::load).sum();
    assert_eq!(sum, 100 * ACCOUNTS as i64);
}

#[test]
fn money_is_neither_made_nor_lost() {
    transfers_keep_the_sum(&Stm::new(Logical::new()));
    transfers_keep_the_sum(&Stm::new(skewed(7, 9, 5)));
    if counter::usable() {
        transfers_keep_the_sum(&Stm::new(Ordo::with_boundary(5_000)));
    }
}

/// With few attempts all transactions fall back again and again, and all get through.
#[test]
fn a_transaction_aborted_too_often_runs_alone() {
    for attempts in [0, 1] {
        let stm = Stm::new(skewed(3, 5, 10)).with_attempts(attempts);
        transfers_keep_the_sum(&stm);
        assert_eq!(torn(&stm, 4, scaled(2_000)), 0);
    }
    let stm: Stm = Stm::default().with_attempts(0);
    let x = TVar::new(0_u64);
    // The first attempt fails, because another thread commits inside it.
    let mut tries = 0;
    stm.atomically(|tx| {
        let value = tx.read(&x)?;
        tries += 1;
        if tries == 1 {
            thread::scope(|s| {
                s.spawn(|| stm.atomically(|tx| tx.update(&x, |x| x + 1)))
                    .join()
            })
            .unwrap();
        }
        tx.write(&x, value + 10)
    });
    assert_eq!((x.load(), tries), (11, 2));
    let stats = stm.stats();
    assert_eq!(
        (stats.validation, stats.fallback, stats.aborts()),
        (1, 1, 1)
    );
}

/// A closure that hides a conflict does not get to commit.
#[test]
fn a_hidden_abort_still_aborts() {
    let stm: Stm = Stm::default();
    let (x, y) = (TVar::new(0_u64), TVar::new(0_u64));
    let mut tries = 0;
    stm.atomically(|tx| {
        tries += 1;
        tx.read(&x)?;
        if tries == 1 {
            let step = || {
                stm.atomically(|tx| {
                    tx.update(&x, |x| x + 1)?;
                    tx.update(&y, |y| y + 1)
                })
            };
            thread::scope(|s| s.spawn(step).join()).unwrap();
            assert!(tx.read(&y).is_err());
            assert!(tx.read(&x).is_err());
        }
        tx.write(&y, 7)
    });
    assert_eq!((tries, y.load()), (2, 7));
    assert_eq!(stm.stats().version, 1);
}

/// Only comparisons that the clock left open count as uncertain, not versions that are certainly
/// later.
#[test]
fn only_open_comparisons_count_as_uncertain() {
    /// The transaction meets a newer version three times, and then a variable that has changed; or
    /// it is aborted there.
    fn counted<C: Clock>(stm: &Stm<C>, is_aborted: bool) -> (u64, u64, u64) {
        let (x, y) = (TVar::new(0_u64), TVar::new(0_u64));
        let mut session = stm.session();
        // The session has no time yet: every version is certainly after it.
        stm.atomically(|tx| tx.write(&x, 1));
        session.atomically(|tx| tx.read(&x));
        for n in 2..4 {
            stm.atomically(|tx| tx.write(&x, n));
            session.atomically(|tx| tx.read(&x));
        }
        let mut tries = 0;
        session.atomically(|tx| {
            tries += 1;
            tx.read(&y)?;
            if tries == 1 && is_aborted {
                let write = || {
                    stm.atomically(|tx| {
                        tx.write(&x, 4)?;
                        tx.write(&y, 4)
                    });
                };
                thread::scope(|s| s.spawn(write).join()).unwrap();
            }
            tx.read(&x)
        });
        let stats = stm.stats();
        assert_eq!(stats.aborts(), u64::from(is_aborted));
        assert_eq!(
            stats.uncertain + stats.resampled_uncertain,
            stats.uncertain_comparisons()
        );
        (stats.resampled, stats.resampled_uncertain, stats.uncertain)
    }
    let wide = || Stm::new(skewed(0, 1_000, 0));
    assert_eq!(counted(&Stm::new(Logical::new()), false), (3, 0, 0));
    // The last look is uncertain too, although the write was a while ago.
    assert_eq!(counted(&wide(), false), (4, 3, 0));
    let (_, _, aborted) = counted(&Stm::new(Logical::new()), true);
    assert_eq!(aborted, 0);
    let (_, _, aborted) = counted(&wide(), true);
    assert_eq!(aborted, 1);
}

/// If the boundary is wider than the clock's count so far, everything is uncertain, and
/// transactions go on all the same.
#[test]
fn no_transaction_waits_for_a_boundary_without_end() {
    if counter::usable() {
        let stm = Stm::new(Ordo::with_boundary(u64::MAX));
        let x = TVar::new(0_u64);
        for _ in 0..10 {
            stm.atomically(|tx| tx.update(&x, |x| x + 1));
        }
        assert_eq!(x.load(), 10);
    }
}
