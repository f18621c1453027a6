//! The five benchmarks of fibres on Tokio: tasks of the multi-threaded runtime.
//!
//! Equivalent: `Notify` with one waiter is the one-seat binary semaphore (`notify_one` stores
//! one permit and drops further ones); `Semaphore` is FIFO and hands over directly;
//! `yield_now`.
//!
//! Not the same: a task that yields goes behind those that the worker finds by then
//! (deferred), and a woken one into a slot that nobody steals from; both strand tasks behind
//! a leader that spins, so that `transfer` need not complete. A fibre is a state machine
//! without a stack.

#[path = "../../frame/frame.rs"]
mod frame;

use frame::{
    add_one, count_migrations, processor, Aligned, Data, Peer, Plan, Random, Run, LAST_POSTS,
};
use std::future::Future;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;
use tokio::runtime::Runtime;
use tokio::sync::{Notify, Semaphore};
use tokio::task::yield_now;

const PEER: Peer = Peer {
    name: "tokio",
    version: "1.54.1",
    note: "",
};

fn main() {
    let plan = Plan::from_args();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(plan.processors)
        .build()
        .unwrap_or_else(|error| {
            eprintln!("tokio does not start: {error}");
            std::process::exit(2)
        });
    match plan.bench.as_str() {
        "cycle" => cycle(&runtime, plan),
        "yield" => yielding(&runtime, plan),
        "churn" => churn(&runtime, plan),
        "locality" => locality(&runtime, plan),
        _ => transfer(&runtime, plan),
    }
    // Its workers may sleep for good; the process ends without asking them.
    runtime.shutdown_background();
}

/// The one-seat binary semaphore.
type Seat = Aligned<Notify>;

fn seats(n: usize) -> Arc<[Seat]> {
    (0..n).map(|_| Seat::default()).collect()
}

/// Spawns the fibres, which wait until all of them are there.
fn spawn<F: Future<Output = ()> + Send + 'static>(
    runtime: &Runtime,
    run: &Arc<Run>,
    body: impl Fn(usize) -> F,
) -> Arc<Semaphore> {
    let gate = Arc::new(Semaphore::new(0));
    for fibre in 0..run.plan.crew() {
        let (gate, run, body) = (gate.clone(), run.clone(), body(fibre));
        runtime.spawn(async move {
            gate.acquire().await.expect("it stays open").forget();
            body.await;
            run.leave();
        });
    }
    gate
}

/// Opens the gate, and sees the run through.
fn go(run: &Run, gate: &Semaphore, end: impl FnOnce()) {
    run.watch(&PEER, || gate.add_permits(run.plan.crew()), end);
}

fn cycle(runtime: &Runtime, plan: Plan) {
    let rings = plan.fibres;
    let run = Run::new(plan);
    let all = seats(run.plan.crew());
    let gate = spawn(runtime, &run, |fibre| {
        let (run, all) = (run.clone(), all.clone());
        async move {
            let (mine, next) = (&all[fibre], &all[(fibre + rings) % all.len()]);
            loop {
                mine.notified().await;
                next.notify_one();
                if run.counted(fibre) {
                    return;
                }
            }
        }
    });
    all[..rings].iter().for_each(|seat| seat.notify_one());
    go(&run, &gate, || {
        all.iter().for_each(|seat| seat.notify_one())
    });
}

fn yielding(runtime: &Runtime, plan: Plan) {
    let run = Run::new(plan);
    let gate = spawn(runtime, &run, |fibre| {
        let run = run.clone();
        async move {
            loop {
                yield_now().await;
                if run.counted(fibre) {
                    return;
                }
            }
        }
    });
    go(&run, &gate, || {});
}

fn churn(runtime: &Runtime, plan: Plan) {
    let run = Run::new(plan);
    let empty = || Aligned(Semaphore::new(0));
    let all: Arc<[_]> = (0..run.plan.semaphores).map(|_| empty()).collect();
    let gate = spawn(runtime, &run, |fibre| {
        let (run, all) = (run.clone(), all.clone());
        async move {
            let mut random = Random::new(run.plan.seed, fibre);
            let mut first = fibre < all.len();
            loop {
                let semaphore = &all[random.below(all.len())];
                if !std::mem::take(&mut first) {
                    semaphore.add_permits(1);
                }
                semaphore.acquire().await.expect("it stays open").forget();
                if run.counted(fibre) {
                    return;
                }
            }
        }
    });
    go(&run, &gate, || {
        all.iter()
            .for_each(|semaphore| semaphore.add_permits(LAST_POSTS));
    });
}

/// Where a fibre of locality sits.
#[repr(align(128))]
struct Context {
    seat: Notify,
    /// What its fibre takes when it goes on.
    data: AtomicPtr<Data>,
}

