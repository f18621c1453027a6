//! Random histories of several threads, judged by `corelay-history`.
//!
//! `CORELAY_STRESS=100 cargo test …` makes a hundred times as many.

use corelay_clock::{Logical, Ordo, Skewed, SkewedBuilder};
use corelay_history::transactions::{
    Access, Anomalies, History, Kind, Level, Outcome, Plan, Recorder, check,
};
use corelay_txn::store::{
    Isolation, Mvcc, Occ, OrderedTable, Protocol, Result, Silo, Store, Table, TicToc, Tx,
};
use std::ops::ControlFlow::Break;

/// How the lists of a history are kept in a store.
trait Lists<P: Protocol>: Sync {
    fn new(store: &Store<P>) -> Self;
    fn read(&self, tx: &mut Tx<'_, P>, key: u64) -> Result<Vec<u64>>;
    fn append(&self, tx: &mut Tx<'_, P>, key: u64, value: u64) -> Result<()>;
}

/// A list is a row.
struct Rows(Table<u64, Vec<u64>>);

impl<P: Protocol> Lists<P> for Rows {
    fn new(store: &Store<P>) -> Self {
        Self(store.table("lists").unwrap())
    }

    fn read(&self, tx: &mut Tx<'_, P>, key: u64) -> Result<Vec<u64>> {
        Ok(tx.get(&self.0, &key)?.unwrap_or_default())
    }

    fn append(&self, tx: &mut Tx<'_, P>, key: u64, value: u64) -> Result<()> {
        if !tx.update(&self.0, &key, |list| list.push(value))? {
            tx.insert(&self.0, key, vec![value])?;
        }
        Ok(())
    }
}

/// A list is a range of rows, so that an append is a phantom for those who have read the list. Rows
/// of other keys come and go between them.
struct Ranges(OrderedTable<(u64, u64), u64>);

impl<P: Protocol> Lists<P> for Ranges {
    fn new(store: &Store<P>) -> Self {
        Self(store.ordered("lists").unwrap())
    }

    fn read(&self, tx: &mut Tx<'_, P>, key: u64) -> Result<Vec<u64>> {
        let rows = tx.rows(&self.0, (key, 0)..(key, 1_000))?;
        // What comes and goes.
        if !tx.remove(&self.0, &(key, 1_000))? {
            tx.insert(&self.0, (key, 1_000), 0)?;
        }
        Ok(rows.into_iter().map(|(_, value)| value).collect())
    }

    fn append(&self, tx: &mut Tx<'_, P>, key: u64, value: u64) -> Result<()> {
        let last = tx.range_back(&self.0, (key, 0)..(key, 1_000), |key, _| Break(key.1))?;
        tx.insert(&self.0, (key, last.map_or(0, |at| at + 1)), value)?;
        Ok(())
    }
}

/// Runs a plan, and records it.
fn history<P: Protocol, L: Lists<P>>(store: &Store<P>, plan: &Plan) -> History {
    let lists = L::new(store);
    let programs = plan.programs();
    let mut recorders: Vec<_> = programs.iter().map(|_| Recorder::new()).collect();
    std::thread::scope(|s| {
        for (program, recorder) in programs.iter().zip(&mut recorders) {
            let lists = &lists;
            s.spawn(move || {
                for transaction in program {
                    run(store, lists, transaction, recorder);
                }
            });
        }
    });
    recorders.into_iter().collect()
}

fn run<P: Protocol, L: Lists<P>>(
    store: &Store<P>,
    lists: &L,
    transaction: &[Access],
    recorder: &mut Recorder,
) {
    recorder.begin();
    let ended = store.transact(|tx| {
        recorder.retry();
        for (at, access) in transaction.iter().enumerate() {
            match *access {
                Access::Read(key) => recorder.read_list(key, lists.read(tx, key)?),
                Access::Write(key) => {
                    let value = recorder.fresh();
                    lists.append(tx, key, value)?;
                    recorder.append(key, value);
                }
            }
            if at % 2 == 0 {
                // Also on one CPU, transactions overlap.
                std::thread::yield_now();
            }
        }
        // Some end on purpose.
        if transaction.len() == 3 && transaction[0] == transaction[2] {
            return tx.abort();
        }
        Ok(())
    });
    recorder.end(if ended.is_ok() {
        Outcome::Committed
    } else {
        Outcome::Aborted
    });
}

fn plans() -> impl Iterator<Item = Plan> {
    let stress = std::env::var("CORELAY_STRESS").ok();
    let rounds = stress.and_then(|s| s.parse().ok()).unwrap_or(1);
    (0..rounds).map(|seed| Plan {
        seed,
        threads: 3,
        transactions: 300,
        writes_per_key: 24,
        keys: 4,
        ..Plan::default()
    })
}

/// Judges histories of every way to keep lists.
#[track_caller]
fn holds<P: Protocol>(protocol: impl Fn() -> P, level: Level) {
    for plan in plans() {
        let judge = |history: History| check(&history, level).map(drop);
        for judged in [
            judge(history::<P, Rows>(&Store::new(protocol()), &plan)),
            judge(history::<P, Ranges>(&Store::new(protocol()), &plan)),
            judge(history::<P, Rows>(
                &Store::new(protocol()).with_attempts(1),
                &plan,
            )),
        ] {
            judged.unwrap_or_else(|anomalies| panic!("{plan:?}\n{anomalies}"));
        }
    }
}

#[test]
fn silo() {
    holds(|| Silo, Level::StrictSerializable);
}

#[test]
fn tictoc() {
    holds(|| TicToc, Level::Serializable);
}

fn mvcc_levels() -> [(Isolation, Level); 3] {
    [
        (Isolation::Snapshot, Level::SnapshotIsolation),
        (Isolation::Serializable, Level::Serializable),
        (Isolation::StrictlySerializable, Level::StrictSerializable),
    ]
}

#[test]
fn by_the_counter() {
    holds(|| Occ::new(Logical::new()), Level::StrictSerializable);
    for (isolation, level) in mvcc_levels() {
        holds(|| Mvcc::with_isolation(Logical::new(), isolation), level);
    }
    // The counter is strict by itself.
    holds(|| Mvcc::new(Logical::new()), Level::StrictSerializable);
}

#[test]
fn by_ordo() {
    match Ordo::shared() {
        Ok(clock) => {
            holds(|| Occ::new(clock), Level::StrictSerializable);
            for (isolation, level) in mvcc_levels() {
                holds(|| Mvcc::with_isolation(clock, isolation), level);
            }
        }
        Err(why) => println!("{why}"),
    }
}

/// A clock that is wrong by nearly as much as it says, and slow to give out commits' times.
fn skewed(boundary: u64) -> Skewed {
    let with = SkewedBuilder {
        skew: 900,
        step: 50,
        boundary,
        delay: 40,
    };
    with.build().stepping(1_000)
}

#[test]
fn by_clocks_that_are_wrong_within_the_boundary() {
    holds(|| Occ::new(skewed(950)), Level::StrictSerializable);
    for (isolation, level) in mvcc_levels() {
        holds(|| Mvcc::with_isolation(skewed(950), isolation), level);
    }
}

/// The anomalies of some history of many.
fn found<P: Protocol>(protocol: impl Fn() -> P, level: Level) -> Option<Anomalies> {
    (0..200).find_map(|seed| {
        let plan = Plan {
            seed,
            ..plans().next()?
        };
        check(&history::<P, Rows>(&Store::new(protocol()), &plan), level).err()
    })
}

#[test]
fn write_skew_is_found_under_snapshot_isolation() {
    let snapshot = || Mvcc::with_isolation(Logical::new(), Isolation::Snapshot);
    let anomalies = found(snapshot, Level::Serializable).expect("write skew");
    assert_eq!(anomalies.worst().kind(), Kind::G2Item, "{anomalies}");
}

#[test]
fn a_clock_that_is_wrong_beyond_the_boundary_is_found() {
    let strict = || Mvcc::with_isolation(skewed(0), Isolation::StrictlySerializable);
    assert!(found(strict, Level::StrictSerializable).is_some());
}
