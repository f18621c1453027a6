//! A rough speed check: two threads add to one number behind each lock.
//!
//! `cargo run --release -p corelay-locks --example speed`
//!
//! Beside each figure stands the round trip of a cache line between two threads just before. Where
//! CPUs move under the program, compare figures of like round trips only. It pins nothing; for
//! figures to publish use the lab.

use corelay_locks::{CcSynch, DsmSynch, FlatCombining, Mcs, StdMutex};
use corelay_sync::{Session, Shared};
use std::hint::spin_loop;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

const THREADS: u64 = 2;
const TIMES: u64 = 500_000;
const ROUNDS: usize = 7;
const TRIPS: u64 = 20_000;

fn main() {
    for _ in 0..ROUNDS {
        measure("StdMutex", &StdMutex::new(0));
        measure("Mcs", &Mcs::new(0));
        measure("CcSynch", &CcSynch::new(0));
        measure("DsmSynch", &DsmSynch::new(0));
        measure("FlatCombining", &FlatCombining::new(0));
        println!();
    }
}

/// Prints millions of operations per second, all threads together.
fn measure(name: &str, shared: &(impl Shared<Value = u64> + Sync)) {
    let trip = round_trip();
    let seconds = together(|_| {
        let mut session = shared.session();
        (0..TIMES).for_each(|_| session.apply(|n| *n += 1));
    });
    let total = shared.session().apply(|n| *n);
    assert_eq!(total, THREADS * TIMES);
    let millions = total as f64 / 1e6;
    println!("{name:15} {:6.1} Mops  {trip:4.0} ns", millions / seconds);
}

/// Nanoseconds that a line takes to another thread and back.
fn round_trip() -> f64 {
    let ball = AtomicU64::new(0);
    let seconds = together(|thread| {
        for at in (thread..THREADS * TRIPS).step_by(THREADS as usize) {
            while ball.load(Ordering::Acquire) != at {
                spin_loop();
            }
            ball.store(at + 1, Ordering::Release);
        }
    });
    seconds * 1e9 / TRIPS as f64
}

/// Runs `work` in all threads, each with its number. Returns the seconds that they took.
fn together(work: impl Fn(u64) + Sync) -> f64 {
    let (start, work) = (Barrier::new(THREADS as usize + 1), &work);
    let begin = thread::scope(|s| {
        for thread in 0..THREADS {
            let start = &start;
            s.spawn(move || {
                start.wait();
                work(thread);
            });
        }
        start.wait();
        Instant::now()
    });
    begin.elapsed().as_secs_f64()
}
