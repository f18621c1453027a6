//! Transactions that sleep keep old versions, up to a limit.

use corelay_clock::Logical;
use corelay_txn::store::{Mvcc, Occ, Protocol, Reason, Silo, Store, TicToc};
use std::sync::Barrier;

const LIMIT: u64 = 1 << 20;

fn a_sleeper_is_refused_and_memory_bounded<P: Protocol>(protocol: P) {
    let store = Store::new(protocol).with_old_versions(LIMIT);
    let rows = store.table::<u64, [u8; 1000]>("rows").unwrap();
    store
        .transact(|tx| (0..64).try_for_each(|key| tx.put(&rows, key, [0; 1000])))
        .unwrap();
    let asleep = Barrier::new(2);
    std::thread::scope(|s| {
        let sleeper = s.spawn(|| {
            store.transact(|tx| {
                tx.get(&rows, &1)?;
                // A write of its own does not protect it.
                tx.put(&rows, 100, [1; 1000])?;
                asleep.wait();
                asleep.wait();
                tx.get(&rows, &2)
            })
        });
        asleep.wait();
        for round in 0..20_000_u64 {
            store
                .transact(|tx| {
                    tx.update(&rows, &(round % 64), |row| row[0] = row[0].wrapping_add(1))
                        .map(drop)
                })
                .unwrap_or_else(|abort| panic!("{abort}"));
            if round % 1000 == 999 {
                let report = store.report();
                assert!(report.old_versions < 2 * LIMIT, "{round}: {report}");
            }
        }
        asleep.wait();
        let refused = sleeper.join().unwrap().unwrap_err();
        assert_eq!(refused.reason(), Reason::Refused);
    });
    let report = store.report();
    assert_eq!(
        (report.refused, report.aborts.by(Reason::Refused)),
        (1, 1),
        "{report}"
    );
    assert!(!store.transact(|tx| tx.contains(&rows, &100)).unwrap());
}

#[test]
fn silo() {
    a_sleeper_is_refused_and_memory_bounded(Silo);
}

#[test]
fn tictoc() {
    a_sleeper_is_refused_and_memory_bounded(TicToc);
}

#[test]
fn occ() {
    a_sleeper_is_refused_and_memory_bounded(Occ::new(Logical::new()));
}

#[test]
fn mvcc() {
    a_sleeper_is_refused_and_memory_bounded(Mvcc::new(Logical::new()));
}

/// A snapshot that is read slowly, by many operations, is not refused as long as memory suffices,
/// and sees one moment.
#[test]
fn a_slow_snapshot_stays_whole() {
    let store = Store::new(Mvcc::new(Logical::new()));
    let rows = store.ordered::<u64, u64>("rows").unwrap();
    store
        .transact(|tx| (0..64).try_for_each(|key| tx.put(&rows, key, 0)))
        .unwrap();
    let sum = store
        .read_only(|tx| {
            let mut sum = 0;
            for key in 0..64 {
                // Meanwhile all rows change, some go, and others come.
                store.transact(|other| {
                    for key in 0..64 {
                        other.update(&rows, &key, |row| *row += 1)?;
                    }
                    other.remove(&rows, &(63 - key))?;
                    other.put(&rows, 100 + key, 1)
                })?;
                sum += tx.get(&rows, &key)?.expect("the row was there") + 1;
            }
            assert_eq!(tx.rows(&rows, ..)?.len(), 64);
            Ok(sum)
        })
        .unwrap();
    assert_eq!(sum, 64);
    for _ in 0..200 {
        store.transact(|tx| tx.put(&rows, 200, 1)).unwrap();
    }
    let report = store.report();
    assert!(report.old_versions < 20_000, "{report}");
    assert_eq!(store.read_only(|tx| tx.rows(&rows, ..)).unwrap().len(), 65);
}
