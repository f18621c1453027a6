//! Single transactions, by every protocol.

use corelay_clock::Logical;
use corelay_txn::store::{Mvcc, Occ, Protocol, Reason, Silo, Store, Table, TableError, TicToc};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Runs a body with a store of every protocol.
macro_rules! by_every_protocol {
    ($($(#[$attr:meta])* fn $name:ident($store:ident) $body:block)*) => {$(
        mod $name {
            use super::*;

            fn body<P: Protocol>($store: &Store<P>) $body

            $(#[$attr])*
            #[test]
            fn silo() { body(&Store::new(Silo)); }
            $(#[$attr])*
            #[test]
            fn tictoc() { body(&Store::new(TicToc)); }
            $(#[$attr])*
            #[test]
            fn occ() { body(&Store::new(Occ::new(Logical::new()))); }
            $(#[$attr])*
            #[test]
            fn mvcc() { body(&Store::new(Mvcc::new(Logical::new()))); }
        }
    )*};
}

by_every_protocol! {
    fn what_is_written_is_read(store) {
        let table: Table<u64, String> = store.table("names").unwrap();
        store.transact(|tx| {
            assert!(tx.insert(&table, 1, "one".into())?);
            assert!(!tx.insert(&table, 1, "uno".into())?);
            assert_eq!(tx.get(&table, &1)?.as_deref(), Some("one"));
            assert_eq!(tx.get(&table, &2)?, None);
            Ok(())
        }).unwrap();
        store.transact(|tx| {
            assert_eq!(tx.get(&table, &1)?.as_deref(), Some("one"));
            assert!(!tx.insert(&table, 1, "uno".into())?);
            assert!(tx.update(&table, &1, |name| name.push('!'))?);
            assert!(!tx.update(&table, &2, |_| unreachable!())?);
            assert_eq!(tx.get(&table, &1)?.as_deref(), Some("one!"));
            tx.put(&table, 2, "two".into())
        }).unwrap();
        store.transact(|tx| {
            assert!(tx.remove(&table, &1)?);
            assert!(!tx.remove(&table, &1)?);
            assert!(!tx.contains(&table, &1)?);
            assert!(tx.insert(&table, 1, "again".into())?);
            assert!(tx.remove(&table, &1)?);
            Ok(())
        }).unwrap();
        store.read_only(|tx| {
            assert!(!tx.contains(&table, &1)?);
            assert_eq!(tx.get(&table, &2)?.as_deref(), Some("two"));
            Ok(())
        }).unwrap();
        store.transact(|tx| tx.insert(&table, 1, "at last".into())).unwrap();
        assert_eq!(store.transact(|tx| tx.get(&table, &1)).unwrap().as_deref(), Some("at last"));
    }

    fn an_abort_undoes_everything(store) {
        let table: Table<u64, Arc<u64>> = store.table("rows").unwrap();
        let row = Arc::new(7);
        store.transact(|tx| tx.insert(&table, 1, row.clone())).unwrap();
        let aborted = store.transact(|tx| {
            tx.put(&table, 1, Arc::new(8))?;
            tx.insert(&table, 2, row.clone())?;
            tx.remove(&table, &1)?;
            tx.abort::<()>()
        });
        assert_eq!(aborted.unwrap_err().reason(), Reason::Explicit);
        assert_eq!(store.aborts(Reason::Explicit), 1);
        assert_eq!(*store.transact(|tx| tx.get(&table, &1)).unwrap().unwrap(), 7);
        assert!(!store.transact(|tx| tx.contains(&table, &2)).unwrap());
    }

    fn a_panic_leaves_nothing_behind(store) {
        let table: Table<u64, u64> = store.table("rows").unwrap();
        store.transact(|tx| tx.insert(&table, 1, 1)).unwrap();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            store.transact(|tx| -> corelay_txn::store::Result<()> {
                tx.put(&table, 1, 2)?;
                tx.insert(&table, 2, 2)?;
                panic!("as the test wants")
            })
        }));
        assert!(panicked.is_err());
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            store.transact(|tx| tx.update(&table, &1, |_| panic!("as the test wants")))
        }));
        assert!(panicked.is_err());
        store.transact(|tx| {
            assert_eq!(tx.get(&table, &1)?, Some(1));
            assert!(!tx.contains(&table, &2)?);
            tx.put(&table, 1, 3)
        }).unwrap();
        assert_eq!(store.transact(|tx| tx.get(&table, &1)).unwrap(), Some(3));
    }

    fn rows_are_dropped_once(store) {
        let row = Arc::new(());
        let table: Table<u64, Arc<()>> = store.table("rows").unwrap();
        for round in 0..200 {
            store.transact(|tx| {
                for key in 0..10 {
                    tx.put(&table, key, row.clone())?;
                }
                Ok(())
            }).unwrap();
            store.transact(|tx| {
                for key in 0..10 {
                    if (key + round) % 3 == 0 {
                        tx.remove(&table, &key)?;
                    }
                }
                Ok(())
            }).unwrap();
        }
        // What is not in the table any more is freed with a few transactions' delay.
        assert!(Arc::strong_count(&row) < 500, "{}", Arc::strong_count(&row));
    }

    fn a_table_has_one_name(store) {
        let _first: Table<u64, u64> = store.table("rows").unwrap();
        let second = store.table::<u64, u64>("rows").unwrap_err();
        assert_eq!(second, TableError::Exists("rows".into()));
    }

    #[should_panic(expected = "belongs to another store")]
    fn a_table_of_another_store_is_refused(store) {
        let other = Store::new(Silo);
        let table: Table<u64, u64> = other.table("rows").unwrap();
        let _ = store.transact(|tx| tx.get(&table, &1));
    }

    #[should_panic(expected = "a write in a read-only transaction")]
    fn a_write_in_a_read_only_transaction_is_refused(store) {
        let table: Table<u64, u64> = store.table("rows").unwrap();
        let _ = store.read_only(|tx| tx.put(&table, 1, 1));
    }

    fn transactions_nest(store) {
        let table: Table<u64, u64> = store.table("rows").unwrap();
        store.transact(|tx| {
            tx.put(&table, 1, 1)?;
            store.transact(|inner| inner.put(&table, 2, 2))?;
            Ok(())
        }).unwrap();
        assert_eq!(store.transact(|tx| tx.get(&table, &2)).unwrap(), Some(2));
    }
}
