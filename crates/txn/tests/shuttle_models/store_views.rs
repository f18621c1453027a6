//! Transactions of the store under shuttle: random schedules of more threads than loom can afford.

use crate::model_rows::rows;
use crate::schedules;
use corelay_txn::store::{OrderedTable, Protocol, Store};
use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::thread;

const SCHEDULES: usize = 300;

/// Makes a test of each function, by every protocol and clock.
macro_rules! by_every_protocol {
    ($($name:ident),* $(,)?) => {$(
        mod $name {
            use crate::tl2::skewed;
            use corelay_clock::Logical;
            use corelay_txn::store::{Mvcc, Occ, Silo, TicToc};
            #[test]
            fn silo() { super::$name(|| Silo); }
            #[test]
            fn tictoc() { super::$name(|| TicToc); }
            #[test]
            fn occ() { super::$name(|| Occ::new(Logical::new())); }
            #[test]
            fn occ_skewed() { super::$name(|| Occ::new(skewed())); }
            #[test]
            fn mvcc() { super::$name(|| Mvcc::new(Logical::new())); }
            #[test]
            fn mvcc_skewed() { super::$name(|| Mvcc::new(skewed())); }
        }
    )*};
}

pub(crate) use by_every_protocol;

by_every_protocol![
    money_is_not_lost,
    rows_are_dropped_once,
    ranges_have_no_phantoms
];

/// Transfers between accounts that are removed when they are empty, beside sums.
fn money_is_not_lost<P: Protocol>(protocol: fn() -> P) {
    const ACCOUNTS: u64 = 3;
    schedules::model(SCHEDULES, move || {
        let store = Store::new(protocol());
        let accounts = rows::<P, u64>(&store);
        store.transact(|tx| tx.put(&accounts, 0, 2)).unwrap();
        let world = Arc::new((store, accounts));
        let threads: Vec<_> = (0..4_u64)
            .map(|thread| {
                let world = Arc::clone(&world);
                thread::spawn(move || {
                    let (store, accounts) = &*world;
                    for round in 0..2 {
                        let (from, to) = ((thread + round) % ACCOUNTS, (thread + 1) % ACCOUNTS);
                        let transfer = store.transact(|tx| {
                            let Some(has) = tx.get(accounts, &from)? else {
                                return Ok(());
                            };
                            match has {
                                1 => drop(tx.remove(accounts, &from)?),
                                _ => tx.put(accounts, from, has - 1)?,
                            }
                            if !tx.update(accounts, &to, |has| *has += 1)? {
                                tx.insert(accounts, to, 1)?;
                            }
                            Ok(())
                        });
                        transfer.unwrap();
                        let sum = store.transact(|tx| {
                            let mut sum = 0;
                            for account in 0..ACCOUNTS {
                                sum += tx.get(accounts, &account)?.unwrap_or(0);
                            }
                            Ok(sum)
                        });
                        assert_eq!(sum.unwrap(), 2);
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|t| t.join().unwrap());
    });
}

/// A row that counts how many of its kind there are.
#[derive(Debug)]
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(alive: &Arc<AtomicUsize>) -> Self {
        alive.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(alive))
    }
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        Self::new(&self.0)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let before = self.0.fetch_sub(1, Ordering::SeqCst);
        assert!(before > 0 && before < 1_000, "dropped twice");
    }
}

/// Rows are replaced and removed while others look at them.
fn rows_are_dropped_once<P: Protocol>(protocol: fn() -> P) {
    schedules::model(SCHEDULES, move || {
        let alive = Arc::new(AtomicUsize::new(0));
        let store = Store::new(protocol());
        let world = Arc::new((rows::<P, Counted>(&store), store));
        let threads: Vec<_> = (0..4_u64)
            .map(|thread| {
                let (world, alive) = (Arc::clone(&world), Arc::clone(&alive));
                thread::spawn(move || {
                    let (rows, store) = &*world;
                    for round in 0..3 {
                        let ended = store.transact(|tx| match (thread + round) % 4 {
                            0 => tx.put(rows, 0, Counted::new(&alive)),
                            1 => tx.remove(rows, &0).map(drop),
                            2 => tx.update(rows, &0, |_| ()).map(drop),
                            _ => tx
                                .with(rows, &0, |row| assert!(row.0.load(Ordering::SeqCst) > 0))
                                .map(drop),
                        });
                        ended.unwrap();
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|t| t.join().unwrap());
        drop(world);
        assert_eq!(alive.load(Ordering::SeqCst), 0, "leaked");
    });
}

/// Each thread inserts a row whose value is the number of rows that it has counted.
fn ranges_have_no_phantoms<P: Protocol>(protocol: fn() -> P) {
    schedules::model(SCHEDULES, move || {
        let store = Store::new(protocol());
        let rows: OrderedTable<u64, usize> = store.ordered("rows").unwrap();
        let world = Arc::new((rows, store));
        let threads: Vec<_> = (0..4_u64)
            .map(|thread| {
                let world = Arc::clone(&world);
                thread::spawn(move || {
                    let (rows, store) = &*world;
                    let count = store.transact(|tx| {
                        let count = tx.rows(rows, ..)?.len();
                        tx.insert(rows, 10 - thread, count)?;
                        Ok(count)
                    });
                    count.unwrap()
                })
            })
            .collect();
        let mut counts: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        counts.sort_unstable();
        assert_eq!(counts, [0, 1, 2, 3]);
    });
}
