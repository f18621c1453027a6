//! Removed objects are freed, objects in use are not, and memory does not grow.
//!
//! It is a test program of its own, because it counts all allocations of the process.

#![cfg(not(any(corelay_loom, corelay_shuttle)))]

#[path = "rlu/numbers.rs"]
mod numbers;

use corelay_clock::{Clock, Logical, Ordo};
use corelay_txn::rlu::{Domain, RluHash, RluList};
use numbers::{Random, scaled};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering};

/// Counts the living nodes of the lists here. Nothing else has their size, least of all logs, whose
/// memory comes in multiples of 16 bytes.
struct Counting;

/// A value that gives nodes a unique size: 8 of header, 8 of link, 8 of key, and this.
type Odd = [u64; 1_236];
const NODE: usize = 24 + size_of::<Odd>();

static NODES: AtomicIsize = AtomicIsize::new(0);

// SAFETY: it passes every call on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() == NODE {
            NODES.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: our caller promises what the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        if layout.size() == NODE {
            NODES.fetch_sub(1, Ordering::Relaxed);
        }
        // SAFETY: our caller promises what the system's allocator asks for.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const VALUE: Odd = [7; 1_236];

/// There is one test, because the count is of the whole process.
#[test]
fn removed_nodes_are_freed() {
    let clocks: [&dyn Fn(); 2] = [&|| on(Logical::new), &|| {
        if corelay_sync::counter::usable() {
            on(|| Ordo::with_boundary(400));
        }
    }];
    for clock in clocks {
        clock();
    }
}

fn on<C: Clock + 'static>(make: impl Fn() -> C) {
    for deferral in [1, 5] {
        alternating(&Domain::with_deferral(make(), deferral));
        crowded(&Domain::with_deferral(make(), deferral));
        aborted(&Domain::with_deferral(make(), deferral));
        pending(&Domain::with_deferral(make(), deferral));
        assert_eq!(NODES.load(Ordering::Relaxed), 0);
    }
}

/// One session: at most the garbage of three logs is not freed yet.
fn alternating<C: Clock>(domain: &Domain<C>) {
    let list: RluList<C, u64, Odd> = RluList::new_in(domain);
    let mut session = list.session();
    for round in 0..200 {
        assert!(session.insert(round % 7, VALUE));
        assert!(session.remove(&(round % 7)).is_some());
        // The head, which is as large, and nodes that are not freed yet.
        let living = NODES.load(Ordering::Relaxed);
        assert!(living <= 1 + 20, "{living} after {round}");
    }
    session.session().sync();
    assert_eq!(NODES.load(Ordering::Relaxed), 1);
    assert!(session.stats().freed == 200);
}

/// Several sessions on a table: after their end only the nodes in the table live.
fn crowded<C: Clock>(domain: &Domain<C>) {
    const KEYS: u64 = 16;
    let table: RluHash<C, u64, Odd> = RluHash::new_in(domain, 3);
    std::thread::scope(|s| {
        for id in 0..3 {
            let table = &table;
            s.spawn(move || {
                let mut random = Random::new(id);
                let mut session = table.session();
                for _ in 0..scaled(600) {
                    let key = random.below(KEYS);
                    match random.below(3) {
                        0 => drop(session.insert(key, VALUE)),
                        1 => drop(session.remove(&key)),
                        _ => assert!(session.get(&key).is_none_or(|v| v[1_235] == 7)),
                    }
                }
            });
        }
    });
    let living = table.session().to_vec().len() as isize;
    assert_eq!(NODES.load(Ordering::Relaxed), living);
    drop(table);
    assert_eq!(NODES.load(Ordering::Relaxed), 0);
}

/// Aborted write sets, again and again: their nodes are freed.
fn aborted<C: Clock>(domain: &Domain<C>) {
    let list: RluList<C, u64, Odd> = RluList::new_in(domain);
    let mut session = domain.session();
    for key in 0..500 {
        let aborted = session.try_write(|section| {
            list.insert(section, key, VALUE)?;
            Err::<(), _>(section.abort())
        });
        assert!(aborted.is_err());
        assert_eq!(NODES.load(Ordering::Relaxed), 1);
    }
    assert!(session.read(|section| list.iter(section).next().is_none()));
}

/// Lists and cells that are dropped while logs have locked them.
fn pending<C: Clock>(domain: &Domain<C>) {
    let mut session = domain.session();
    for _ in 0..50 {
        let list: RluList<C, u64, Odd> = RluList::new_in(domain);
        let cell = domain.cell([0_u64; 1_240]);
        session.write(|section| {
            list.insert(section, 1, VALUE)?;
            list.insert(section, 2, VALUE)?;
            section.try_lock(&cell)?[3] = 1;
            Ok(())
        });
        session.write(|section| list.remove(section, &1));
        drop((list, cell));
        let living = NODES.load(Ordering::Relaxed);
        assert!(living <= 80, "{living}");
    }
    session.sync();
    assert_eq!(NODES.load(Ordering::Relaxed), 0);
}
