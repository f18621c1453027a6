//! Code of keys and rows that panics, or uses the store, where the store calls it.

use super::{Over, by_every_protocol, ends, open};
use crate::faulty::Faulty;
use crate::history::lazy;
use corelay_txn::store::{OrderedTable, Protocol, Silo, Store, Table, TableError};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cell::RefCell;
use std::ops::ControlFlow::Break;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

by_every_protocol![
    panics_while_encoding_undo_the_transaction,
    panics_in_a_commit_undo_the_transaction,
];

/// A key that calls a closure of this thread when it is serialized.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Calls;

thread_local! {
    static CALL: RefCell<Option<Box<dyn FnMut()>>> = const { RefCell::new(None) };
}

/// Runs `body`. The first [`Calls`] that this thread serializes meanwhile calls `call`.
pub(super) fn on_serialize<'c>(call: impl FnMut() + 'c, body: impl FnOnce()) {
    let call: Box<dyn FnMut() + 'c> = Box::new(call);
    // SAFETY: it is taken out before this function ends, or the process does.
    let call: Box<dyn FnMut()> = unsafe { std::mem::transmute(call) };
    CALL.set(Some(call));
    let ended = catch_unwind(AssertUnwindSafe(body));
    CALL.set(None);
    if let Err(payload) = ended {
        std::panic::resume_unwind(payload);
    }
}

impl Serialize for Calls {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Some(mut call) = CALL.take() {
            call();
        }
        serializer.serialize_unit()
    }
}

impl<'de> Deserialize<'de> for Calls {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <()>::deserialize(deserializer).map(|()| Self)
    }
}

fn panic_of(f: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(f)).unwrap_err();
    payload
        .downcast_ref::<&str>()
        .copied()
        .unwrap_or_default()
        .to_owned()
}

fn panics_while_encoding_undo_the_transaction<P: Protocol>(protocol: impl Fn() -> P) {
    let storage = Faulty::default();
    let store = open(protocol(), &storage, &lazy());
    let table = store.kept_table::<Calls, u8>("calls").unwrap();
    let other = store.kept_table::<u8, u8>("other").unwrap();
    let put = |number| {
        store.transact(|tx| {
            tx.put(&other, 1, number)?;
            tx.put(&table, Calls, number)
        })
    };
    let said = panic_of(|| on_serialize(|| panic!("not today"), || put(1).unwrap()));
    assert_eq!(said, "not today");
    let rows = || {
        store
            .read_only(|tx| Ok((tx.get(&other, &1)?, tx.get(&table, &Calls)?)))
            .unwrap()
    };
    assert_eq!(rows(), (None, None));
    put(2).unwrap();
    assert_eq!(rows(), (Some(2), Some(2)));
    // The snapshot that is under way ends, and the next one is made.
    let said = panic_of(|| {
        on_serialize(
            || panic!("nor today"),
            || {
                let _ = store.snapshot();
            },
        );
    });
    assert_eq!(said, "nor today");
    assert_eq!(store.snapshot().unwrap().entries, 2);
    put(3).unwrap();
    assert_eq!(rows(), (Some(3), Some(3)));
}

/// A key that may panic when it is compared.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, Hash)]
#[expect(
    clippy::derived_hash_with_manual_eq,
    reason = "equal keys have equal hashes"
)]
struct Touchy(u8);

static IS_TOUCHY: AtomicBool = AtomicBool::new(false);

