//! A rough speed check: two threads add to one number behind each lock.
//!
//! `cargo run --release -p corelay-locks --example speed`
//!
//! Beside each figure stand the slower thread's share of the work and the round trip of a cache line
//! between two threads just before. Where CPUs move under the program, compare figures of like round
//! trips only. It pins nothing; for figures to publish use the lab.

use corelay_locks::{CcSynch, DsmSynch, FlatCombining, Mcs, StdMutex};
use corelay_sync::{Session, Shared};
use std::hint::spin_loop;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const THREADS: u64 = 2;
const TIME: Duration = Duration::from_millis(50);
const ROUNDS: usize = 10;
const TRIPS: u64 = 2_000;

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
    let (begin, stop) = (Instant::now(), AtomicBool::new(false));
    let done = together(|thread| {
        let (mut session, mut done) = (shared.session(), 0);
        while !stop.load(Ordering::Relaxed) {
            session.apply(|n| *n += 1);
            done += 1;
            if thread == 0 && done % 1024 == 0 {
                stop.store(begin.elapsed() >= TIME, Ordering::Relaxed);
            }
        }
        done
    });
    let seconds = begin.elapsed().as_secs_f64();
    let total = shared.session().apply(|n| *n);
    assert_eq!(total, done.iter().sum());
    let millions = total as f64 / 1e6 / seconds;
    let share = 100 * done.iter().min().unwrap_or(&0) / total;
    println!("{name:15} {millions:6.1} Mops {share:3} % {trip:5.0} ns");
}

/// Nanoseconds that a line takes to another thread and back.
fn round_trip() -> f64 {
    let ball = AtomicU64::new(0);
    let times = together(|thread| {
        let begin = Instant::now();
        for at in (thread..THREADS * TRIPS).step_by(THREADS as usize) {
            while ball.load(Ordering::Acquire) != at {
                spin_loop();
            }
            ball.store(at + 1, Ordering::Release);
        }
        begin.elapsed().as_nanos()
    });
    times[0] as f64 / TRIPS as f64
}

/// Runs `work` in all threads at once, each with its number, and returns their results.
fn together<R: Send>(work: impl Fn(u64) -> R + Sync) -> Vec<R> {
    let (start, work) = (Barrier::new(THREADS as usize), &work);
    thread::scope(|s| {
        let run = |thread| {
            let start = &start;
            s.spawn(move || {
                start.wait();
                work(thread)
            })
        };
        let threads: Vec<_> = (0..THREADS).map(run).collect();
        let results = threads.into_iter().map(|t| t.join());
        results.map(|r| r.expect("nobody panics")).collect()
    })
}
