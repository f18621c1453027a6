//! Views of a transaction while others commit. They run inside its closure, so each order of events
//! is certain.

use corelay_clock::{Clock, Logical, Order, Time};
use corelay_txn::store::{Abort, Isolation, Mvcc, Occ, Protocol, Silo, Store, Table, TicToc, Tx};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Runs a body with a store of every protocol.
macro_rules! by_every_protocol {
    ($($name:ident),* $(,)?) => {$(
        mod $name {
            use super::*;
            #[test]
            fn silo() { super::$name(&Store::new(Silo)); }
            #[test]
            fn tictoc() { super::$name(&Store::new(TicToc)); }
            #[test]
            fn occ() { super::$name(&Store::new(Occ::new(Logical::new()))); }
            #[test]
            fn mvcc() { super::$name(&Store::new(Mvcc::new(Logical::new()))); }
        }
    )*};
}
by_every_protocol!(
    a_torn_view_is_not_reported,
    a_row_that_is_updated_and_another_are_seen_at_one_moment,
    insertions_are_seen_at_one_moment,
    removals_are_seen_at_one_moment,
    a_row_that_comes_and_goes_is_not_missed,
    a_slower_commit_that_fails_leaves_a_row_readable,
);

/// Returns true at the first call.
fn once(done: &Cell<bool>) -> bool {
    !done.replace(true)
}

fn add<P: Protocol>(store: &Store<P>, rows: &Table<u64, u64>) {
    let add = |tx: &mut Tx<'_, P>| {
        for key in [1, 2] {
            tx.update(rows, &key, |row| *row += 1)?;
        }
        Ok(())
    };
    store.transact(add).unwrap();
}

fn two_rows<P: Protocol>(store: &Store<P>) -> Table<u64, u64> {
    let rows = store.table("rows").unwrap();
    let put = |tx: &mut Tx<'_, P>| [1, 2].into_iter().try_for_each(|key| tx.put(&rows, key, 0));
    store.transact(put).unwrap();
    rows
}

#[derive(Debug)]
#[expect(dead_code, reason = "printed when a test fails")]
enum Seen {
    Torn(u64, u64),
    Abort,
}

impl From<Abort> for Seen {
    fn from(_: Abort) -> Self {
        Self::Abort
    }
}

/// An error that the closure makes of a view that never existed is not returned, but the closure run
/// again; also if it writes what it has read.
fn a_torn_view_is_not_reported<P: Protocol>(store: &Store<P>) {
    let rows = two_rows(store);
    let done = Cell::new(false);
    let seen: Result<(), Seen> = store.try_transact(|tx| {
        let mut one = 0;
        tx.update(&rows, &1, |row| one = *row)?;
        if once(&done) {
            add(store, &rows);
        }
        let other = tx.get(&rows, &2)?.unwrap();
        if one == other {
            Ok(())
        } else {
            Err(Seen::Torn(one, other))
        }
    });
    seen.unwrap();
}

fn a_row_that_is_updated_and_another_are_seen_at_one_moment<P: Protocol>(store: &Store<P>) {
    let rows = two_rows(store);
    let done = Cell::new(false);
    store
        .transact(|tx| {
            let mut one = 0;
            tx.update(&rows, &1, |row| one = *row)?;
            if once(&done) {
                add(store, &rows);
            }
            assert_eq!(Some(one), tx.get(&rows, &2)?);
            Ok(())
        })
        .unwrap();
}

fn insertions_are_seen_at_one_moment<P: Protocol>(store: &Store<P>) {
    let rows: Table<u64, u64> = store.table("rows").unwrap();
    let done = Cell::new(false);
    let look = |tx: &mut Tx<'_, P>| {
        let one = tx.get(&rows, &1)?;
        if once(&done) {
            let insert = |tx: &mut Tx<'_, P>| {
                tx.insert(&rows, 1, 1)?;
                tx.insert(&rows, 2, 1)
            };
            store.transact(insert).unwrap();
        }
        assert_eq!(one, tx.get(&rows, &2)?);
        Ok(())
    };
    store.transact(look).unwrap();
}

fn removals_are_seen_at_one_moment<P: Protocol>(store: &Store<P>) {
    let rows = two_rows(store);
    let done = Cell::new(false);
    let look = |tx: &mut Tx<'_, P>| {
        let one = tx.get(&rows, &1)?;
        if once(&done) {
            let remove = |tx: &mut Tx<'_, P>| {
                tx.remove(&rows, &1)?;
                tx.remove(&rows, &2)
            };
            store.transact(remove).unwrap();
        }
        assert_eq!(one, tx.get(&rows, &2)?);
        Ok(())
    };
    store.transact(look).unwrap();
}