thread_local! {
    static IS_HERE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

impl PartialEq for Touchy {
    fn eq(&self, other: &Self) -> bool {
        if IS_HERE.get() && IS_TOUCHY.load(Ordering::Relaxed) && self.0 == 7 {
            panic!("touched");
        }
        self.0 == other.0
    }
}

impl Eq for Touchy {}

/// A commit that panics in the middle, with rows locked, beside snapshots and other commits.
fn panics_in_a_commit_undo_the_transaction<P: Protocol>(protocol: impl Fn() -> P) {
    let storage = Faulty::default();
    let store = open(protocol(), &storage, &lazy());
    let table = store.kept_table::<Touchy, u32>("touchy").unwrap();
    store.transact(|tx| tx.put(&table, Touchy(1), 0)).unwrap();
    IS_TOUCHY.store(true, Ordering::Relaxed);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                store.snapshot().unwrap();
            }
        });
        scope.spawn(|| {
            let _over = Over(&is_over);
            IS_HERE.set(true);
            for round in 0..200 {
                let both = || {
                    store
                        .transact(|tx| {
                            tx.put(&table, Touchy(7), round)?;
                            tx.put(&table, Touchy(1), 1_000_000)
                        })
                        .unwrap();
                };
                // The second time it is compared with itself in the index, if it is there.
                let _ = catch_unwind(AssertUnwindSafe(both));
                let remove = || store.transact(|tx| tx.remove(&table, &Touchy(7)));
                let _ = catch_unwind(AssertUnwindSafe(remove));
            }
        });
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                store
                    .transact(|tx| tx.update(&table, &Touchy(1), |row| *row += 1))
                    .unwrap();
            }
        });
    });
    store.transact(|tx| tx.put(&table, Touchy(1), 5)).unwrap();
    drop((store, table));
    let store = open(protocol(), &storage, &lazy());
    let table = store.kept_table::<Touchy, u32>("touchy").unwrap();
    let row = store.read_only(|tx| tx.get(&table, &Touchy(1))).unwrap();
    assert_eq!(row, Some(5));
}

/// A row whose serialization runs transactions of the same store.
#[test]
fn transactions_while_a_row_is_encoded() {
    let storage = Faulty::default();
    let store = open(Silo, &storage, &lazy());
    let table = store.kept_table::<Calls, u8>("calls").unwrap();
    let other = store.kept_table::<u8, u8>("other").unwrap();
    let inner = || {
        store
            .transact_durable(|tx| tx.put(&other, 1, 9))
            .unwrap()
            .1
            .wait()
            .unwrap();
    };
    on_serialize(inner, || {
        store.transact(|tx| tx.put(&table, Calls, 1)).unwrap()
    });
    on_serialize(inner, || {
        store.snapshot().unwrap();
    });
    let rows = store.read_only(|tx| Ok((tx.get(&other, &1)?, tx.get(&table, &Calls)?)));
    assert_eq!(rows.unwrap(), (Some(9), Some(1)));
}

/// A row that opens its own table while it is read from disk, and then panics.
#[derive(Debug, Clone, Serialize)]
struct Opens;

static STORE: std::sync::Mutex<Option<std::sync::Weak<Store>>> = std::sync::Mutex::new(None);

impl<'de> Deserialize<'de> for Opens {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <()>::deserialize(deserializer)?;
        let store = STORE.lock().unwrap().take();
        if let Some(store) = store.and_then(|store| store.upgrade()) {
            let again: Result<Table<u8, Self>, _> = store.kept_table("opens");
            assert_eq!(again.unwrap_err(), TableError::Loading("opens".into()));
            assert!(store.table::<u8, u8>("opens").is_err());
            assert!(store.snapshot().is_err());
            panic!("while it was read");
        }
        Ok(Self)
    }
}

#[test]
fn rows_may_use_the_store_while_they_are_loaded() {
    let storage = Faulty::default();
    let store = open(Silo, &storage, &lazy());
    let table = store.kept_table::<u8, Opens>("opens").unwrap();
    store.transact(|tx| tx.put(&table, 1, Opens)).unwrap();
    drop((store, table));
    let store = std::sync::Arc::new(open(Silo, &storage, &lazy()));
    *STORE.lock().unwrap() = Some(std::sync::Arc::downgrade(&store));
    let said = panic_of(|| drop(store.kept_table::<u8, Opens>("opens")));
    assert_eq!(said, "while it was read");
    // The rows were given back.
    let table = store.kept_table::<u8, Opens>("opens").unwrap();
    assert!(store.read_only(|tx| tx.contains(&table, &1)).unwrap());
}

/// A row that panics when it is dropped while a snapshot is made.
#[derive(Debug, Clone)]
struct Bomb(u32);

static IS_ARMED: AtomicBool = AtomicBool::new(false);

impl Drop for Bomb {
    fn drop(&mut self) {
        if IS_ARMED.load(Ordering::Relaxed) {
            panic!("dropped");
        }
    }
}

