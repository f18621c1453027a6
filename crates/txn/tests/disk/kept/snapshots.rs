//! Snapshots of a store, made while transactions go on.

use super::{Over, by_every_protocol, ends, open, ordered_rows, rows_of};
use crate::faulty::Faulty;
use crate::history::lazy;
use corelay_txn::store::disk::{Options, Storage, StorageFile};
use corelay_txn::store::{Protocol, Silo, SnapshotError, Store};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

by_every_protocol![
    snapshots_go_on_beside_writers,
    snapshots_have_what_nobody_opened,
    loads_and_snapshots_keep_no_memory,
    tables_are_made_and_opened_beside_snapshots,
];

/// Each transaction moves one from a row to another, in both kinds of tables, whose sums are known.
fn snapshots_go_on_beside_writers<P: Protocol>(protocol: impl Fn() -> P) {
    const ROWS: u64 = 3_000;
    let options = Options {
        segment_size: 16 << 10,
        ..lazy()
    };
    let storage = Faulty::default();
    let store = open(protocol(), &storage, &options);
    let hashed = store.kept_table::<u64, i64>("hashed").unwrap();
    let ordered = store.kept_ordered::<u64, i64>("ordered").unwrap();
    let is_over = AtomicBool::new(false);
    let mut image = None;
    std::thread::scope(|scope| {
        for thread in 0..2_u64 {
            let (store, hashed, ordered, is_over) = (&store, &hashed, &ordered, &is_over);
            scope.spawn(move || {
                let mut random = thread;
                while !is_over.load(Ordering::Relaxed) {
                    random = random
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    let (from, to) = ((random >> 33) % ROWS, (random >> 45) % ROWS);
                    let moved = store.transact_durable(|tx| {
                        // A row of nothing is removed, so rows come and go.
                        for (key, by) in [(from, -1), (to, 1)] {
                            let left = tx.get(hashed, &key)?.unwrap_or(0) + by;
                            assert_eq!(tx.get(ordered, &key)?.unwrap_or(0) + by, left);
                            if left == 0 {
                                tx.remove(hashed, &key)?;
                                tx.remove(ordered, &key)?;
                            } else {
                                tx.put(hashed, key, left)?;
                                tx.put(ordered, key, left)?;
                            }
                        }
                        Ok(())
                    });
                    let (_, durable) = moved.unwrap();
                    if random.is_multiple_of(16) {
                        durable.wait().unwrap();
                    }
                }
            });
        }
        let _over = Over(&is_over);
        while store.report().commits < 100 {
            std::thread::yield_now();
        }
        let snapshots = 6 * crate::stress();
        for round in 0..snapshots {
            let report = store.snapshot().unwrap();
            assert!(report.entries > 0, "nothing was moved");
            if round == snapshots / 2 {
                image = Some(storage.image());
            }
        }
    });
    drop((store, hashed, ordered));
    for image in [image.unwrap(), storage.image()] {
        let store = open(protocol(), &Faulty::new(&image), &options);
        assert!(store.recovered().unwrap().snapshot.is_some());
        let hashed = store.kept_ordered::<u64, i64>("hashed").unwrap();
        let ordered = store.kept_ordered::<u64, i64>("ordered").unwrap();
        let (left, right) = store
            .read_only(|tx| Ok((tx.rows(&hashed, ..)?, tx.rows(&ordered, ..)?)))
            .unwrap();
        assert_eq!(left, right);
        assert_eq!(left.iter().map(|(_, row)| row).sum::<i64>(), 0);
        assert!(!left.is_empty());
    }
}

fn snapshots_have_what_nobody_opened<P: Protocol>(protocol: impl Fn() -> P) {
    let storage = Faulty::default();
    let store = open(protocol(), &storage, &lazy());
    let left = store.kept_table::<u8, u32>("left").unwrap();
    let right = store.kept_ordered::<u8, u32>("right").unwrap();
    let put = store.transact(|tx| {
        tx.put(&left, 1, 1)?;
        tx.put(&right, 2, 2)
    });
    put.unwrap();
    drop((store, left, right));
    for number in 3..6 {
        let store = open(protocol(), &storage, &lazy());
        let left = store.kept_table::<u8, u32>("left").unwrap();
        store.transact(|tx| tx.put(&left, number, 0)).unwrap();
        let report = store.snapshot().unwrap();
        // Those of `left`, and the one of `right`.
        assert_eq!(report.entries, u64::from(number));
    }
    let store = open(protocol(), &storage, &lazy());
    let left = store.kept_ordered::<u8, u32>("left").unwrap();
    let right = store.kept_table::<u8, u32>("right").unwrap();
    assert_eq!(ordered_rows(&store, &left).len(), 4);
    assert_eq!(rows_of(&store, &right), [(2, 2)].into());
}

