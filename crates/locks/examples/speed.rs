//! A rough speed check: two threads add to one number behind each lock.
//!
//! `cargo run --release -p corelay-locks --example speed`
//!
//! It pins nothing and takes no probes, so two runs may differ by a factor of two or more. For
//! figures use the lab.

use corelay_locks::{CcSynch, DsmSynch, FlatCombining, Mcs};
use corelay_sync::{Session, Shared};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Instant;

const THREADS: u64 = 2;
const TIMES: u64 = 2_000_000;

fn main() {
    let mutex = Mutex::new(0_u64);
    print("Mutex", || {
        (0..TIMES).for_each(|_| *mutex.lock().expect("nobody panics") += 1);
    });
    measure("Mcs", &Mcs::new(0));
    measure("CcSynch", &CcSynch::new(0));
    measure("DsmSynch", &DsmSynch::new(0));
    measure("FlatCombining", &FlatCombining::new(0));
}

fn measure(name: &str, shared: &(impl Shared<Value = u64> + Sync)) {
    print(name, || {
        let mut session = shared.session();
        (0..TIMES).for_each(|_| session.apply(|n| *n += 1));
    });
    assert_eq!(shared.session().apply(|n| *n), THREADS * TIMES);
}

/// Runs `work` in each thread and prints millions of operations per second, all threads together.
fn print(name: &str, work: impl Fn() + Sync) {
    let start = Barrier::new(THREADS as usize + 1);
    let begin = thread::scope(|s| {
        for _ in 0..THREADS {
            s.spawn(|| {
                start.wait();
                work();
            });
        }
        start.wait();
        Instant::now()
    });
    let millions = (THREADS * TIMES) as f64 / 1e6;
    println!(
        "{name:15} {:6.1} Mops",
        millions / begin.elapsed().as_secs_f64()
    );
}
