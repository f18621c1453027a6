//! The store's protocols under loom: what transactions may see of each other.
//!
//! Closures of protocols that are opaque (`occ`, `mvcc`) assert by themselves, so that attempts which
//! are given up are judged, too. Otherwise the answers are judged.
//!
//! The models' hash index has one segment, waiters look once, and a commit tries to advance the
//! epoch each time.

use crate::model_rows::{Rows, rows};
use corelay_clock::{Logical, Skewed, SkewedBuilder};
use corelay_txn::store::{
    Isolation, Mvcc, Occ, OrderedTable, Protocol, Result, Silo, Store, TicToc, Tx,
};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

/// As `loom::model`, with room for attempts that are run again.
pub(crate) fn model(f: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 10_000;
    builder.check(f);
}

const X: u64 = 1;
const Y: u64 = 2;
const Z: u64 = 3;

struct World<P: Protocol> {
    store: Store<P>,
    rows: Rows<u64>,
    /// A word stored to between a transaction's steps. Loom branches off where threads write to one
    /// word; a reader's loads would cause no branch.
    between: AtomicUsize,
}

impl<P: Protocol> World<P> {
    /// A store with rows of 0.
    fn with(protocol: P, keys: &[u64]) -> Arc<Self> {
        Self::of(Store::new(protocol), keys)
    }

    fn of(store: Store<P>, keys: &[u64]) -> Arc<Self> {
        let rows = rows(&store);
        let world = Self {
            store,
            rows,
            between: AtomicUsize::new(0),
        };
        if !keys.is_empty() {
            world.transact(|tx| keys.iter().try_for_each(|key| tx.put(&world.rows, *key, 0)));
        }
        Arc::new(world)
    }

    fn transact<R>(&self, f: impl FnMut(&mut Tx<'_, P>) -> Result<R>) -> R {
        self.store.transact(f).unwrap()
    }

    /// Lets another thread run here.
    fn pause(&self) {
        // Relaxed: it orders nothing.
        self.between.store(0, Ordering::Relaxed);
    }

    /// The row of a key, or 0.
    fn row(&self, tx: &mut Tx<'_, P>, key: u64) -> Result<u64> {
        Ok(tx.get(&self.rows, &key)?.unwrap_or(0))
    }

    /// Adds one to both rows.
    fn step(&self) {
        self.transact(|tx| {
            tx.update(&self.rows, &X, |row| *row += 1)?;
            tx.update(&self.rows, &Y, |row| *row += 1)
        });
    }

    /// The row of a key, as of now: by a transaction that writes. One that only reads is at a time of its
    /// own under `mvcc`.
    fn last(&self, key: u64) -> Option<u64> {
        self.transact(|tx| {
            tx.put(&self.rows, 9, 9)?;
            tx.get(&self.rows, &key)
        })
    }

    /// Both rows.
    fn look(&self, is_opaque: bool, first: u64, second: u64) -> (u64, u64) {
        let pair = self.transact(|tx| {
            let a = self.row(tx, first)?;
            self.pause();
            let b = self.row(tx, second)?;
            assert!(a == b || !is_opaque, "torn: {a} {b}");
            Ok((a, b))
        });
        assert_eq!(pair.0, pair.1, "torn");
        pair
    }
}

fn spawn<P: Protocol, R: 'static>(
    world: &Arc<World<P>>,
    f: impl FnOnce(&World<P>) -> R + 'static,
) -> thread::JoinHandle<R> {
    let world = Arc::clone(world);
    thread::spawn(move || f(&world))
}

/// A clock within its boundary: two threads' readings differ by 1, with steps of 2.
fn skewed() -> Skewed {
    SkewedBuilder {
        skew: 1,
        step: 2,
        boundary: 3,
        delay: 1,
    }
    .build()
}

/// A clock beyond its boundary.
fn wrong() -> Skewed {
    SkewedBuilder {
        skew: 40,
        step: 1,
        boundary: 0,
        delay: 0,
    }
    .build()
}

fn occ_wrong() -> Occ<Skewed> {
    Occ::new(wrong())
}

fn mvcc_wrong() -> Mvcc<Skewed> {
    Mvcc::new(wrong())
}

fn snapshot() -> Mvcc<Logical> {
    Mvcc::with_isolation(Logical::new(), Isolation::Snapshot)
}

