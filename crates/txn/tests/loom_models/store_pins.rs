//! The store's memory under loom: what a transaction can reach is not freed.

use crate::model_rows::{Rows, rows};
use crate::store_views::model;
use corelay_clock::{Clock, Logical, Skewed, SkewedBuilder};
use corelay_txn::store::{Mvcc, Protocol, Reason, Silo, Store};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

/// A value whose reads and whose end loom checks.
struct Checked(UnsafeCell<u64>);

// SAFETY: it is written when it is made, and when it is dropped.
unsafe impl Sync for Checked {}
// SAFETY: nothing in it belongs to a thread.
unsafe impl Send for Checked {}

impl Checked {
    fn new(value: u64) -> Self {
        Self(UnsafeCell::new(value))
    }

    fn get(&self) -> u64 {
        // SAFETY: only the end writes it; loom checks that there is no race with it.
        self.0.with(|value| unsafe { *value })
    }
}

impl Drop for Checked {
    fn drop(&mut self) {
        // SAFETY: nobody else has it; loom checks that.
        self.0.with_mut(|value| unsafe { *value = u64::MAX });
    }
}

struct World<P: Protocol> {
    store: Store<P>,
    rows: Rows<Checked>,
}

impl<P: Protocol> World<P> {
    fn new(protocol: P) -> Arc<Self> {
        Self::of(Store::new(protocol))
    }

    fn of(store: Store<P>) -> Arc<Self> {
        let rows = rows(&store);
        Arc::new(Self { store, rows })
    }

    fn put(&self, value: u64) {
        self.store
            .transact(|tx| tx.put(&self.rows, 1, Checked::new(value)))
            .unwrap();
    }

    fn get(&self) -> Option<u64> {
        self.store
            .read_only(|tx| tx.with(&self.rows, &1, Checked::get))
            .unwrap()
    }
}

/// Two commits advance the epoch twice, beside a reader: only what it cannot reach is freed.
#[test]
fn what_a_reader_has_found_is_not_freed() {
    model(|| {
        let world = World::new(Silo);
        world.put(0);
        let reader = {
            let world = Arc::clone(&world);
            thread::spawn(move || world.get())
        };
        for value in 1..=3 {
            world.put(value);
        }
        assert!(reader.join().unwrap().is_some_and(|value| value <= 3));
    });
}

/// The slot's next transaction, on another thread, does not hide that the one before has ended.
#[test]
fn a_slot_that_is_claimed_again_frees_in_order() {
    model(|| {
        let world = World::new(Silo);
        world.put(0);
        let reader = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                world.get();
                world.get()
            })
        };
        world.put(1);
        world.put(2);
        assert!(reader.join().unwrap().is_some());
    });
}

/// Records leave the index and are freed beside a reader.
#[test]
fn a_record_that_a_reader_has_found_is_not_freed() {
    model(|| {
        let world = World::new(Silo);
        world.put(0);
        let reader = {
            let world = Arc::clone(&world);
            thread::spawn(move || world.get())
        };
        world
            .store
            .transact(|tx| tx.remove(&world.rows, &1))
            .unwrap();
        world.put(1);
        world.put(2);
        reader.join().unwrap();
    });
}

/// The first transactions of a store, at the same time: each finds its slot.
#[test]
fn the_first_slots_are_there() {
    model(|| {
        let store = Arc::new(Store::new(Silo));
        let begin = |store: &Store<Silo>| store.read_only(|_| Ok(())).unwrap();
        let other = {
            let store = Arc::clone(&store);
            thread::spawn(move || begin(&store))
        };
        begin(&store);
        other.join().unwrap();
    });
}

/// A reader draws its time while commits look for the oldest, and cut versions off: it finds a row.
fn a_reader_that_begins_finds_its_version<C: Clock + 'static>(clock: fn() -> C) {
    model(move || {
        let world = World::new(Mvcc::new(clock()));
        world.put(0);
        let reader = {
            let world = Arc::clone(&world);
            thread::spawn(move || world.get())
        };
        world.put(1);
        world.put(2);
        assert!(reader.join().unwrap().is_some_and(|value| value <= 2));
    });
}

#[test]
fn a_reader_that_begins_finds_its_version_by_logical() {
    a_reader_that_begins_finds_its_version(Logical::new);
}

#[test]
fn a_reader_that_begins_finds_its_version_by_skewed() {
    fn skewed() -> Skewed {
        SkewedBuilder {
            skew: 1,
            step: 2,
            boundary: 3,
            delay: 1,
        }
        .build()
    }
    a_reader_that_begins_finds_its_version(skewed);
}

/// A transaction is refused while it sleeps, or it reads what was not freed: never both.
fn a_refused_transaction_touches_nothing<P: Protocol>(protocol: fn() -> P) {
    model(move || {
        let world = World::of(Store::new(protocol()).with_old_versions(0));
        world.put(0);
        let sleeper = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                world.store.read_only(|tx| {
                    tx.with(&world.rows, &1, Checked::get)?;
                    tx.with(&world.rows, &1, Checked::get)
                })
            })
        };
        // The sleeper is suspected, refused, and then what it has seen is freed.
        for value in 1..=4 {
            world.put(value);
        }
        match sleeper.join().unwrap() {
            Ok(row) => assert!(row.is_some_and(|value| value <= 4)),
            Err(abort) => assert_eq!(abort.reason(), Reason::Refused),
        }
    });
}

#[test]
#[ignore = "takes longer than the gate has"]
fn a_refused_transaction_touches_nothing_by_silo() {
    a_refused_transaction_touches_nothing(|| Silo);
}

#[test]
#[ignore = "takes longer than the gate has"]
fn a_refused_transaction_touches_nothing_by_mvcc() {
    a_refused_transaction_touches_nothing(|| Mvcc::new(Logical::new()));
}
