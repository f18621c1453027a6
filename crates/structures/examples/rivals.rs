//! The lock-free queue and stack beside others: nanoseconds for a push and a pop, over all threads,
//! the median and the least of many rounds.
//!
//! `cargo run --release -p corelay-structures --example rivals [THREADS]`
//!
//! Each thread pushes and pops in turn (`pairs`), or some push and the others pop (`halves`). Threads
//! are pinned, and the structures take turns, so whatever else the machine does affects all of them.

use corelay_structures::lockfree::{MsQueue, TreiberStack};
use crossbeam_queue::{ArrayQueue, SegQueue};
use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Instant;

const ROUNDS: usize = 40;
const PAIRS: usize = 100_000;

/// What all have in common.
trait Values: Sync {
    fn push(&self, value: usize);
    fn pop(&self) -> Option<usize>;
}

macro_rules! values {
    ($($type:ty: |$it:ident, $value:ident| $push:expr, $pop:expr;)*) => {$(
        impl Values for $type {
            #[inline]
            fn push(&self, $value: usize) {
                let $it = self;
                $push
            }
            #[inline]
            fn pop(&self) -> Option<usize> {
                let $it = self;
                $pop
            }
        }
    )*};
}

values! {
    MsQueue<usize>: |it, value| it.push(value), it.pop();
    SegQueue<usize>: |it, value| it.push(value), it.pop();
    ArrayQueue<usize>: |it, value| {
        // As large as it has to be, so never full.
        assert!(it.push(value).is_ok());
    }, it.pop();
    Mutex<VecDeque<usize>>: |it, value| it.lock().unwrap().push_back(value),
        it.lock().unwrap().pop_front();
    TreiberStack<usize, 0>: |it, value| it.push(value), it.pop();
    TreiberStack<usize>: |it, value| it.push(value), it.pop();
    Mutex<Vec<usize>>: |it, value| it.lock().unwrap().push(value), it.lock().unwrap().pop();
}

/// Runs `work` on each of `threads` pinned threads, and returns nanoseconds for each pair.
fn time(threads: usize, work: impl Fn(usize) + Sync) -> f64 {
    let begin = Barrier::new(threads + 1);
    thread::scope(|s| {
        for number in 0..threads {
            let (begin, work) = (&begin, &work);
            s.spawn(move || {
                if let Err(why) = corelay_topology::pin_current_thread(number) {
                    eprintln!("not pinned: {why}");
                }
                begin.wait();
                work(number);
                begin.wait();
            });
        }
        begin.wait();
        let begun = Instant::now();
        begin.wait();
        begun.elapsed().as_nanos() as f64 / PAIRS as f64
    })
}

fn pairs(threads: usize, values: &dyn Values) -> f64 {
    time(threads, |_| {
        for n in 0..PAIRS / threads {
            values.push(n);
            black_box(values.pop());
        }
    })
}

fn halves(threads: usize, values: &dyn Values) -> f64 {
    let half = threads / 2;
    time(threads, |number| {
        let mut left = PAIRS / half;
        while left > 0 {
            if number < half {
                values.push(left);
                left -= 1;
            } else {
                left -= usize::from(black_box(values.pop()).is_some());
            }
        }
    })
}

fn main() {
    let asked = std::env::args().nth(1).map(|text| text.parse());
    let Ok(threads) = asked.unwrap_or(Ok(2)) else {
        eprintln!("THREADS is a number of threads");
        std::process::exit(2);
    };
    let rivals: [(&str, &dyn Values); 7] = [
        ("ms-queue", &MsQueue::new()),
        ("seg-queue", &SegQueue::new()),
        ("array-queue", &ArrayQueue::new(2 * PAIRS)),
        ("mutex-queue", &Mutex::new(VecDeque::new())),
        ("treiber", &TreiberStack::<_, 0>::with_slots()),
        ("treiber-elim", &TreiberStack::new()),
        ("mutex-stack", &Mutex::new(Vec::new())),
    ];
    type Case = fn(usize, &dyn Values) -> f64;
    let cases: [(&str, Case); 2] = [("pairs", pairs), ("halves", halves)];
    for (case, run) in cases {
        if case == "halves" && threads % 2 > 0 {
            continue;
        }
        let mut times = [const { Vec::new() }; 7];
        for _ in 0..ROUNDS {
            for ((_, values), times) in rivals.iter().zip(&mut times) {
                times.push(run(threads, *values));
            }
        }
        println!("{case}, {threads} threads: median and least ns for a push and a pop");
        for ((name, _), mut times) in rivals.iter().zip(times) {
            times.sort_by(f64::total_cmp);
            println!("{name:14} {:7.1} {:7.1}", times[ROUNDS / 2], times[0]);
        }
    }
}
