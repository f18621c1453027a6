//! The pool beside `Box`, which uses the system's allocator: nanoseconds for each node, the least
//! of many rounds.
//!
//! `cargo run --release -p corelay-structures --example speed` runs all cases. With the name of a
//! case, `pool` or `box`, and a number of nodes, it runs that one once, for callgrind.

use corelay_structures::pool::{Pool, Pooled, Session};
use std::hint::black_box;
use std::sync::Mutex;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Instant;

/// 24 bytes: two links and a value.
type Node = [usize; 3];

const NODES: usize = 100_000;
const ROUNDS: usize = 200;

/// A source of nodes.
trait Source: Send {
    type Owned: Send;
    fn make(&self, value: Node) -> Self::Owned;
    fn free(&self, node: Self::Owned);
    fn other(&self) -> Self;
}

impl Source for Session<Node> {
    type Owned = Pooled<Node>;
    #[inline(always)]
    fn make(&self, value: Node) -> Pooled<Node> {
        self.alloc(value)
    }
    #[inline(always)]
    fn free(&self, node: Pooled<Node>) {
        Session::free(self, node);
    }
    fn other(&self) -> Self {
        // Nodes find their way back to the pool that they came from.
        Pool::new().session()
    }
}

struct System;

impl Source for System {
    type Owned = Box<Node>;
    #[inline(always)]
    fn make(&self, value: Node) -> Box<Node> {
        // As an opaque call, or the compiler would leave out pairs of allocation and release.
        black_box(Box::new(value))
    }
    #[inline(always)]
    fn free(&self, node: Box<Node>) {
        drop(node);
    }
    fn other(&self) -> Self {
        System
    }
}

/// Makes nodes one after the other. Freeing them is not part of the time.
#[inline(never)]
fn fill<S: Source>(source: &S, nodes: usize) -> f64 {
    let mut list = Vec::with_capacity(nodes);
    let begun = Instant::now();
    for n in 0..nodes {
        list.push(source.make([n, 0, 0]));
    }
    let time = begun.elapsed();
    while let Some(node) = list.pop() {
        source.free(node);
    }
    time.as_nanos() as f64 / nodes as f64
}

/// Makes a node and frees it, again and again.
#[inline(never)]
fn pair<S: Source>(source: &S, nodes: usize) -> f64 {
    let begun = Instant::now();
    for n in 0..nodes {
        let node = source.make([n, 0, 0]);
        source.free(black_box(node));
    }
    begun.elapsed().as_nanos() as f64 / nodes as f64
}

/// Frees nodes in an order that is unrelated to their addresses.
#[inline(never)]
fn scattered<S: Source>(source: &S, nodes: usize) -> f64 {
    let mut list: Vec<_> = (0..nodes).map(|n| source.make([n, 0, 0])).collect();
    let mut random = 1_u64;
    for at in (1..nodes).rev() {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        list.swap(at, (random >> 33) as usize % (at + 1));
    }
    let begun = Instant::now();
    for node in list {
        source.free(node);
    }
    begun.elapsed().as_nanos() as f64 / nodes as f64
}

/// Makes nodes on one thread and frees them on another, in blocks of 1,000.
#[inline(never)]
fn across<S: Source>(source: &S, nodes: usize) -> f64 {
    let begun = Instant::now();
    let other = source.other();
    // The vectors that carry the blocks come back, so that only nodes are allocated.
    let spare = Mutex::new(Vec::<Vec<S::Owned>>::new());
    thread::scope(|s| {
        let (give, given) = sync_channel::<Vec<S::Owned>>(8);
        let back = &spare;
        s.spawn(move || {
            pin(1);
            for mut block in given {
                for node in block.drain(..) {
                    other.free(node);
                }
                back.lock().unwrap().push(block);
            }
        });
        for block in 0..nodes / 1_000 {
            let carrier = spare.lock().unwrap().pop();
            let mut carrier = carrier.unwrap_or_else(|| Vec::with_capacity(1_000));
            carrier.extend((0..1_000).map(|n| source.make([block, n, 0])));
            give.send(carrier).unwrap();
        }
        drop(give);
    });
    begun.elapsed().as_nanos() as f64 / nodes as f64
}

/// Pins this thread. A machine with one CPU has all threads on that.
fn pin(cpu: usize) {
    if let Err(why) = corelay_topology::pin_current_thread(cpu) {
        eprintln!("not pinned: {why}");
    }
}

fn run<S: Source>(case: &str, source: &S, nodes: usize) -> f64 {
    match case {
        "fill" => fill(source, nodes),
        "pair" => pair(source, nodes),
        "scattered" => scattered(source, nodes),
        "across" => across(source, nodes),
        _ => {
            eprintln!("no case `{case}`: give fill, pair, scattered or across");
            std::process::exit(2);
        }
    }
}

fn main() {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let pool = Pool::new();
    pin(0);
    if let [case, who, nodes] = &args[..] {
        let Ok(nodes) = nodes.parse() else {
            eprintln!("`{nodes}` is no number of nodes");
            std::process::exit(2);
        };
        let time = match who.as_str() {
            "pool" => run(case, &pool.session(), nodes),
            _ => run(case, &System, nodes),
        };
        println!("{case} {who}: {time:.2} ns a node");
        return;
    }
    println!("nanoseconds a node of 24 bytes, least and median of {ROUNDS} rounds of {NODES}");
    for case in ["fill", "pair", "scattered", "across"] {
        let session = pool.session();
        let mut times = [const { Vec::new() }; 2];
        // The two take turns, so whatever else the machine does affects both.
        for _ in 0..ROUNDS {
            times[0].push(run(case, &session, NODES));
            times[1].push(run(case, &System, NODES));
        }
        let [[pool, pool_median], [system, system_median]] = times.map(|mut times| {
            times.sort_by(f64::total_cmp);
            [times[0], times[ROUNDS / 2]]
        });
        println!(
            "{case:10} pool {pool:6.2} {pool_median:6.2}   box {system:6.2} {system_median:6.2}   \
             box / pool {:.1}",
            system / pool
        );
    }
}