impl Serialize for Bomb {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        assert!(!IS_ARMED.load(Ordering::Relaxed), "serialized");
        serializer.serialize_u32(self.0)
    }
}

impl<'de> Deserialize<'de> for Bomb {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u32::deserialize(deserializer).map(Self)
    }
}

#[test]
fn panic_of_a_row_in_a_snapshot_drops_no_other_row() {
    let storage = Faulty::default();
    let store = open(Silo, &storage, &lazy());
    let table = store.kept_ordered::<u8, Bomb>("bombs").unwrap();
    for round in 0..40 {
        // Rows that are replaced wait to be dropped.
        for row in 0..16 + round {
            store.transact(|tx| tx.put(&table, 1, Bomb(row))).unwrap();
        }
        IS_ARMED.store(true, Ordering::Relaxed);
        let _ = catch_unwind(AssertUnwindSafe(|| store.snapshot()));
        IS_ARMED.store(false, Ordering::Relaxed);
    }
    store.transact(|tx| tx.put(&table, 1, Bomb(7))).unwrap();
    assert_eq!(store.snapshot().unwrap().entries, 1);
}

/// A row that appends a row to its table when it is put into a snapshot.
#[derive(Debug, Clone)]
struct Appends;

type Log = (std::sync::Weak<Store>, OrderedTable<u64, Appends>);

static LOG: std::sync::Mutex<Option<Log>> = std::sync::Mutex::new(None);

thread_local! {
    static IS_INSIDE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

impl Serialize for Appends {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let log = LOG.lock().unwrap().clone();
        if let Some((store, table)) = log
            && let Some(store) = store.upgrade()
            && !IS_INSIDE.replace(true)
        {
            let append = store.transact(|tx| {
                let last = tx.range_back(&table, .., |&key, _| Break(key))?.unwrap();
                tx.put(&table, last + 1, Self)
            });
            append.unwrap();
            IS_INSIDE.set(false);
        }
        serializer.serialize_unit()
    }
}

impl<'de> Deserialize<'de> for Appends {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <()>::deserialize(deserializer).map(|()| Self)
    }
}

#[test]
fn snapshot_does_not_follow_rows_that_are_appended_for_ever() {
    ends("a snapshot that follows its own rows", || {
        let storage = Faulty::default();
        let store = std::sync::Arc::new(open(Silo, &storage, &lazy()));
        let table = store.kept_ordered::<u64, Appends>("log").unwrap();
        let put = store.transact(|tx| (0..100).try_for_each(|key| tx.put(&table, key, Appends)));
        put.unwrap();
        *LOG.lock().unwrap() = Some((std::sync::Arc::downgrade(&store), table));
        assert_eq!(store.snapshot().unwrap().entries, 100);
        let log = LOG.lock().unwrap().take();
        drop((store, log));
        let store = open(Silo, &storage, &lazy());
        let table = store.kept_ordered::<u64, Appends>("log").unwrap();
        let rows = store.read_only(|tx| tx.rows(&table, ..)).unwrap();
        assert!(rows.into_iter().map(|(key, _)| key).eq(0..200));
    });
}

/// A row that takes 3 MiB of the stack when it is loaded.
#[derive(Debug, Clone, Serialize)]
struct Deep(u8);

impl<'de> Deserialize<'de> for Deep {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[inline(never)]
        fn fill() -> u8 {
            let bytes = [7_u8; 3 << 20];
            std::hint::black_box(&bytes)[1 << 20]
        }
        // Not where it is read back after it was written.
        if std::thread::current().name() == Some("corelay-load") {
            assert_eq!(fill(), 7);
        }
        u8::deserialize(deserializer).map(Self)
    }
}

#[test]
fn rows_are_loaded_on_stacks_as_large_as_those_that_wrote_them() {
    let storage = Faulty::default();
    let store = open(Silo, &storage, &lazy());
    let table = store.kept_table::<u8, Deep>("deep").unwrap();
    store.transact(|tx| tx.put(&table, 1, Deep(2))).unwrap();
    drop((store, table));
    let store = open(Silo, &storage, &lazy());
    let table = store.kept_table::<u8, Deep>("deep").unwrap();
    let row = store.read_only(|tx| tx.get(&table, &1)).unwrap();
    assert_eq!(row.map(|row| row.0), Some(2));
}