/// A row comes with a mark of 1 and goes with a mark of 2: nobody sees a mark of 1 without the row.
fn a_row_that_comes_and_goes_is_not_missed<P: Protocol>(store: &Store<P>) {
    let rows: Table<u64, u64> = store.table("rows").unwrap();
    let marks: Table<u64, u64> = store.table("marks").unwrap();
    store.transact(|tx| tx.put(&marks, 0, 0)).unwrap();
    for read_only in [false, true] {
        let (come, gone) = (Cell::new(false), Cell::new(false));
        let look = |tx: &mut Tx<'_, P>| {
            let row = tx.get(&rows, &1)?;
            if once(&come) {
                let come = |tx: &mut Tx<'_, P>| {
                    tx.insert(&rows, 1, 1)?;
                    tx.put(&marks, 0, 1)
                };
                store.transact(come).unwrap();
            }
            let mark = tx.get(&marks, &0)?.unwrap();
            if once(&gone) {
                let go = |tx: &mut Tx<'_, P>| {
                    tx.remove(&rows, &1)?;
                    tx.put(&marks, 0, 2)
                };
                store.transact(go).unwrap();
            }
            Ok((row, mark))
        };
        let seen = if read_only {
            store.read_only(look)
        } else {
            store.transact(look)
        };
        let (row, mark) = seen.unwrap();
        assert_eq!(row.is_some(), mark == 1, "{row:?} and the mark {mark}");
    }
}

/// A commit that is given up at its check leaves the rows as they were, for readers and writers.
fn a_slower_commit_that_fails_leaves_a_row_readable<P: Protocol>(store: &Store<P>) {
    let rows = two_rows(store);
    let done = Cell::new(false);
    let slow = |tx: &mut Tx<'_, P>| {
        let other = tx.get(&rows, &2)?.unwrap();
        if once(&done) {
            store.transact(|tx| tx.put(&rows, 2, 7))?;
        }
        tx.update(&rows, &1, |row| *row += other)
    };
    store.transact(slow).unwrap();
    for _ in 0..3 {
        let sum = |tx: &mut Tx<'_, P>| {
            let one = tx.get(&rows, &1)?.unwrap();
            tx.put(&rows, 2, one)?;
            Ok(one)
        };
        assert_eq!(store.transact(sum).unwrap(), 7);
        assert_eq!(store.read_only(|tx| tx.get(&rows, &1)).unwrap(), Some(7));
    }
}

/// Runs a transaction that reads row 1, then updates row 2; before the update another one writes
/// the row `meanwhile`. Returns the row that was read, and how many attempts were given up.
fn reads_one_updates_two(isolation: Isolation, meanwhile: u64) -> (u64, u64) {
    let store = Store::new(Mvcc::with_isolation(Logical::new(), isolation));
    let rows = two_rows(&store);
    let done = Cell::new(false);
    let slow = |tx: &mut Tx<'_, _>| {
        let one = tx.get(&rows, &1)?.unwrap();
        if once(&done) {
            store.transact(|tx| tx.put(&rows, meanwhile, 7))?;
        }
        tx.update(&rows, &2, |row| *row += 1)?;
        Ok(one)
    };
    let one = store.transact(slow).unwrap();
    let two = store.read_only(|tx| tx.get(&rows, &2)).unwrap();
    assert_eq!(two, Some(if meanwhile == 2 { 8 } else { 1 }));
    (one, store.report().aborts.conflicts())
}

#[test]
fn a_transaction_that_writes_moves_its_time_past_a_newer_row() {
    assert_eq!(reads_one_updates_two(Isolation::Serializable, 2), (0, 0));
    assert_eq!(
        reads_one_updates_two(Isolation::StrictlySerializable, 2),
        (0, 0)
    );
}

#[test]
fn a_transaction_whose_reads_are_no_longer_so_is_given_up_once() {
    assert_eq!(reads_one_updates_two(Isolation::Serializable, 1), (7, 1));
}

#[test]
fn of_two_that_write_a_row_the_first_committer_wins_under_snapshot_isolation() {
    assert_eq!(reads_one_updates_two(Isolation::Snapshot, 2), (0, 1));
}

/// A transaction that has read what was replaced since stays at its time, and commits if it writes
/// nothing; its failed look at its reads counts nowhere.
#[test]
fn a_transaction_that_turns_out_to_write_nothing_is_never_given_up() {
    let store = Store::new(Mvcc::new(Logical::new()));
    let rows = two_rows(&store);
    let look = |tx: &mut Tx<'_, _>| {
        let one = tx.get(&rows, &1)?;
        add(&store, &rows);
        assert_eq!(one, tx.get(&rows, &2)?);
        Ok(())
    };
    store.transact(look).unwrap();
    assert_eq!(store.report().aborts.conflicts(), 0);
    assert_eq!(store.report().tables[0].aborts.conflicts(), 0);
}