/// Runs each body by every protocol; those of `exact` not with a clock that is uncertain.
macro_rules! by_every_protocol {
    (all: [$($all:ident),*], exact: [$($exact:ident),*]) => {
        mod silo {
            use super::*;
            $(#[test] fn $all() { super::$all(|| Silo, false); })*
            $(#[test] fn $exact() { super::$exact(|| Silo, false); })*
        }
        mod tictoc {
            use super::*;
            $(#[test] fn $all() { super::$all(|| TicToc, false); })*
            $(#[test] fn $exact() { super::$exact(|| TicToc, false); })*
        }
        mod occ_logical {
            use super::*;
            $(#[test] fn $all() { super::$all(|| Occ::new(Logical::new()), true); })*
            $(#[test] fn $exact() { super::$exact(|| Occ::new(Logical::new()), true); })*
        }
        mod occ_skewed {
            use super::*;
            $(#[test] fn $all() { super::$all(|| Occ::new(skewed()), true); })*
        }
        mod mvcc_logical {
            use super::*;
            $(#[test] fn $all() { super::$all(|| Mvcc::new(Logical::new()), true); })*
            $(#[test] fn $exact() { super::$exact(|| Mvcc::new(Logical::new()), true); })*
        }
        mod mvcc_skewed {
            use super::*;
            $(#[test] fn $all() { super::$all(|| Mvcc::new(skewed()), true); })*
        }
    };
}
by_every_protocol!(
    all: [
        nothing_is_lost,
        no_write_skew,
        a_commit_is_seen_as_a_whole,
        a_reader_completes_the_order,
        no_phantom_of_two_ranges,
        a_row_that_comes_and_goes_is_not_missed,
        one_key_is_inserted_once
    ],
    // An uncertain clock makes too many executions of it.
    exact: [no_phantom_of_two_inserts]
);

type Make<P> = fn() -> P;

fn nothing_is_lost<P: Protocol>(make: Make<P>, _: bool) {
    model(move || {
        let world = World::with(make(), &[X]);
        let add = |world: &World<P>| {
            world.transact(|tx| tx.update(&world.rows, &X, |row| *row += 1));
        };
        let other = spawn(&world, add);
        add(&world);
        other.join().unwrap();
        assert_eq!(world.last(X), Some(2));
    });
}

/// Each reads the row that the other writes. Returns whether both found it 0.
fn write_skew<P: Protocol>(make: Make<P>) -> bool {
    let world = World::with(make(), &[X, Y]);
    let set_if_free = |world: &World<P>, mine, theirs| {
        world.transact(|tx| {
            let is_free = world.row(tx, theirs)? == 0;
            if is_free {
                tx.put(&world.rows, mine, 1)?;
            }
            Ok(is_free)
        })
    };
    let other = spawn(&world, move |world| set_if_free(world, Y, X));
    let here = set_if_free(&world, X, Y);
    let there = other.join().unwrap();
    assert!(here || there);
    here && there
}

fn no_write_skew<P: Protocol>(make: Make<P>, _: bool) {
    model(move || assert!(!write_skew(make), "both"));
}

/// The check can fail.
#[test]
#[should_panic(expected = "both")]
fn write_skew_is_seen_under_snapshot_isolation() {
    no_write_skew(snapshot, true);
}

#[test]
fn nothing_is_lost_under_snapshot_isolation() {
    nothing_is_lost(snapshot, true);
}

fn a_commit_is_seen_as_a_whole<P: Protocol>(make: Make<P>, is_opaque: bool) {
    model(move || {
        let world = World::with(make(), &[X, Y]);
        // The second thread to read its clock is ahead.
        let reader = spawn(&world, move |world| world.look(is_opaque, X, Y));
        world.step();
        reader.join().unwrap();
    });
}

/// Beyond the boundary the same models fail; otherwise they would test nothing.
#[test]
#[should_panic(expected = "torn")]
fn occ_beyond_the_boundary_is_torn() {
    a_commit_is_seen_as_a_whole(occ_wrong, true);
}

#[test]
#[should_panic(expected = "torn")]
fn mvcc_beyond_the_boundary_is_torn() {
    a_commit_is_seen_as_a_whole(mvcc_wrong, true);
}

/// A commit of `occ` that writes is checked without times.
#[test]
fn nothing_is_lost_by_occ_with_a_wrong_clock() {
    nothing_is_lost(occ_wrong, true);
}

#[test]
fn no_write_skew_by_occ_with_a_wrong_clock() {
    no_write_skew(occ_wrong, true);
}

/// The anomaly of a transaction that only reads (Fekete, O'Neil and O'Neil, 2004): a withdrawal that
/// does not see a deposit comes before it, and so before a reader that sees the deposit.
fn a_reader_completes_the_order<P: Protocol>(make: Make<P>, _: bool) {
    model(move || {
        let world = World::with(make(), &[X, Y]);
        let other = spawn(&world, |world| {
            world.transact(|tx| tx.put(&world.rows, Y, 20));
            let both = |tx: &mut Tx<'_, P>| Ok((world.row(tx, X)?, world.row(tx, Y)?));
            world.store.read_only(both).unwrap()
        });
        world.transact(|tx| {
            let sum = world.row(tx, X)? + world.row(tx, Y)?;
            world.pause();
            // A fee if there is no money.
            tx.put(&world.rows, X, if sum == 0 { 11 } else { 10 })
        });
        let seen = other.join().unwrap();
        let withdrawn = world.last(X);
        assert!(seen != (0, 20) || withdrawn == Some(10), "{seen:?}");
    });
}

/// Each inserts into the gap that the other has found.
fn no_phantom_of_two_inserts<P: Protocol>(make: Make<P>, _: bool) {
    model(move || {
        let world = World::with(make(), &[]);
        let insert_if_free = |world: &World<P>, mine, theirs| {
            world.transact(|tx| {
                let is_free = !tx.contains(&world.rows, &theirs)?;
                Ok(is_free && tx.insert(&world.rows, mine, 1)?)
            })
        };
        let other = spawn(&world, move |world| insert_if_free(world, Y, X));
        let here = insert_if_free(&world, X, Y);
        let there = other.join().unwrap();
        assert!(here != there, "{here} {there}");
    });
}

fn no_phantom_of_two_ranges<P: Protocol>(make: Make<P>, _: bool) {
    model(move || {
        let store = Store::new(make());
        let rows: OrderedTable<u64, u64> = store.ordered("rows").unwrap();
        let world = Arc::new((store, rows));
        let insert_if_none = |(store, rows): &(Store<P>, OrderedTable<u64, u64>), key| {
            let insert = |tx: &mut Tx<'_, P>| {
                let is_free = tx.rows(rows, ..)?.is_empty();
                Ok(is_free && tx.insert(rows, key, 1)?)
            };
            store.transact(insert).unwrap()
        };
        let there = {
            let world = Arc::clone(&world);
            thread::spawn(move || insert_if_none(&world, Y))
        };
        let here = insert_if_none(&world, X);
        let there = there.join().unwrap();
        assert!(here != there, "{here} {there}");
    });
}

/// A row comes with a mark of 1 and goes with a mark of 2.
fn a_row_that_comes_and_goes_is_not_missed<P: Protocol>(make: Make<P>, is_opaque: bool) {
    model(move || {
        let world = World::with(make(), &[Y]);
        let other = spawn(&world, |world| {
            world.transact(|tx| {
                tx.insert(&world.rows, X, 1)?;
                tx.put(&world.rows, Y, 1)
            });
            world.transact(|tx| {
                tx.remove(&world.rows, &X)?;
                tx.put(&world.rows, Y, 2)
            });
        });
        let (is_there, mark) = world.transact(|tx| {
            let is_there = tx.contains(&world.rows, &X)?;
            world.pause();
            let mark = world.row(tx, Y)?;
            assert!(is_there == (mark == 1) || !is_opaque, "{is_there} {mark}");
            Ok((is_there, mark))
        });
        assert_eq!(is_there, mark == 1, "{mark}");
        other.join().unwrap();
    });
}

/// Two insert the same key, of which one removes it again.
fn one_key_is_inserted_once<P: Protocol>(make: Make<P>, _: bool) {
    model(move || {
        let world = World::with(make(), &[]);
        let other = spawn(&world, |world| {
            let is_new = world.transact(|tx| tx.insert(&world.rows, X, 1));
            let is_gone = world.transact(|tx| tx.remove(&world.rows, &X));
            (is_new, is_gone)
        });
        let here = world.transact(|tx| tx.insert(&world.rows, X, 2));
        let (there, is_gone) = other.join().unwrap();
        assert!(is_gone && (here || there));
        let row = world.last(X);
        match (here, there) {
            // After the removal, or before the other's insert was refused and the row removed.
            (true, true) => assert_eq!(row, Some(2)),
            _ => assert_eq!(row, None),
        }
    });
}

/// A transaction raises the read stamp of a row that a commit is replacing, and fails. Another one must
/// not take the raised stamp for a promise: here the one in whose closure it runs.
#[test]
fn tictoc_a_stamp_that_was_raised_in_vain_is_not_trusted() {
    model(|| {
        let world = World::with(TicToc, &[X, Y, Z]);
        // Later than the other rows.
        world.transact(|tx| tx.put(&world.rows, Z, 1));
        world.transact(|tx| tx.put(&world.rows, Z, 2));
        let writer = spawn(&world, World::step);
        let mut is_raised = false;
        let (x, y) = world.transact(|tx| {
            let x = world.row(tx, X)?;
            if !std::mem::replace(&mut is_raised, true) {
                let mut attempts = 0;
                let _ = world.store.transact(|tx| {
                    attempts += 1;
                    if attempts > 1 {
                        return tx.abort();
                    }
                    Ok(world.row(tx, X)? + world.row(tx, Z)?)
                });
            }
            Ok((x, world.row(tx, Y)?))
        });
        assert_eq!(x, y, "torn");
        writer.join().unwrap();
    });
}

/// A transaction that runs alone after its first abort, beside another one that does the same.
fn a_transaction_alone_is_not_disturbed<P: Protocol>(make: Make<P>) {
    model(move || {
        let world = World::of(Store::new(make()).with_attempts(0), &[X, Y]);
        let other = spawn(&world, World::step);
        world.step();
        other.join().unwrap();
        assert_eq!((world.last(X), world.last(Y)), (Some(2), Some(2)));
    });
}

#[test]
fn a_transaction_alone_is_not_disturbed_by_silo() {
    a_transaction_alone_is_not_disturbed(|| Silo);
}

#[test]
fn a_transaction_alone_is_not_disturbed_by_tictoc() {
    a_transaction_alone_is_not_disturbed(|| TicToc);
}

#[test]
fn a_transaction_alone_is_not_disturbed_by_mvcc() {
    a_transaction_alone_is_not_disturbed(|| Mvcc::new(Logical::new()));
}
