//! A published value beside its rivals: nanoseconds for a load, and for an update while others load.
//!
//! | rival | what it is |
//! |---|---|
//! | published | `Published`: loads ask nobody, a trustee makes the updates |
//! | arc-swap | an `ArcSwap` in an `Arc`, updated by its `rcu`, a loop of compare and swap |
//! | rwlock | `std`'s `RwLock`, read for a load |
//! | mutex | `std`'s `Mutex`, taken for a load |
//! | trust | a `Trust` alone, which is asked for each load |
//!
//! The value is an array of eight words, of which a load reads two. Rivals take turns, and a figure is
//! the median of the rounds, with the least beside it.
//!
//! `cargo run --release -p corelay-structures --example published` runs all cases. With a rival and a
//! number of loads, it runs these on one thread, for callgrind.

use arc_swap::ArcSwap;
use corelay_delegate::{Trust, Trustees};
use corelay_structures::published::Published;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex, RwLock};
use std::thread;
use std::time::{Duration, Instant};

type Value = [u64; 8];

const ROUNDS: usize = 41;
/// The time of a round, far longer than a thread takes to begin.
const ROUND: Duration = Duration::from_millis(4);
/// Calls between two looks at the time.
const STEP: usize = 64;

/// A value that is read by `load` and changed by `update`.
trait Rival: Send + Sync {
    fn load(&self) -> u64;
    fn update(&self);
}

fn look(value: &Value) -> u64 {
    value[0] + value[7]
}

fn change(value: &mut Value) {
    value[0] += 1;
    value[7] += 1;
}

impl Rival for Published<Value> {
    fn load(&self) -> u64 {
        look(&Published::load(self))
    }
    fn update(&self) {
        Published::update(self, change);
    }
}

impl Rival for Arc<ArcSwap<Value>> {
    fn load(&self) -> u64 {
        look(&ArcSwap::load(self))
    }
    fn update(&self) {
        self.rcu(|value| {
            let mut copy = **value;
            change(&mut copy);
            copy
        });
    }
}

impl Rival for RwLock<Value> {
    fn load(&self) -> u64 {
        look(&self.read().unwrap())
    }
    fn update(&self) {
        change(&mut self.write().unwrap());
    }
}

impl Rival for Mutex<Value> {
    fn load(&self) -> u64 {
        look(&self.lock().unwrap())
    }
    fn update(&self) {
        change(&mut self.lock().unwrap());
    }
}

impl Rival for Trust<Value> {
    fn load(&self) -> u64 {
        self.apply(|value| look(value))
    }
    fn update(&self) {
        self.apply(change);
    }
}

fn rival(name: &str, trustees: &Trustees) -> Option<Box<dyn Rival>> {
    Some(match name {
        "published" => Box::new(Published::new(trustees, Value::default())),
        "arc-swap" => Box::new(Arc::new(ArcSwap::from_pointee(Value::default()))),
        "rwlock" => Box::new(RwLock::new(Value::default())),
        "mutex" => Box::new(Mutex::new(Value::default())),
        "trust" => Box::new(trustees.entrust(Value::default())),
        _ => return None,
    })
}

const RIVALS: [&str; 5] = ["published", "arc-swap", "rwlock", "mutex", "trust"];

/// Runs `work` for a round. Returns the nanoseconds of each time.
fn timed(mut work: impl FnMut()) -> f64 {
    let (begin, mut times) = (Instant::now(), 0);
    loop {
        (0..STEP).for_each(|_| work());
        times += STEP;
        let passed = begin.elapsed();
        if passed >= ROUND {
            return passed.as_nanos() as f64 / times as f64;
        }
    }
}

/// Loads on `threads` threads at a time.
fn loads(rival: &dyn Rival, threads: usize) -> f64 {
    let all = Barrier::new(threads);
    let load = || {
        all.wait();
        timed(|| {
            black_box(rival.load());
        })
    };
    let sum: f64 = thread::scope(|s| {
        let threads: Vec<_> = (0..threads).map(|_| s.spawn(load)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    sum / threads as f64
}

/// Updates by this thread while another one loads.
fn updates(rival: &dyn Rival) -> f64 {
    let (is_over, all) = (AtomicBool::new(false), Barrier::new(2));
    thread::scope(|s| {
        s.spawn(|| {
            all.wait();
            while !is_over.load(Ordering::Relaxed) {
                black_box(rival.load());
            }
        });
        all.wait();
        let time = timed(|| rival.update());
        is_over.store(true, Ordering::Relaxed);
        time
    })
}

/// A row of the table, and the function that takes its times.
type Case<'a> = (&'a str, &'a dyn Fn(&dyn Rival) -> f64);

fn main() {
    let trustees = Trustees::dedicated(1).start().unwrap();
    let mut args = std::env::args().skip(1);
    if let Some(name) = args.next() {
        let count = args.next().and_then(|count| count.parse::<usize>().ok());
        let (Some(rival), Some(count)) = (rival(&name, &trustees), count) else {
            eprintln!(
                "published: give one of {}, and a number of loads",
                RIVALS.join(", ")
            );
            std::process::exit(2);
        };
        for _ in 0..count {
            black_box(rival.load());
        }
        return;
    }
    let rivals = RIVALS.map(|name| rival(name, &trustees).unwrap());
    let cases: [Case; 3] = [
        ("load, 1 thread", &|rival| loads(rival, 1)),
        ("load, 2 threads", &|rival| loads(rival, 2)),
        ("update beside loads", &updates),
    ];
    println!(
        "ns, median (least)   {}",
        RIVALS.map(|name| format!("{name:>18}")).concat()
    );
    for (case, run) in cases {
        let mut times = RIVALS.map(|_| Vec::with_capacity(ROUNDS));
        for _ in 0..ROUNDS {
            for (rival, times) in rivals.iter().zip(&mut times) {
                times.push(run(&**rival));
            }
        }
        print!("{case:21}");
        for mut times in times {
            times.sort_by(f64::total_cmp);
            let figure = format!("{:.1} ({:.1})", times[ROUNDS / 2], times[0]);
            print!("{figure:>18}");
        }
        println!();
    }
}