/// A row that was written blindly need not be what it was when the transaction began.
#[test]
fn a_row_that_is_written_without_a_look_stands_in_nobodys_way() {
    let store = Store::new(Mvcc::new(Logical::new()));
    let rows = two_rows(&store);
    let blind = |tx: &mut Tx<'_, _>| {
        tx.put(&rows, 1, 10)?;
        store.transact(|tx| tx.put(&rows, 1, 7))
    };
    store.transact(blind).unwrap();
    assert_eq!(store.read_only(|tx| tx.get(&rows, &1)).unwrap(), Some(10));
    assert_eq!(store.report().aborts.conflicts(), 0);
}

/// A clock whose reading cores are ahead by as much as the test says, up to the boundary.
#[derive(Default)]
struct Manual {
    truth: AtomicU64,
    ahead: AtomicI64,
    waited: AtomicBool,
    on_wait: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

const BOUNDARY: u64 = 100;

#[derive(Clone, Default)]
struct Shared(Arc<Manual>);

impl Shared {
    fn set_ahead(&self, ahead: i64) {
        self.0.ahead.store(ahead, Ordering::Relaxed);
    }
}

impl Clock for Shared {
    /// In no order to what is around it: drawn earlier.
    fn now(&self) -> Time {
        Time::from_raw(self.read_time().raw() - BOUNDARY)
    }
    fn read_time(&self) -> Time {
        let truth = self.0.truth.fetch_add(1, Ordering::Relaxed) + 10 * BOUNDARY;
        Time::from_raw(truth.saturating_add_signed(self.0.ahead.load(Ordering::Relaxed)))
    }
    fn commit_time(&self, floor: Time) -> Time {
        self.after(floor)
    }
    fn after(&self, t: Time) -> Time {
        loop {
            let time = self.read_time();
            if self.is_before(t, time) {
                return time;
            }
        }
    }
    fn wait_out(&self, t: Time) {
        if let Some(hook) = self.0.on_wait.get()
            && !self.0.waited.swap(true, Ordering::Relaxed)
        {
            hook();
        }
        self.after(t);
    }
    fn cmp(&self, a: Time, b: Time) -> Order {
        if a.raw() + BOUNDARY < b.raw() {
            Order::Before
        } else if b.raw() + BOUNDARY < a.raw() {
            Order::After
        } else {
            Order::Uncertain
        }
    }
    fn boundary(&self) -> u64 {
        BOUNDARY
    }
}

/// The floor of a commit's time is drawn after its locks, by a draw that waits for them.
#[test]
fn a_commit_is_later_than_readers_that_have_begun_on_a_clock_that_is_ahead() {
    let clock = Shared::default();
    let store = Store::new(Mvcc::new(clock.clone()));
    let rows = two_rows(&store);
    clock.set_ahead(BOUNDARY as i64);
    store
        .read_only(|tx| {
            let one = tx.get(&rows, &1)?;
            clock.set_ahead(0);
            add(&store, &rows);
            assert_eq!(one, tx.get(&rows, &2)?);
            Ok(())
        })
        .unwrap();
}

/// A transaction has read what a commit wrote that has not answered yet. One that begins after it
/// sees that, too.
#[test]
fn strictly_serializable_readers_are_in_real_time_order() {
    let clock = Shared::default();
    let mvcc = Mvcc::with_isolation(clock.clone(), Isolation::StrictlySerializable);
    let store = Arc::new(Store::new(mvcc));
    let rows = two_rows(&store);
    let hook = {
        // Weak, both: the clock has the hook.
        let (clock, store) = (Arc::downgrade(&clock.0), Arc::downgrade(&store));
        let rows = rows.clone();
        move || {
            let store = store.upgrade().unwrap();
            let look = || store.read_only(|tx| tx.get(&rows, &1)).unwrap().unwrap();
            let first = look();
            Shared(clock.upgrade().unwrap()).set_ahead(0);
            let second = look();
            assert!(first <= second, "{first}, then {second}");
            assert_eq!(first, 1, "the test tests nothing");
        }
    };
    assert!(clock.0.on_wait.set(Box::new(hook)).is_ok());
    clock.0.waited.store(false, Ordering::Relaxed);
    clock.set_ahead(BOUNDARY as i64);
    add(&store, &rows);
    assert!(clock.0.waited.load(Ordering::Relaxed));
}