#[test]
fn one_snapshot_at_a_time() {
    let storage = Faulty::default();
    let store = open(Silo, &storage, &lazy());
    let again = std::thread::scope(|scope| {
        let hold = || {
            // A second one begins while rows are serialized for the first.
            let table = store
                .kept_table::<super::users_code::Calls, u8>("calls")
                .unwrap();
            let put = store.transact(|tx| tx.put(&table, super::users_code::Calls, 1));
            put.unwrap();
            let mut second = None;
            super::users_code::on_serialize(
                || second = Some(store.snapshot()),
                || {
                    store.snapshot().unwrap();
                },
            );
            second.unwrap()
        };
        scope.spawn(hold).join().unwrap()
    });
    assert!(matches!(again, Err(SnapshotError::Busy)));
}

fn loads_and_snapshots_keep_no_memory<P: Protocol>(protocol: impl Fn() -> P) {
    const UPDATES: u64 = 20_000;
    let storage = Faulty::default();
    let store = open(protocol(), &storage, &lazy());
    let table = store.kept_ordered::<u64, [u64; 16]>("rows").unwrap();
    let put = store.transact(|tx| (0..500).try_for_each(|key| tx.put(&table, key, [0; 16])));
    put.unwrap();
    drop((store, table));
    let store = open(protocol(), &storage, &lazy());
    let table = store.kept_table::<u64, [u64; 16]>("rows").unwrap();
    store.snapshot().unwrap();
    for number in 0..UPDATES {
        let update = store.transact(|tx| tx.update(&table, &(number % 500), |row| row[0] += 1));
        assert!(update.unwrap());
    }
    let kept = store.report().old_versions;
    let written = UPDATES * size_of::<[u64; 16]>() as u64;
    assert!(kept < written / 4, "{kept} of {written} bytes are kept");
}

/// A storage that stops twice at a barrier, before and after the first piece of a snapshot is written.
struct Stops {
    storage: Faulty,
    barrier: Arc<Barrier>,
}

struct StopsOnce {
    file: Box<dyn StorageFile>,
    barrier: Option<Arc<Barrier>>,
}

impl Storage for Stops {
    fn list(&self) -> io::Result<Vec<String>> {
        self.storage.list()
    }

    fn open(&self, name: &str) -> io::Result<(Box<dyn Read + Send>, u64)> {
        self.storage.open(name)
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        let file = self.storage.create(name)?;
        let barrier = name
            .starts_with("snapshot")
            .then(|| Arc::clone(&self.barrier));
        Ok(Box::new(StopsOnce { file, barrier }))
    }

    fn mend(&self, name: &str, offset: u64, tail: &[u8]) -> io::Result<()> {
        self.storage.mend(name, offset, tail)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.storage.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.storage.remove(name)
    }

    fn sync(&self) -> io::Result<()> {
        self.storage.sync()
    }
}

impl StorageFile for StopsOnce {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let barrier = self.barrier.take_if(|_| bytes.len() > 1 << 20);
        if let Some(barrier) = barrier {
            barrier.wait();
            barrier.wait();
        }
        self.file.append(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync()
    }
}

