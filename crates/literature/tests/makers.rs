//! Which thread makes which memory: the server its objects and response lines, each client its
//! request lines. So they lie on the memory nodes of these threads (the thesis), which is looked up
//! where there are two nodes. `CORELAY_NODES=2` demands that there are.

#![cfg(not(any(corelay_loom, corelay_shuttle)))]

use corelay_literature::{AsyncLines, Delegation, FfwdLines, Protocol, RclLines, Server, Shape};
use corelay_topology::{PinGuard, Topology, node_of};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

/// An allocator that notes who makes memory that begins on a cache line.
struct Recording;

static MADE: Mutex<Vec<Made>> = Mutex::new(Vec::new());

/// A piece of memory.
#[derive(Clone, Copy, Debug)]
struct Made {
    size: usize,
    address: usize,
    maker: Maker,
}

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
        // SAFETY: as the caller promises.
        let memory = unsafe { System.alloc(layout) };
        if layout.align() >= 64 {
            // The list allocates, too.
            let maker = MAKER.replace(Maker::Nobody);
            if maker != Maker::Nobody {
                let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
                made.push(Made {
                    size: layout.size(),
                    address: memory.addr(),
                    maker,
                });
            }
            MAKER.set(maker);
        }
        memory
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises; `alloc` got it from there.
        unsafe { System.dealloc(memory, layout) };
    }
}

#[global_allocator]
static RECORDING: Recording = Recording;

type Job = Box<dyn FnOnce() + Send>;

/// A thread that does the work of one maker from beginning to end: an allocator gives what a thread
/// has left behind to the next one, wherever that runs.
struct Side {
    node: Option<usize>,
    jobs: mpsc::Sender<Job>,
}

impl Side {
    /// Starts the thread of `maker` on a CPU of the machine's node `index`, if it has that many.
    fn start(maker: Maker, machine: &Topology, index: usize) -> Self {
        let (jobs, work) = mpsc::channel::<Job>();
        let node = machine.nodes().get(index);
        let cpu = node.and_then(|node| node.cpus.iter().next());
        // The thread begins on its CPU: its allocator's first page is touched before any code of
        // ours runs.
        let _pinned = cpu.map(|cpu| PinGuard::pin(cpu).unwrap());
        thread::spawn(move || {
            MAKER.set(maker);
            work.into_iter().for_each(|job| job());
        });
        Self {
            node: node.map(|node| node.id),
            jobs,
        }
    }

    /// Does `job` on the thread, and waits for it.
    fn run<R: Send + 'static>(&self, job: impl FnOnce() -> R + Send + 'static) -> R {
        let (done, result) = mpsc::channel();
        let job = move || done.send(job()).expect("the test waits");
        self.jobs.send(Box::new(job)).expect("the thread works");
        result.recv().expect("the job does not panic")
    }
}

/// Three groups of ffwd's clients. No two of the sizes below are equal.
const CLIENTS: usize = 45;
const OBJECTS: usize = 11;
const LINES: usize = 37;

type Both<P> = (Delegation<P, u64>, Vec<Server<P, u64>>);

fn check<P: Protocol + 'static>(make: fn() -> Both<P>, sides: &[Side; 3]) {
    let [builder, server, client] = sides;
    MADE.lock().unwrap().clear();
    let (delegation, mut servers) = builder.run(make);
    let delegation = client.run(move || {
        drop(delegation.client(CLIENTS - 1).unwrap());
        delegation
    });
    let _servers = server.run(move || {
        servers[0].begin();
        servers
    });
    let made = MADE.lock().unwrap().clone();
    let check = |what: &str, size: usize, maker: Maker, side: &Side| {
        let such: Vec<_> = made.iter().filter(|made| made.size == size).collect();
        let are_its = !such.is_empty() && such.iter().all(|made| made.maker == maker);
        assert!(are_its, "{what} of {size} bytes: {made:?}");
        let node = |made: &&Made| node_of(std::ptr::without_provenance::<u8>(made.address));
        if side.node.is_some() && side.node != builder.node {
            let nodes: Vec<_> = such.iter().map(node).collect();
            assert!(
                nodes.iter().all(|node| *node == side.node),
                "{what}: {nodes:?}"
            );
        }
    };
    let footprint = delegation.footprint();
    check(
        "requests",
        footprint.requests / CLIENTS,
        Maker::Client,
        client,
    );
    check("objects", OBJECTS * 64, Maker::Server, server);
    if footprint.responses > 0 {
        check("responses", footprint.responses, Maker::Server, server);
    }
}

/// One test, as the list of what is made is the process's.
#[test]
fn each_side_makes_its_own_memory() {
    let machine = Topology::current();
    let nodes = machine.nodes().len();
    let demanded = std::env::var("CORELAY_NODES").map_or(1, |nodes| nodes.parse().unwrap());
    assert!(nodes >= demanded, "{nodes} of {demanded} nodes");
    // On two nodes each of the two sides is once elsewhere than the builder.
    let turns = [[1, 0], [0, 1]].map(|[server, client]| {
        let makers = [
            (Maker::Builder, 0),
            (Maker::Server, server),
            (Maker::Client, client),
        ];
        makers.map(|(maker, index)| Side::start(maker, &machine, index))
    });
    for sides in &turns {
        check::<FfwdLines>(|| Delegation::new(1, CLIENTS, OBJECTS, |_| 0), sides);
        check::<RclLines>(|| Delegation::new(1, CLIENTS, OBJECTS, |_| 0), sides);
        let lines = || {
            let shape = Shape::queue(LINES, 50).unwrap();
            AsyncLines::<u64, fn(u64)>::shaped(shape, 1, CLIENTS, OBJECTS, |_| 0)
        };
        check(lines, sides);
    }
}
