//! The adaptive lock beside its rivals, at every point of threads × section × variables.
//!
//! `cargo run --release -p corelay-locks --example adaptive_sweep -- [threads=1,2] [section=0,100]
//! [vars=1,64] [ms=100] [rounds=5] [methods=adaptive,ttas]`
//!
//! Each round runs every method at a point for `ms`, one after the other, and the next round begins
//! with another method. `section` is in nanoseconds. The last column is the median over the rounds of
//! the adaptive lock's throughput by that of the best rival (the best by its median) in the same
//! round. Nothing is pinned and no probe is taken: for figures use the lab.

use corelay_locks::{Adaptive, CcSynch, Clh, FlatCombining, Mcs, ParkingLot, StdMutex, Ttas};
use corelay_sync::{CachePadded, Session, Shared};
use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A point of the sweep.
#[derive(Clone, Copy)]
struct Point {
    threads: usize,
    /// Steps of `work` in a section.
    steps: u64,
    vars: usize,
    time: Duration,
}

type Method = (&'static str, fn(Point) -> f64);

const METHODS: [Method; 8] = [
    ("adaptive", |point| sample(Adaptive::new, point)),
    ("mutex", |point| sample(StdMutex::new, point)),
    ("parking", |point| sample(ParkingLot::new, point)),
    ("ttas", |point| sample(Ttas::new, point)),
    ("mcs", |point| sample(Mcs::new, point)),
    ("clh", |point| sample(Clh::new, point)),
    ("flat", |point| sample(FlatCombining::new, point)),
    ("ccsynch", |point| sample(CcSynch::new, point)),
];

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let given: HashMap<_, _> = arguments
        .iter()
        .map(|a| a.split_once('=').expect("NAME=VALUE"))
        .collect();
    let list = |name, usual| -> Vec<u64> {
        let text: &str = given.get(name).copied().unwrap_or(usual);
        text.split(',').map(|n| n.parse().expect(name)).collect()
    };
    let wanted = given.get("methods");
    let is_wanted = |(name, _): &Method| wanted.is_none_or(|w| w.split(',').any(|n| n == *name));
    let methods: Vec<_> = METHODS.into_iter().filter(is_wanted).collect();
    let (time, rounds) = (list("ms", "100")[0], list("rounds", "5")[0] as usize);
    let steps_per_100_ns = calibrate();

    print!("threads section vars");
    methods.iter().for_each(|(name, _)| print!(" {name:>9}"));
    println!("  adaptive/best");
    for &threads in &list("threads", "1,2,4,16,64") {
        for &section in &list("section", "0,100,2000") {
            for &vars in &list("vars", "1,64") {
                let point = Point {
                    threads: threads as usize,
                    steps: section * steps_per_100_ns / 100,
                    vars: vars as usize,
                    time: Duration::from_millis(time),
                };
                print!("{threads:7} {section:7} {vars:4}");
                compare(&methods, rounds, point);
            }
        }
    }
}

/// Runs all methods in turn, `rounds` times, and prints medians and the ratio.
fn compare(methods: &[Method], rounds: usize, point: Point) {
    let mut samples = vec![Vec::new(); methods.len()];
    for round in 0..rounds {
        for i in 0..methods.len() {
            let at = (i + round) % methods.len();
            let (_, sample) = methods[at];
            samples[at].push(sample(point));
        }
    }
    let medians: Vec<_> = samples.iter().map(|s| median(s.clone())).collect();
    medians.iter().for_each(|m| print!(" {m:9.3}"));
    let best = (1..methods.len()).max_by(|&a, &b| medians[a].total_cmp(&medians[b]));
    if let Some(best) = best {
        let pairs = samples[0].iter().zip(&samples[best]);
        let ratio = median(pairs.map(|(mine, best)| mine / best).collect());
        print!("  {ratio:.2} {}", methods[best].0);
    }
    println!();
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

/// Millions of operations per second, of all threads together.
fn sample<S: Shared<Value = u64> + Sync>(lock: fn(u64) -> S, point: Point) -> f64 {
    let locks: Vec<S> = (0..point.vars).map(|_| lock(0)).collect();
    if point.steps == 0 {
        drive(&locks, point, |n| *n += 1)
    } else {
        drive(&locks, point, |n| {
            *n += 1;
            work(point.steps);
        })
    }
}

fn drive<S: Shared<Value = u64> + Sync>(
    locks: &[S],
    point: Point,
    section: impl Fn(&mut u64) + Copy + Sync + Send,
) -> f64 {
    let start = Barrier::new(point.threads + 1);
    let stop = CachePadded::new(AtomicBool::new(false));
    let client = |seed| {
        let mut sessions: Vec<_> = locks.iter().map(S::session).collect();
        let mut random = seed as u64 + 1;
        let mut operations = 0_u64;
        start.wait();
        while !stop.load(Ordering::Relaxed) {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let var = (random >> 33) as usize % point.vars;
            sessions[var].apply(section);
            operations += 1;
        }
        operations
    };
    let (operations, time) = thread::scope(|s| {
        let client = &client;
        let threads: Vec<_> = (0..point.threads)
            .map(|seed| s.spawn(move || client(seed)))
            .collect();
        start.wait();
        let begin = Instant::now();
        thread::sleep(point.time);
        stop.store(true, Ordering::Relaxed);
        let time = begin.elapsed();
        let clients = threads.into_iter().map(|t| t.join().expect("no panic"));
        (clients.sum::<u64>(), time)
    });
    let counted: u64 = locks.iter().map(|lock| lock.session().apply(|n| *n)).sum();
    assert_eq!(counted, operations, "a method has lost operations");
    operations as f64 / time.as_secs_f64() / 1e6
}

/// The work of a section. Not inlined, for the loop would be compiled for each method anew, and may
/// take twice as long for one as for another.
#[inline(never)]
fn work(steps: u64) {
    let mut x = 1_u64;
    for _ in 0..steps {
        x = black_box(x.wrapping_mul(3));
    }
}

/// The steps of `work` that take 100 ns.
fn calibrate() -> u64 {
    const STEPS: u64 = 100_000;
    let one = |_| {
        let begin = Instant::now();
        work(STEPS);
        begin.elapsed()
    };
    let fastest = (0..20).map(one).min().expect("several");
    STEPS * 100 / (fastest.as_nanos() as u64).max(1)
}
