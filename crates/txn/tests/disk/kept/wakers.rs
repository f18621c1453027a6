//! Wakers that panic, use the store, or drop it. The log thread calls them.

use super::{ends, open};
use crate::faulty::Faulty;
use crate::history::lazy;
use corelay_txn::store::{Durable, Silo, Store, Table};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Wake, Waker};

fn poll(durable: &mut Durable, waker: &Waker) -> bool {
    let polled = Future::poll(Pin::new(durable), &mut Context::from_waker(waker));
    matches!(polled, Poll::Ready(_))
}

/// Calls a closure when it is woken, and another one when it is dropped.
struct Calls<W: Fn(), D: Fn()> {
    wake: W,
    drop: D,
}

impl<W: Fn() + Send + Sync, D: Fn() + Send + Sync> Wake for Calls<W, D> {
    fn wake(self: Arc<Self>) {
        (self.wake)();
    }
}

impl<W: Fn(), D: Fn()> Drop for Calls<W, D> {
    fn drop(&mut self) {
        (self.drop)();
    }
}

fn calls(
    wake: impl Fn() + Send + Sync + 'static,
    drop: impl Fn() + Send + Sync + 'static,
) -> Waker {
    Waker::from(Arc::new(Calls { wake, drop }))
}

/// Writes a row. Returns the handle.
fn put(store: &Store, table: &Table<u8, u8>, row: u8) -> Durable {
    let put = store.transact_durable(|tx| tx.put(table, 1, row));
    put.unwrap().1
}

/// A task's waker often has the last reference to the task, whose drop may do anything.
#[test]
fn wakers_may_use_the_store_when_they_are_dropped() {
    ends("a waker that uses the store when it is dropped", || {
        let storage = Faulty::default();
        let store = Arc::new(open(Silo, &storage, &lazy()));
        let table = store.kept_table::<u8, u8>("rows").unwrap();
        let waker = |store: &Weak<Store>| {
            let store = Weak::clone(store);
            let look = move || {
                let store = store.upgrade();
                assert!(store.is_none_or(|store| store.disk_failure().is_none()));
            };
            calls(|| {}, look)
        };
        let weak = Arc::downgrade(&store);
        let mut durable = put(&store, &table, 1);
        assert!(!poll(&mut durable, &waker(&weak)));
        // The second waker replaces the first one, which is dropped, unless the commit is on disk by
        // now.
        poll(&mut durable, &waker(&weak));
        drop(durable);
        put(&store, &table, 2).wait().unwrap();
    });
}

#[test]
fn waker_that_panics_harms_nobody_else() {
    ends("a waker that panics", || {
        let storage = Faulty::default();
        let store = open(Silo, &storage, &lazy());
        let table = store.kept_table::<u8, u8>("rows").unwrap();
        let put = |row| put(&store, &table, row);
        let mut first = put(1);
        let waker = calls(|| panic!("a waker panics"), || {});
        assert!(!poll(&mut first, &waker));
        let woken = Arc::new(AtomicBool::new(false));
        let tell = Arc::clone(&woken);
        let mut second = put(2);
        let told = calls(move || tell.store(true, Ordering::SeqCst), || {});
        assert!(!poll(&mut second, &told));
        put(3).wait().unwrap();
        assert!(first.is_durable() && second.is_durable());
        // The log thread wakes in the order of registration.
        while !woken.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        put(4).wait().unwrap();
        assert!(store.disk_failure().is_none());
    });
}

/// A waker that panics when it is cloned.
fn unclonable() -> Waker {
    const TABLE: RawWakerVTable =
        RawWakerVTable::new(|_| panic!("a waker is cloned"), |_| {}, |_| {}, |_| {});
    // SAFETY: the functions do not use the pointer.
    unsafe { Waker::from_raw(RawWaker::new(std::ptr::null(), &TABLE)) }
}

#[test]
fn waker_that_panics_when_it_is_cloned_harms_nobody_else() {
    ends("a waker that panics when it is cloned", || {
        let storage = Faulty::default();
        let store = open(Silo, &storage, &lazy());
        let table = store.kept_table::<u8, u8>("rows").unwrap();
        let put = |row| put(&store, &table, row);
        let mut first = put(1);
        let polled = catch_unwind(AssertUnwindSafe(|| poll(&mut first, &unclonable())));
        assert!(polled.is_err());
        put(2).wait().unwrap();
        first.wait().unwrap();
    });
}

/// The last owner of a store may be a task that the log thread wakes, and so drops.
#[test]
fn store_that_is_dropped_by_a_waker_writes_its_last_epoch() {
    ends("a store that is dropped by a waker", || {
        let storage = Faulty::default();
        let store = open(Silo, &storage, &lazy());
        let table = store.kept_table::<u8, u8>("rows").unwrap();
        let (_, mut first) = store.transact_durable(|tx| tx.put(&table, 1, 1)).unwrap();
        let (_, wanted) = store.transact_durable(|tx| tx.put(&table, 2, 2)).unwrap();
        let place = Arc::new(Mutex::new(None::<Store>));
        let (own, last) = (Arc::clone(&place), Arc::new(Mutex::new(None)));
        let handle = Arc::clone(&last);
        let wake = move || {
            let store = own.lock().unwrap().take().unwrap();
            let put = store.transact_durable(|tx| tx.put(&table, 3, 3));
            *handle.lock().unwrap() = Some(put.unwrap().1);
            drop(store);
        };
        *place.lock().unwrap() = Some(store);
        // The epoch ends now that it is waited for.
        assert!(!poll(&mut first, &calls(wake, || {})));
        wanted.wait().unwrap();
        let last = loop {
            if let Some(last) = last.lock().unwrap().take() {
                break last;
            }
            std::thread::yield_now();
        };
        last.wait().unwrap();
        let store = open(Silo, &Faulty::new(&storage.image()), &lazy());
        let table = store.kept_table::<u8, u8>("rows").unwrap();
        assert_eq!(store.read_only(|tx| tx.get(&table, &3)).unwrap(), Some(3));
    });
}

#[test]
fn waker_that_waits_for_its_own_log_thread_panics() {
    ends("a waker that waits for its own log thread", || {
        let storage = Faulty::default();
        let store = Arc::new(open(Silo, &storage, &lazy()));
        let table = store.kept_table::<u8, u8>("rows").unwrap();
        let put = |row| store.transact_durable(|tx| tx.put(&table, 1, row));
        let (_, mut first) = put(1).unwrap();
        let said = Arc::new(Mutex::new(None));
        let (own, other, tell) = (Arc::clone(&store), table.clone(), Arc::clone(&said));
        let wake = move || {
            let (_, next) = own.transact_durable(|tx| tx.put(&other, 1, 2)).unwrap();
            let payload = catch_unwind(AssertUnwindSafe(|| next.wait())).unwrap_err();
            *tell.lock().unwrap() = payload.downcast_ref::<&str>().map(|&said| said.to_owned());
        };
        assert!(!poll(&mut first, &calls(wake, || {})));
        first.wait().unwrap();
        put(3).unwrap().1.wait().unwrap();
        let said = said.lock().unwrap().take().unwrap();
        assert!(said.contains("by the log thread"), "{said}");
    });
}
