//! Measures tables in turn, with the same work on each.
//!
//! `scale FOLDER SECONDS BLOCKS MOST MILLISECONDS THREADS WHO` leaves `samples.jsonl` in the
//! folder, a line for each slice of time. THREADS and WHO (`yours`, `start`, `reference`) are
//! lists with commas. One block is a slice of each table with each number of threads. The program
//! makes blocks until BLOCKS of them were free of other programs, but at most MOST in all, and
//! none after half of the time.

#![forbid(unsafe_code)]

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs, hint, thread};

/// Keys that are asked for. Half of them are in the table.
const KEYS: u64 = 1 << 14;
/// Calls between two looks at whether the slice is over.
const BATCH: u64 = 64;

trait Map: Sync {
    fn insert(&self, key: u64, value: u64) -> Option<u64>;
    fn get(&self, key: u64) -> Option<u64>;
    fn remove(&self, key: u64) -> Option<u64>;
}

macro_rules! maps {
    ($($name:ident)*) => {
        $(impl Map for $name::Table {
            fn insert(&self, key: u64, value: u64) -> Option<u64> {
                $name::Table::insert(self, key, value)
            }
            fn get(&self, key: u64) -> Option<u64> {
                $name::Table::get(self, key)
            }
            fn remove(&self, key: u64) -> Option<u64> {
                $name::Table::remove(self, key)
            }
        })*
        /// Makes the table of that name, and returns a function that runs a slice on it.
        fn named(name: &str) -> Box<dyn Fn(usize, Duration) -> Slice> {
            match name {
                $(stringify!($name) => {
                    let table = $name::Table::with_capacity(KEYS as usize);
                    fill(&table);
                    Box::new(move |threads, length| slice(&table, threads, length))
                })*
                _ => panic!("{name} is no table"),
            }
        }
    };
}

maps! { yours start reference }

struct Slice {
    seconds: f64,
    per_thread: Vec<u64>,
    /// CPU time of the threads; 0 if the system does not count it.
    cpu_s: f64,
}

fn main() {
    let args: Vec<String> = env::args().skip(1).collect();
    let [folder, limit, blocks, most, length, threads, who] = &args[..] else {
        panic!("FOLDER SECONDS BLOCKS MOST MILLISECONDS THREADS WHO");
    };
    let number = |text: &str| text.parse::<u64>().expect("a number");
    let (began, limit) = (Instant::now(), Duration::from_secs(number(limit)));
    thread::spawn(move || {
        thread::sleep(limit + Duration::from_secs(5));
        std::process::abort();
    });
    // A thread that waits for one that panicked would wait for ever.
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        print(info);
        std::process::exit(1);
    }));
    let mut file = File::create(Path::new(folder).join("samples.jsonl")).expect("a folder");
    let length = Duration::from_millis(number(length));
    let threads: Vec<usize> = threads.split(',').map(|n| number(n) as usize).collect();
    let tables: Vec<_> = who.split(',').map(|name| (name, named(name))).collect();
    // This first run touches pages and fills caches.
    for (_, run) in &tables {
        threads.iter().for_each(|&n| drop(run(n, length / 4)));
    }
    let (mut block, mut free) = (0, 0);
    while free < number(blocks) && block < number(most) as usize && began.elapsed() < limit / 2 {
        let mut is_free = true;
        for &threads in &threads {
            // Each table is first in its turn.
            for turn in 0..tables.len() {
                let (name, run) = &tables[(block + turn) % tables.len()];
                let slice = run(threads, length);
                is_free &= slice.is_free() || threads > 1 && *name != "reference";
                writeln!(file, "{}", slice.line(name, block)).expect("a folder");
            }
        }
        block += 1;
        free += u64::from(is_free);
    }
}

impl Slice {
    /// Whether the threads had their CPUs, or the system does not say. The lab judges by the same
    /// rule.
    fn is_free(&self) -> bool {
        self.cpu_s == 0.0 || self.cpu_s >= 0.8 * self.seconds * self.per_thread.len() as f64
    }

    fn line(&self, name: &str, block: usize) -> String {
        let Self {
            seconds,
            per_thread,
            cpu_s,
        } = self;
        let threads = per_thread.len();
        format!(
            r#"{{"who":"{name}","block":{block},"threads":{threads},"seconds":{seconds},"per_thread":{per_thread:?},"cpu_s":{cpu_s}}}"#
        )
    }
}

fn fill(table: &impl Map) {
    (0..KEYS)
        .step_by(2)
        .for_each(|key| _ = table.insert(key, key));
}

/// Runs a slice: of ten calls, eight look, one inserts and one removes.
fn slice(table: &impl Map, threads: usize, length: Duration) -> Slice {
    let (waiting, over) = (AtomicUsize::new(threads + 1), AtomicBool::new(false));
    let meet = || {
        waiting.fetch_sub(1, Ordering::SeqCst);
        let mut spins = 0u32;
        while waiting.load(Ordering::SeqCst) > 0 {
            spins += 1;
            match spins % 200 {
                0 => thread::yield_now(),
                _ => hint::spin_loop(),
            }
        }
    };
    let work = |thread: usize| {
        let mut dice = 0x2545_F491_4F6C_DD1D ^ (thread as u64 + 1) << 17;
        let mut calls = 0;
        meet();
        let before = cpu_s();
        while !over.load(Ordering::Relaxed) {
            for _ in 0..BATCH {
                // Xorshift (Marsaglia, 2003).
                dice ^= dice << 13;
                dice ^= dice >> 7;
                dice ^= dice << 17;
                let key = dice >> 40 & (KEYS - 1);
                hint::black_box(match dice % 10 {
                    0 => table.insert(key, dice),
                    1 => table.remove(key),
                    _ => table.get(key),
                });
            }
            calls += BATCH;
        }
        (calls, cpu_s() - before)
    };
    thread::scope(|scope| {
        let work = &work;
        let all: Vec<_> = (0..threads).map(|n| scope.spawn(move || work(n))).collect();
        meet();
        let began = Instant::now();
        thread::sleep(length);
        over.store(true, Ordering::Relaxed);
        let seconds = began.elapsed().as_secs_f64();
        let done: Vec<(u64, f64)> = all.into_iter().map(|one| one.join().unwrap()).collect();
        Slice {
            seconds,
            per_thread: done.iter().map(|one| one.0).collect(),
            cpu_s: done.iter().map(|one| one.1).sum(),
        }
    })
}

/// Returns the CPU time of this thread so far, as Linux counts it; 0 elsewhere.
fn cpu_s() -> f64 {
    let said = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = said
        .split(' ')
        .next()
        .and_then(|text| text.parse::<u64>().ok());
    nanoseconds.unwrap_or(0) as f64 * 1e-9
}
