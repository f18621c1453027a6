//! The lock-free queues and stack beside others: nanoseconds for a push and a pop, over all threads,
//! the median and the least of many rounds.
//!
//! `cargo run --release -p corelay-structures --example rivals [THREADS]`
//!
//! Each thread pushes and pops in turn (`pairs`), or some push and the others pop (`halves`). Threads
//! are pinned, and the structures take turns, so whatever else the machine does affects all of them.
//! Besides, the cost of nodes: boxes, or from the pool.

use corelay_structures::lockfree::{BlockQueue, MsQueue, TreiberStack};
use corelay_structures::pool::Pool;
use crossbeam_queue::{ArrayQueue, SegQueue};
use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Instant;

const ROUNDS: usize = 40;
const PAIRS: usize = 100_000;
const RIVALS: usize = 8;

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
    BlockQueue<usize>: |it, value| it.push(value), it.pop();
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

/// Runs `work` on each of `threads` pinned threads, and returns nanoseconds for each pair, from the
/// first thread's beginning to the last one's end.
fn time(threads: usize, work: impl Fn(usize) + Sync) -> f64 {
    let begin = Barrier::new(threads);
    let times: Vec<_> = thread::scope(|s| {
        let spawn = |number| {
            let (begin, work) = (&begin, &work);
            s.spawn(move || {
                if let Err(why) = corelay_topology::pin_current_thread(number) {
                    eprintln!("not pinned: {why}");
                }
                begin.wait();
                let begun = Instant::now();
                work(number);
                (begun, Instant::now())
            })
        };
        let threads: Vec<_> = (0..threads).map(spawn).collect();
        let ended = threads.into_iter().map(|thread| thread.join());
        ended
            .map(|times| times.expect("no thread panics"))
            .collect()
    });
    let begun = times.iter().map(|(begun, _)| *begun).min();
    let ended = times.iter().map(|(_, ended)| *ended).max();
    let time = begun.zip(ended).map(|(begun, ended)| ended - begun);
    time.unwrap_or_default().as_nanos() as f64 / PAIRS as f64
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

/// Allocates nodes of two words and retires them, which frees them, all on this thread.
fn retire<N: Send + 'static>(make: impl Fn() -> N) -> f64 {
    let begun = Instant::now();
    for _ in 0..PAIRS {
        let node = black_box(make());
        crossbeam_epoch::pin().defer(move || drop(node));
    }
    begun.elapsed().as_nanos() as f64 / PAIRS as f64
}

/// The median and the least.
fn show(name: &str, mut times: Vec<f64>) {
    times.sort_by(f64::total_cmp);
    println!("{name:14} {:7.1} {:7.1}", times[times.len() / 2], times[0]);
}

fn main() {
    let asked = std::env::args().nth(1).map(|text| text.parse());
    let Ok(threads @ 1..) = asked.unwrap_or(Ok(2)) else {
        eprintln!("THREADS is a number of threads, from 1 on");
        std::process::exit(2);
    };
    let rivals: [(&str, &dyn Values); RIVALS] = [
        ("ms-queue", &MsQueue::new()),
        ("block-queue", &BlockQueue::new()),
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
        let mut times = [const { Vec::new() }; RIVALS];
        for _ in 0..ROUNDS {
            for ((_, values), times) in rivals.iter().zip(&mut times) {
                times.push(run(threads, *values));
            }
        }
        println!("{case}, {threads} threads: median and least ns for a push and a pop");
        for ((name, _), times) in rivals.iter().zip(times) {
            show(name, times);
        }
    }
    println!("1 thread: median and least ns to allocate a node, retire and free it");
    let session = Pool::new().session();
    let mut times = [const { Vec::new() }; 2];
    for _ in 0..ROUNDS {
        times[0].push(retire(|| Box::new([0_usize; 2])));
        times[1].push(retire(|| session.alloc([0_usize; 2])));
    }
    for (name, times) in ["box", "pool"].into_iter().zip(times) {
        show(name, times);
    }
}