/// In a spot: nobody, one beyond the last fibre, or a fibre's number plus one.
type Spot = Aligned<AtomicUsize>;

fn locality(runtime: &Runtime, plan: Plan) {
    let run = Run::new(plan);
    let (t, closed) = (run.plan.fibres, run.plan.fibres + 1);
    let spots: Arc<[Spot]> = (0..run.plan.spots).map(|_| Spot::default()).collect();
    // Leaked: the arrays live as long as the process, so that they can be given away freely.
    let contexts: &'static [Context] = (0..t)
        .map(|_| Context {
            seat: Notify::new(),
            data: AtomicPtr::new(Box::leak(Box::new(Data::new(run.plan.words)))),
        })
        .collect::<Vec<_>>()
        .leak();
    let gate = spawn(runtime, &run, |fibre| {
        let (run, spots) = (run.clone(), spots.clone());
        async move {
            let mut random = Random::new(run.plan.seed, fibre);
            let mine = &contexts[fibre];
            let mut before = processor(run.plan.processors);
            loop {
                // SAFETY: arrays are leaked.
                let data: &'static Data = unsafe { &*mine.data.load(Ordering::Relaxed) };
                data.touch(run.plan.touches, &mut random);
                let spot = &spots[random.below(spots.len())];
                let mut who = spot.load(Ordering::Acquire);
                loop {
                    if who == closed {
                        return;
                    }
                    // AcqRel: who finds me finds what I wrote, and I what it wrote.
                    match spot.compare_exchange_weak(
                        who,
                        fibre + 1,
                        Ordering::AcqRel,
                        Ordering::Acquire,
                    ) {
                        Ok(_) => break,
                        Err(now) => who = now,
                    }
                }
                if who != 0 {
                    let other = &contexts[who - 1];
                    if run.plan.share {
                        let given = std::ptr::from_ref(data).cast_mut();
                        // Relaxed: the post publishes it.
                        other.data.store(given, Ordering::Relaxed);
                    }
                    other.seat.notify_one();
                }
                mine.seat.notified().await;
                if run.stopped() {
                    return;
                }
                // SAFETY: arrays are leaked.
                let data = unsafe { &*mine.data.load(Ordering::Relaxed) };
                run.counted(fibre);
                before = count_migrations(&run, fibre, before, data);
            }
        }
    });
    go(&run, &gate, || {
        for spot in &*spots {
            let who = spot.swap(closed, Ordering::AcqRel);
            if who != 0 {
                contexts[who - 1].seat.notify_one();
            }
        }
    });
}

fn transfer(runtime: &Runtime, plan: Plan) {
    let run = Run::new(plan);
    let (t, limit, parking) = (run.plan.fibres, run.plan.iterations, run.plan.parking);
    let all = seats(t);
    let indices: Arc<[Aligned<AtomicU64>]> = (0..t).map(|_| Aligned::default()).collect();
    let first = Random::new(run.plan.seed, t).below(t);
    let leader = Arc::new(Aligned(AtomicUsize::new(first)));
    let gate = spawn(runtime, &run, |fibre| {
        let (run, all, indices) = (run.clone(), all.clone(), indices.clone());
        let leader = leader.clone();
        async move {
            let mut random = Random::new(run.plan.seed, fibre);
            let mine = &indices[fibre];
            let wake_others = || {
                let others = all.iter().enumerate().filter(|(i, _)| *i != fibre);
                others.for_each(|(_, seat)| seat.notify_one());
            };
            loop {
                let now = leader.load(Ordering::Acquire);
                if now == usize::MAX {
                    return;
                }
                if now == fibre {
                    let index = run.leads.load(Ordering::Relaxed) + 1;
                    mine.store(index, Ordering::Relaxed);
                    run.leads.store(index, Ordering::Release);
                    if index > limit {
                        run.stamp();
                        leader.store(usize::MAX, Ordering::Release);
                        wake_others();
                        return;
                    }
                    for other in &*indices {
                        while other.load(Ordering::Acquire) != index {
                            std::hint::spin_loop();
                        }
                    }
                    add_one(&run.tallies[fibre].operations);
                    leader.store(random.below(t), Ordering::Release);
                    if parking {
                        wake_others();
                    }
                    continue;
                }
                yield_now().await;
                let index = mine.load(Ordering::Relaxed);
                if run.leads.load(Ordering::Acquire) == index {
                    add_one(&run.tallies[fibre].rechecks);
                    continue;
                }
                mine.store(index + 1, Ordering::Release);
                if parking {
                    all[fibre].notified().await;
                } else {
                    yield_now().await;
                }
            }
        }
    });
    go(&run, &gate, || {});
}
