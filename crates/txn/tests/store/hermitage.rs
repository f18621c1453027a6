//! The anomalies of Hermitage (Kleppmann, <https://github.com/ept/hermitage>), provoked by one
//! transaction that runs inside the closure of another, by every protocol and isolation.
//!
//! The inner transaction runs whole, between two steps of the outer one's first attempt.

use corelay_clock::Logical;
use corelay_txn::store::{
    Isolation, Mvcc, Occ, OrderedTable, Protocol, Reason, Result, Silo, Store, TicToc, Tx,
};

/// A store with rows 1 and 2, of values 10 and 20.
struct Bench<P: Protocol> {
    store: Store<P>,
    rows: OrderedTable<u64, u64>,
}

impl<P: Protocol> Bench<P> {
    fn new(protocol: P) -> Self {
        let store = Store::new(protocol);
        let rows = store.ordered("test").unwrap();
        let bench = Self { store, rows };
        bench.run(|tx| {
            tx.put(&bench.rows, 1, 10)?;
            tx.put(&bench.rows, 2, 20)
        });
        bench
    }

    fn run<R>(&self, f: impl FnMut(&mut Tx<'_, P>) -> Result<R>) -> R {
        self.store.transact(f).unwrap()
    }

    /// Runs `first` with a function that says whether it is the first attempt. Returns the answer
    /// and the number of attempts.
    fn outer<R>(&self, mut first: impl FnMut(&mut Tx<'_, P>, bool) -> Result<R>) -> (R, u32) {
        let mut attempts = 0;
        let answer = self.run(|tx| {
            attempts += 1;
            first(tx, attempts == 1)
        });
        (answer, attempts)
    }

    fn get(&self, tx: &mut Tx<'_, P>, key: u64) -> Result<Option<u64>> {
        tx.get(&self.rows, &key)
    }

    fn put(&self, tx: &mut Tx<'_, P>, key: u64, value: u64) -> Result<()> {
        tx.put(&self.rows, key, value)
    }

    fn all(&self) -> Vec<(u64, u64)> {
        self.run(|tx| tx.rows(&self.rows, ..))
    }
}

/// The tests, by each protocol; `serializable` says whether write skew is forbidden.
macro_rules! by_all {
    ($(fn $name:ident($bench:ident, $serializable:ident) $body:block)*) => {$(
        mod $name {
            use super::*;

            fn body<P: Protocol>($bench: &Bench<P>, $serializable: bool) $body

            #[test]
            fn silo() { body(&Bench::new(Silo), true); }
            #[test]
            fn tictoc() { body(&Bench::new(TicToc), true); }
            #[test]
            fn occ() { body(&Bench::new(Occ::new(Logical::new())), true); }
            #[test]
            fn mvcc_snapshot() {
                let protocol = Mvcc::with_isolation(Logical::new(), Isolation::Snapshot);
                body(&Bench::new(protocol), false);
            }
            #[test]
            fn mvcc_serializable() { body(&Bench::new(Mvcc::new(Logical::new())), true); }
            #[test]
            fn mvcc_strict() {
                let protocol = Mvcc::with_isolation(Logical::new(), Isolation::StrictlySerializable);
                body(&Bench::new(protocol), true);
            }
        }
    )*};
}

by_all! {
    fn g0_writes_are_not_mixed(bench, _serializable) {
        bench.outer(|tx, is_first| {
            bench.put(tx, 1, 11)?;
            if is_first {
                bench.run(|inner| { bench.put(inner, 1, 12)?; bench.put(inner, 2, 22) });
            }
            bench.put(tx, 2, 21)
        });
        // The outer one ends later.
        assert_eq!(bench.all(), [(1, 11), (2, 21)]);
    }

    fn g1a_aborted_writes_are_not_read(bench, _serializable) {
        let aborted = bench.store.transact(|tx| {
            bench.put(tx, 1, 101)?;
            assert_eq!(bench.run(|inner| bench.get(inner, 1)), Some(10));
            tx.abort::<()>()
        });
        assert_eq!(aborted.unwrap_err().reason(), Reason::Explicit);
        assert_eq!(bench.all(), [(1, 10), (2, 20)]);
    }

    fn g1b_intermediate_writes_are_not_read(bench, _serializable) {
        bench.outer(|tx, is_first| {
            bench.put(tx, 1, 101)?;
            if is_first {
                assert_eq!(bench.run(|inner| bench.get(inner, 1)), Some(10));
            }
            bench.put(tx, 1, 11)
        });
        assert_eq!(bench.all(), [(1, 11), (2, 20)]);
    }

    fn g1c_no_circle_of_information(bench, serializable) {
        let mut inner_saw = None;
        let (outer_saw, attempts) = bench.outer(|tx, is_first| {
            bench.put(tx, 1, 11)?;
            if is_first {
                inner_saw = bench.run(|inner| { bench.put(inner, 2, 22)?; bench.get(inner, 1) });
            }
            bench.get(tx, 2)
        });
        assert_eq!(inner_saw, Some(10));
        // A snapshot is older than the inner transaction; under snapshot isolation that is no
        // reason to abort.
        let wanted = if serializable || attempts > 1 { 22 } else { 20 };
        assert_eq!(outer_saw, Some(wanted));
    }

    fn otv_observed_transactions_do_not_vanish(bench, _serializable) {
        let (seen, _) = bench.outer(|tx, is_first| {
            let one = bench.get(tx, 1)?;
            if is_first {
                bench.run(|inner| { bench.put(inner, 1, 12)?; bench.put(inner, 2, 18) });
            }
            Ok((one, bench.get(tx, 2)?, bench.get(tx, 1)?))
        });
        assert!(
            seen == (Some(10), Some(20), Some(10)) || seen == (Some(12), Some(18), Some(12)),
            "{seen:?}"
        );
    }

    fn pmp_predicates_are_read_once(bench, serializable) {
        let ((before, after), attempts) = bench.outer(|tx, is_first| {
            let before = tx.rows(&bench.rows, 3..)?.len();
            if is_first {
                bench.run(|inner| bench.put(inner, 3, 30));
            }
            let after = tx.rows(&bench.rows, 3..)?.len();
            Ok((before, after))
        });
        assert_eq!(before, after);
        assert_eq!(before, usize::from(attempts > 1));
        let _ = serializable;
    }

    fn p4_no_update_is_lost(bench, _serializable) {
        let (_, attempts) = bench.outer(|tx, is_first| {
            let one = bench.get(tx, 1)?.unwrap();
            if is_first {
                bench.run(|inner| tx_add(bench, inner, 1));
            }
            bench.put(tx, 1, one + 1)
        });
        assert_eq!((bench.all(), attempts), (vec![(1, 12), (2, 20)], 2));
    }

    fn g_single_reads_are_of_one_moment(bench, _serializable) {
        let ((one, two), _) = bench.outer(|tx, is_first| {
            let one = bench.get(tx, 1)?;
            if is_first {
                bench.run(|inner| { bench.put(inner, 1, 12)?; bench.put(inner, 2, 18) });
            }
            Ok((one, bench.get(tx, 2)?))
        });
        assert!([(Some(10), Some(20)), (Some(12), Some(18))].contains(&(one, two)));
    }

    fn g_single_predicates_are_of_one_moment(bench, _serializable) {
        let ((low, high), _) = bench.outer(|tx, is_first| {
            let low = tx.rows(&bench.rows, ..2)?;
            if is_first {
                bench.run(|inner| { inner.remove(&bench.rows, &1)?; bench.put(inner, 3, 10) });
            }
            Ok((low, tx.rows(&bench.rows, 2..)?))
        });
        assert_eq!(low.len() + high.len(), 2, "{low:?} {high:?}");
    }

    fn g2_item_write_skew(bench, serializable) {
        // Each reads both, and writes its own.
        let (_, attempts) = bench.outer(|tx, is_first| {
            let sum = bench.get(tx, 1)?.unwrap() + bench.get(tx, 2)?.unwrap();
            if is_first {
                bench.run(|inner| {
                    let sum = bench.get(inner, 1)?.unwrap() + bench.get(inner, 2)?.unwrap();
                    bench.put(inner, 2, sum)
                });
            }
            bench.put(tx, 1, sum)
        });
        let wanted = if serializable { (40, 2) } else { (30, 1) };
        assert_eq!((bench.all()[0].1, attempts), wanted);
    }

    fn g2_phantom_write_skew(bench, serializable) {
        // Each counts the rows from 3 on, and inserts one whose value is the count.
        let (_, attempts) = bench.outer(|tx, is_first| {
            let count = tx.rows(&bench.rows, 3..)?.len() as u64;
            if is_first {
                bench.run(|inner| {
                    let count = inner.rows(&bench.rows, 3..)?.len() as u64;
                    bench.put(inner, 3, count)
                });
            }
            bench.put(tx, 4, count)
        });
        let wanted = if serializable { ([(3, 0), (4, 1)], 2) } else { ([(3, 0), (4, 0)], 1) };
        assert_eq!((&bench.all()[2..], attempts), (&wanted.0[..], wanted.1));
    }

    fn g2_absent_keys_write_skew(bench, serializable) {
        // Each inserts its row only if the other one's is not there.
        let (_, attempts) = bench.outer(|tx, is_first| {
            let is_alone = bench.get(tx, 3)?.is_none();
            if is_first {
                bench.run(|inner| {
                    let is_alone = bench.get(inner, 4)?.is_none();
                    bench.put(inner, 3, u64::from(is_alone))
                });
            }
            bench.put(tx, 4, u64::from(is_alone))
        });
        let wanted = if serializable { (0, 2) } else { (1, 1) };
        assert_eq!((bench.all()[3].1, attempts), wanted);
    }

    fn reads_may_not_ignore_a_commit_that_was_answered(bench, _serializable) {
        bench.run(|tx| bench.put(tx, 1, 77));
        assert_eq!(bench.run(|tx| bench.get(tx, 1)), Some(77));
        assert_eq!(bench.store.read_only(|tx| bench.get(tx, 1)).unwrap(), Some(77));
    }
}

fn tx_add<P: Protocol>(bench: &Bench<P>, tx: &mut Tx<'_, P>, key: u64) -> Result<()> {
    tx.update(&bench.rows, &key, |value| *value += 1).map(drop)
}
