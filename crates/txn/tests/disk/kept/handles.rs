//! Handles of durability: when they say that a transaction is on disk.

use super::{by_every_protocol, open};
use crate::faulty::Faulty;
use crate::history::lazy;
use corelay_fibre::Cluster;
use corelay_txn::store::{Abort, Options, Protocol, Reason, Silo, Tx};
use std::sync::Arc;
use std::time::Duration;

by_every_protocol![
    readers_wait_for_what_they_saw,
    handles_are_their_own,
    threads_are_grouped,
    errors_have_no_handle
];

fn readers_wait_for_what_they_saw<P: Protocol>(protocol: impl Fn() -> P) {
    let storage = Faulty::default();
    let store = open(protocol(), &storage, &lazy());
    let table = store.kept_table::<u8, u32>("rows").unwrap();
    let (_, written) = store.transact_durable(|tx| tx.put(&table, 1, 1)).unwrap();
    assert!(!written.is_durable());
    let (seen, read) = store.transact_durable(|tx| tx.get(&table, &1)).unwrap();
    assert_eq!(seen, Some(1));
    assert!(!read.is_durable() && read.epoch() >= written.epoch());
    read.wait().unwrap();
    assert!(written.is_durable());
}

/// Transactions without writes, in slots whose last transaction left a handle that nobody took.
fn handles_are_their_own<P: Protocol>(protocol: impl Fn() -> P) {
    let storage = Faulty::default();
    let store = open(protocol(), &storage, &lazy());
    let table = store.kept_table::<u8, u32>("rows").unwrap();
    let put = |key| store.transact(|tx| tx.put(&table, key, 1)).unwrap();
    // Inside a transaction, another one has another slot.
    let nested = store.transact(|tx| {
        put(1);
        tx.put(&table, 2, 1)
    });
    nested.unwrap();
    let elsewhere = |row| {
        let put = store.read_only(|_| {
            store.read_only(|_| store.transact_durable(|tx| tx.put(&table, 3, row)))
        });
        put.unwrap().1
    };
    elsewhere(1).wait().unwrap();
    let second = elsewhere(2);
    let read = || store.transact_durable(|tx| tx.get(&table, &3)).unwrap();
    let (seen, outer) = read();
    let (_, inner) = store.read_only(|_| Ok(read())).unwrap();
    assert_eq!(seen, Some(2));
    assert!(!second.is_durable() && !outer.is_durable() && !inner.is_durable());
}

fn threads_are_grouped<P: Protocol>(protocol: impl Fn() -> P) {
    const THREADS: u64 = 4;
    const EACH: u64 = 200;
    let storage = Faulty::default();
    let store = open(protocol(), &storage, &lazy());
    let table = store.kept_ordered::<u64, u64>("rows").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (store, table) = (&store, &table);
            scope.spawn(move || {
                let mut handles = Vec::new();
                for number in 0..EACH {
                    let key = thread * EACH + number;
                    let put = store.transact_durable(|tx| tx.put(table, key, number));
                    handles.push(put.unwrap().1);
                }
                for handle in handles {
                    handle.wait().unwrap();
                }
            });
        }
    });
    let report = store.report().disk.unwrap();
    assert_eq!(report.commits, THREADS * EACH);
    // A handle is waited for after all transactions of its thread.
    assert!(report.epochs < THREADS * EACH, "{report:?}");
    let image = storage.image();
    drop((store, table));
    let store = open(protocol(), &Faulty::new(&image), &lazy());
    let table = store.kept_ordered::<u64, u64>("rows").unwrap();
    let rows = store.read_only(|tx| tx.rows(&table, ..)).unwrap();
    assert_eq!(rows.len() as u64, THREADS * EACH);
}

fn errors_have_no_handle<P: Protocol>(protocol: impl Fn() -> P) {
    let storage = Faulty::default();
    let store = open(protocol(), &storage, &lazy());
    let table = store.kept_table::<u8, u32>("rows").unwrap();
    let given_up = store.transact_durable(|tx| {
        tx.put(&table, 1, 1)?;
        tx.abort::<()>()
    });
    assert_eq!(given_up.unwrap_err().reason(), Reason::Explicit);
    #[derive(Debug)]
    struct Own;
    impl From<Abort> for Own {
        fn from(_: Abort) -> Self {
            Self
        }
    }
    let own = store.try_transact_durable(|tx: &mut Tx<'_, P>| {
        tx.put(&table, 1, 1)?;
        Err::<(), _>(Own)
    });
    assert!(own.is_err());
    assert_eq!(store.read_only(|tx| tx.get(&table, &1)).unwrap(), None);
    let before = store.report().disk.unwrap().commits;
    store
        .transact_durable(|_| Ok(()))
        .unwrap()
        .1
        .wait()
        .unwrap();
    assert_eq!(store.report().disk.unwrap().commits, before);
}

#[test]
fn fibres_wait_for_durability() {
    let storage = Faulty::default();
    let store = Arc::new(open(Silo, &storage, &lazy()));
    let table = store.kept_table::<u64, u64>("sums").unwrap();
    store.transact(|tx| tx.put(&table, 0, 0)).unwrap();
    // SAFETY: nothing here waits inside a thread-local's initialiser or scope.
    let cluster = unsafe { Cluster::start(2) }.unwrap();
    let fibres: Vec<_> = (0..50)
        .map(|_| {
            let (store, table) = (Arc::clone(&store), table.clone());
            cluster.spawn(move || {
                let add = store.transact_durable(|tx| tx.update(&table, &0, |sum| *sum += 1));
                let (is_there, durable) = add.unwrap();
                assert!(is_there);
                durable.wait().unwrap();
            })
        })
        .collect();
    for fibre in fibres {
        fibre.join().unwrap();
    }
    let image = storage.image();
    let store = open(Silo, &Faulty::new(&image), &lazy());
    let table = store.kept_table::<u64, u64>("sums").unwrap();
    assert_eq!(store.read_only(|tx| tx.get(&table, &0)).unwrap(), Some(50));
}

/// An epoch that ends only when somebody waits for it.
#[test]
fn longest_interval_ends_when_it_is_waited_for() {
    let storage = Faulty::default();
    let options = Options {
        epoch_interval: Duration::MAX,
        ..Options::default()
    };
    let store = open(Silo, &storage, &options);
    let table = store.kept_table::<u8, u8>("rows").unwrap();
    for row in 0..3 {
        let (_, durable) = store.transact_durable(|tx| tx.put(&table, 1, row)).unwrap();
        durable.wait().unwrap();
    }
}
