//! Which thread makes which memory: the server its objects and response lines, each client its
//! request lines (the thesis: so they lie on the memory nodes of these threads).

#![cfg(not(any(corelay_loom, corelay_shuttle)))]

use corelay_literature::{AsyncLines, Delegation, FfwdLines, Protocol, RclLines, Server, Shape};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// An allocator that notes who makes memory that begins on a cache line.
struct Recording;

/// Size, alignment and maker of pieces of memory.
static MADE: Mutex<Vec<(usize, usize, Maker)>> = Mutex::new(Vec::new());

#[derive(Clone, Copy, Debug, PartialEq)]
enum Maker {
    /// Another thread, or the recorder itself.
    Nobody,
    Builder,
    Server,
    Client,
}

thread_local! {
    static MAKER: Cell<Maker> = const { Cell::new(Maker::Nobody) };
}

// SAFETY: every piece of memory comes from the system's allocator, and goes back to it.
unsafe impl GlobalAlloc for Recording {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() >= 64 {
            // The list allocates, too.
            let maker = MAKER.replace(Maker::Nobody);
            if maker != Maker::Nobody {
                let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
                made.push((layout.size(), layout.align(), maker));
            }
            MAKER.set(maker);
        }
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises; `alloc` got it from there.
        unsafe { System.dealloc(memory, layout) };
    }
}

#[global_allocator]
static RECORDING: Recording = Recording;

/// Runs `work` on a thread of its own, as `maker`.
fn as_maker<R: Send>(maker: Maker, work: impl FnOnce() -> R + Send) -> R {
    thread::scope(|s| {
        let worker = s.spawn(|| {
            MAKER.set(maker);
            let done = work();
            MAKER.set(Maker::Nobody);
            done
        });
        worker.join().unwrap()
    })
}

/// Three groups of ffwd's clients; no two of the sizes below are equal.
const CLIENTS: usize = 45;
const OBJECTS: usize = 11;

type Made<P> = (Delegation<P, u64>, Vec<Server<P, u64>>);

fn check<P: Protocol>(make: fn() -> Made<P>) {
    MADE.lock().unwrap().clear();
    let (delegation, mut servers) = as_maker(Maker::Builder, make);
    as_maker(Maker::Client, || drop(delegation.client(40).unwrap()));
    as_maker(Maker::Server, || servers[0].begin());
    let made = MADE.lock().unwrap().clone();
    let check = |what: &str, size: usize, maker: Maker| {
        let such = made.iter().filter(|made| made.0 == size);
        let makers: Vec<Maker> = such.map(|made| made.2).collect();
        let are_its = !makers.is_empty() && makers.iter().all(|made_by| *made_by == maker);
        assert!(are_its, "{what} of {size} bytes: {made:?}");
    };
    let footprint = delegation.footprint();
    check("requests", footprint.requests / CLIENTS, Maker::Client);
    check("objects", OBJECTS * 64, Maker::Server);
    if footprint.responses > 0 {
        check("responses", footprint.responses, Maker::Server);
    }
}

/// One test, as the list of what is made is the process's.
#[test]
fn each_side_makes_its_own_memory() {
    check::<FfwdLines>(|| Delegation::new(1, CLIENTS, OBJECTS, |_| 0));
    check::<RclLines>(|| Delegation::new(1, CLIENTS, OBJECTS, |_| 0));
    const LINES: usize = 37;
    check(|| {
        AsyncLines::<u64, fn(u64)>::shaped(
            Shape::queue(LINES, 50).unwrap(),
            1,
            CLIENTS,
            OBJECTS,
            |_| 0,
        )
    });
}
