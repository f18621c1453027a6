//! The list of Harris and Michael under loom: every interleaving of the shipped source (up to the
//! preemption bound) with every permitted stale read.
//!
//! loom sees a read of a node that is not ordered after its initialisation. The domain of the
//! models sees a node that is retired twice, and a link that leads to a node that may be freed.

use corelay_structures::lockfree::HarrisList;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

type List = Arc<HarrisList<u8>>;

fn list(keys: impl IntoIterator<Item = u8>) -> List {
    Arc::new(keys.into_iter().collect())
}

fn spawn<R: 'static>(
    list: &List,
    work: impl FnOnce(&HarrisList<u8>) -> R + 'static,
) -> thread::JoinHandle<R> {
    let list = Arc::clone(list);
    thread::spawn(move || work(&list))
}

fn keys(list: &List) -> Vec<u8> {
    let mut keys = Vec::new();
    list.for_each(|&key| keys.push(key));
    keys
}

#[test]
fn one_of_two_inserts() {
    loom::model(|| {
        let list = list([3]);
        let other = spawn(&list, |list| list.insert(2));
        let mine = list.insert(2);
        assert_ne!(mine, other.join().unwrap());
        assert_eq!(keys(&list), [2, 3]);
    });
}

/// The second of them follows a link of a node to a node of the first.
#[test]
fn one_of_two_inserts_after_another_key() {
    loom::model(|| {
        let list = list([1]);
        let other = spawn(&list, |list| list.insert(2));
        let mine = list.insert(2);
        assert_ne!(mine, other.join().unwrap());
        assert_eq!(keys(&list), [1, 2]);
    });
}

/// A walk begins with the first key of all, which the head leads to.
#[test]
fn a_first_key_is_walked_over() {
    loom::model(|| {
        let list = list([]);
        let other = spawn(&list, |list| list.insert(1));
        let seen = keys(&list);
        assert!(seen.is_empty() || seen == [1]);
        assert!(other.join().unwrap());
        assert_eq!(keys(&list), [1]);
    });
}

#[test]
fn one_of_two_removes() {
    loom::model(|| {
        let list = list([1, 2, 3]);
        let other = spawn(&list, |list| list.remove(&2));
        let mine = list.remove(&2);
        assert_ne!(mine, other.join().unwrap());
        assert_eq!(keys(&list), [1, 3]);
    });
}

/// A key is inserted behind a node that is being removed: it must not go with it.
#[test]
fn a_key_is_inserted_behind_one_that_goes() {
    loom::model(|| {
        let list = list([1, 3]);
        let other = spawn(&list, |list| list.remove(&1));
        assert!(list.insert(2));
        assert!(list.contains(&2));
        assert!(other.join().unwrap());
        assert_eq!(keys(&list), [2, 3]);
    });
}

/// Two nodes in a row are removed: the second must not be linked again by the removal of the first.
#[test]
fn neighbours_go() {
    loom::model(|| {
        let list = list([1, 2, 3]);
        let other = spawn(&list, |list| list.remove(&1));
        assert!(list.remove(&2));
        assert!(!list.contains(&2));
        assert!(other.join().unwrap());
        assert_eq!(keys(&list), [3]);
    });
}

/// A key is removed and comes back, while others look for it, and for the one behind it.
#[test]
fn a_walk_over_nodes_that_go() {
    loom::model(|| {
        let list = list([1, 2, 3]);
        let changes = spawn(&list, |list| {
            assert!(list.remove(&1) && list.remove(&2) && list.insert(1));
        });
        let walks = spawn(&list, |list| {
            assert!(list.contains(&3));
            if !list.contains(&2) {
                assert!(!list.contains(&2));
            }
        });
        assert!(list.insert(4));
        changes.join().unwrap();
        walks.join().unwrap();
        assert_eq!(keys(&list), [1, 3, 4]);
    });
}

/// A call happens after the one whose effect it sees: so a key can serve as a lock.
#[test]
fn a_key_is_a_lock() {
    struct Locked(HarrisList<u8>, UnsafeCell<u8>);
    // SAFETY: only the thread that has inserted the key uses the cell, as loom checks.
    unsafe impl Sync for Locked {}
    impl Locked {
        fn try_add(&self) -> bool {
            let is_mine = self.0.insert(1);
            if is_mine {
                // SAFETY: see `Locked`.
                self.1.with_mut(|count| unsafe { *count += 1 });
                assert!(self.0.remove(&1));
            }
            is_mine
        }
    }
    loom::model(|| {
        let locked = Arc::new(Locked(HarrisList::new(), UnsafeCell::new(0)));
        let threads = [0; 2].map(|_| {
            let locked = Arc::clone(&locked);
            thread::spawn(move || u8::from(locked.try_add()))
        });
        let mine = u8::from(locked.try_add());
        let others = threads.map(|thread| thread.join().unwrap());
        let count = mine + others.iter().sum::<u8>();
        // SAFETY: the other threads have ended.
        assert_eq!(locked.1.with(|count| unsafe { *count }), count);
    });
}

/// The first key of all, which the head leads to.
#[test]
fn a_first_key_is_found() {
    loom::model(|| {
        let list = list([]);
        let other = spawn(&list, |list| list.insert(1));
        if list.contains(&1) {
            assert_eq!(list.get(&1), Some(1));
        }
        assert!(other.join().unwrap());
        assert_eq!(keys(&list), [1]);
    });
}

/// A call that finds a key happens after its insertion.
#[test]
fn a_key_that_is_found_was_inserted() {
    struct Shared(HarrisList<u8>, UnsafeCell<u8>);
    // SAFETY: the cell is written before the insertion, and read after it, as loom checks.
    unsafe impl Sync for Shared {}
    loom::model(|| {
        let shared = Arc::new(Shared(HarrisList::from_iter([1, 3]), UnsafeCell::new(0)));
        let other = thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                // SAFETY: see `Shared`.
                shared.1.with_mut(|place| unsafe { *place = 1 });
                shared.0.insert(2);
            }
        });
        let read = || {
            // SAFETY: see `Shared`.
            assert_eq!(shared.1.with(|place| unsafe { *place }), 1);
        };
        if shared.0.contains(&2) {
            read();
        }
        if shared.0.len() == 3 {
            read();
        }
        other.join().unwrap();
    });
}