/// The rows that nobody has opened take a while to be written. Tables are made and opened meanwhile,
/// and rows removed.
#[test]
fn tables_are_opened_while_a_snapshot_writes() {
    ends("opening a table beside a snapshot", || {
        let storage = Faulty::default();
        let store = open(Silo, &storage, &lazy());
        let table = store.kept_table::<u8, Vec<u8>>("rows").unwrap();
        for key in 0..4 {
            let put = store.transact(|tx| tx.put(&table, key, vec![key; 600 << 10]));
            put.unwrap();
        }
        drop((store, table));
        let barrier = Arc::new(Barrier::new(2));
        let stops = Stops {
            storage: storage.clone(),
            barrier: Arc::clone(&barrier),
        };
        let store = Store::open_in(Silo, Arc::new(stops), &lazy()).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| assert_eq!(store.snapshot().unwrap().entries, 4));
            barrier.wait();
            store.table::<u8, u8>("cache").unwrap();
            let table = store.kept_ordered::<u8, Vec<u8>>("rows").unwrap();
            let new = store.kept_table::<u8, u8>("new").unwrap();
            let change = store.transact(|tx| {
                for key in 0..3 {
                    assert!(tx.remove(&table, &key)?);
                }
                tx.put(&new, 1, 1)
            });
            change.unwrap();
            barrier.wait();
        });
        drop(store);
        let store = open(Silo, &storage, &lazy());
        assert!(store.recovered().unwrap().snapshot.is_some());
        let table = store.kept_ordered::<u8, Vec<u8>>("rows").unwrap();
        let new = store.kept_table::<u8, u8>("new").unwrap();
        let rows = store.read_only(|tx| {
            let rows = tx.rows(&table, ..)?;
            Ok((rows, tx.get(&new, &1)?))
        });
        assert_eq!(rows.unwrap(), (vec![(3, vec![3; 600 << 10])], Some(1)));
    });
}

/// Snapshots go on while tables are opened, changed, and made. Every image in between opens, too.
fn tables_are_made_and_opened_beside_snapshots<P: Protocol>(protocol: impl Fn() -> P) {
    const TABLES: u8 = 12;
    let options = Options {
        epoch_interval: Duration::ZERO,
        segment_size: 4096,
        ..Options::default()
    };
    let name = |number: u8| format!("table {number}");
    for round in 0..4 * crate::stress() {
        let storage = Faulty::default();
        let store = open(protocol(), &storage, &options);
        for number in 0..TABLES {
            let table = store.kept_table::<u8, u32>(&name(number)).unwrap();
            let put = store.transact(|tx| (0..20).try_for_each(|key| tx.put(&table, key, 1)));
            put.unwrap();
        }
        if round % 2 == 0 {
            store.snapshot().unwrap();
        }
        drop(store);
        let store = open(protocol(), &storage, &options);
        let is_over = AtomicBool::new(false);
        let images = std::thread::scope(|scope| {
            let (store, is_over, name) = (&store, &is_over, &name);
            let opener = scope.spawn(move || {
                let _over = Over(is_over);
                for number in 0..2 * TABLES {
                    let table = store.kept_ordered::<u8, u32>(&name(number)).unwrap();
                    let (_, durable) = store
                        .transact_durable(|tx| {
                            for key in 0..10 {
                                assert_eq!(tx.remove(&table, &key)?, number < TABLES);
                            }
                            tx.put(&table, 15, 2)?;
                            tx.put(&table, 30, 3)
                        })
                        .unwrap();
                    durable.wait().unwrap();
                }
            });
            let snapshots = scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    match store.snapshot() {
                        Ok(_) | Err(SnapshotError::Busy) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
            let mut images = Vec::new();
            while !is_over.load(Ordering::Relaxed) && images.len() < 20 {
                images.push(storage.image());
                std::thread::sleep(Duration::from_millis(1));
            }
            opener.join().unwrap();
            snapshots.join().unwrap();
            images
        });
        drop(store);
        let old = (0..20).map(|key| (key, 1)).collect::<BTreeMap<_, _>>();
        for (number, image) in images.iter().chain([&storage.image()]).enumerate() {
            let store = open(protocol(), &Faulty::new(image), &options);
            let mut changed = 0;
            for table in 0..2 * TABLES {
                let table_of = store.kept_ordered::<u8, u32>(&name(table)).unwrap();
                let rows = ordered_rows(&store, &table_of);
                let before = if table < TABLES {
                    old.clone()
                } else {
                    BTreeMap::new()
                };
                let mut new = before.clone();
                new.retain(|key, _| *key >= 10);
                new.extend([(15, 2), (30, 3)]);
                if rows == new {
                    // One after the other, and all before it.
                    assert_eq!(changed, table, "image {number}");
                    changed += 1;
                } else {
                    assert_eq!(rows, before, "image {number}, table {table}");
                }
            }
            if number == images.len() {
                assert_eq!(changed, 2 * TABLES);
            }
        }
    }
}
