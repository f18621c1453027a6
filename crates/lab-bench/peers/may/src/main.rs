//! The five benchmarks of fibres on may: stackful coroutines.
//!
//! Equivalent: `park` and `unpark` of a coroutine are the one-seat binary semaphore (an
//! `unpark` that comes first is kept, further ones are dropped); `Semphore` is FIFO and
//! hands over directly; `yield_now`.
//!
//! An `unpark` between another one and the moment at which the woken coroutine runs is lost,
//! where a semaphore would keep it; no benchmark posts twice before stop.
//!
//! Not the same: waking a coroutine from a coroutine wakes no other worker, so that a leader
//! that spins may strand the others, and `transfer` need not complete. may pins its workers.
//!
//! A coroutine that goes on elsewhere must not hold the address of a thread-local: `spawn` is
//! unsafe for that. Ours read one, in a function that is not inlined and returns a number.

#[path = "../../frame/frame.rs"]
mod frame;

use frame::{
    add_one, count_migrations, processor, Aligned, Data, Peer, Plan, Random, Run, LAST_POSTS,
};
use may::coroutine::{self, park, yield_now, Coroutine};
use may::sync::{Semphore, SyncFlag};
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

const PEER: Peer = Peer {
    name: "may",
    version: "0.3.51",
    note: "",
};

fn main() {
    let plan = Plan::from_args();
    may::config().set_workers(plan.processors);
    match plan.bench.as_str() {
        "cycle" => cycle(plan),
        "yield" => yielding(plan),
        "churn" => churn(plan),
        "locality" => locality(plan),
        _ => transfer(plan),
    }
}

/// The fibres of a run, to be woken, once all of them are spawned.
type Fibres = Arc<[Aligned<OnceLock<Coroutine>>]>;

fn fibres(run: &Run) -> Fibres {
    (0..run.plan.crew()).map(|_| Aligned::default()).collect()
}

/// Posts a fibre's one-seat binary semaphore; `park` waits for it.
fn post(fibres: &Fibres, fibre: usize) {
    let coroutine = fibres[fibre].get();
    coroutine.expect("all are spawned before one goes").unpark();
}

/// Spawns the fibres, which wait until all of them are there.
fn spawn<F: FnOnce() + Send + 'static>(
    run: &Arc<Run>,
    fibres: &Fibres,
    body: impl Fn(usize) -> F,
) -> Arc<SyncFlag> {
    let gate = Arc::new(SyncFlag::new());
    for (fibre, coroutine) in fibres.iter().enumerate() {
        let (gate, run, body) = (gate.clone(), run.clone(), body(fibre));
        let inside = move || {
            gate.wait();
            body();
            run.leave();
        };
        // SAFETY: a body needs a few hundred bytes of stack, and keeps no reference to a
        // thread-local, whose one reader is never inlined.
        let handle = unsafe { coroutine::spawn(inside) };
        let _ = coroutine.set(handle.coroutine().clone());
    }
    gate
}

/// Opens the gate, and sees the run through.
fn go(run: &Run, gate: &SyncFlag, end: impl FnOnce()) {
    run.watch(&PEER, || gate.fire(), end);
}

fn cycle(plan: Plan) {
    let rings = plan.fibres;
    let run = Run::new(plan);
    let all = fibres(&run);
    let gate = spawn(&run, &all, |fibre| {
        let (run, all) = (run.clone(), all.clone());
        move || {
            let next = (fibre + rings) % all.len();
            loop {
                park();
                post(&all, next);
                if run.counted(fibre) {
                    return;
                }
            }
        }
    });
    (0..rings).for_each(|fibre| post(&all, fibre));
    go(&run, &gate, || {
        (0..all.len()).for_each(|fibre| post(&all, fibre));
    });
}

fn yielding(plan: Plan) {
    let run = Run::new(plan);
    let all = fibres(&run);
    let gate = spawn(&run, &all, |fibre| {
        let run = run.clone();
        move || loop {
            yield_now();
            if run.counted(fibre) {
                return;
            }
        }
    });
    go(&run, &gate, || {});
}

fn churn(plan: Plan) {
    let run = Run::new(plan);
    let all = fibres(&run);
    let empty = || Aligned(Semphore::new(0));
    let semaphores: Arc<[_]> = (0..run.plan.semaphores).map(|_| empty()).collect();
    let gate = spawn(&run, &all, |fibre| {
        let (run, semaphores) = (run.clone(), semaphores.clone());
        move || {
            let mut random = Random::new(run.plan.seed, fibre);
            let mut first = fibre < semaphores.len();
            loop {
                let semaphore = &semaphores[random.below(semaphores.len())];
                if !std::mem::take(&mut first) {
                    semaphore.post();
                }
                semaphore.wait();
                if run.counted(fibre) {
                    return;
                }
            }
        }
    });
    go(&run, &gate, || {
        for semaphore in &*semaphores {
            (0..LAST_POSTS).for_each(|_| semaphore.post());
        }
    });
}

/// What a fibre of locality takes when it goes on.
type Context = Aligned<AtomicPtr<Data>>;

/// In a spot: nobody, one beyond the last fibre, or a fibre's number plus one.
type Spot = Aligned<AtomicUsize>;

fn locality(plan: Plan) {
    let run = Run::new(plan);
    let all = fibres(&run);
    let (t, closed) = (run.plan.fibres, run.plan.fibres + 1);
    let spots: Arc<[Spot]> = (0..run.plan.spots).map(|_| Spot::default()).collect();
    // Leaked: the arrays live as long as the process, so that they can be given away freely.
    let contexts: &'static [Context] = (0..t)
        .map(|_| {
            let data = Box::leak(Box::new(Data::new(run.plan.words)));
            Aligned(AtomicPtr::new(data))
        })
        .collect::<Vec<_>>()
        .leak();
    let gate = spawn(&run, &all, |fibre| {
        let (run, all, spots) = (run.clone(), all.clone(), spots.clone());
        move || {
            let mut random = Random::new(run.plan.seed, fibre);
            let mine = &contexts[fibre];
            let mut before = processor(run.plan.processors);
            loop {
                // SAFETY: arrays are leaked.
                let data: &'static Data = unsafe { &*mine.load(Ordering::Relaxed) };
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
                    if run.plan.share {
                        let given = std::ptr::from_ref(data).cast_mut();
                        // Relaxed: the post publishes it.
                        contexts[who - 1].store(given, Ordering::Relaxed);
                    }
                    post(&all, who - 1);
                }
                park();
                if run.stopped() {
                    return;
                }
                // SAFETY: arrays are leaked.
                let data = unsafe { &*mine.load(Ordering::Relaxed) };
                run.counted(fibre);
                before = count_migrations(&run, fibre, before, data);
            }
        }
    });
    go(&run, &gate, || {
        for spot in &*spots {
            let who = spot.swap(closed, Ordering::AcqRel);
            if who != 0 {
                post(&all, who - 1);
            }
        }
    });
}

fn transfer(plan: Plan) {
    let run = Run::new(plan);
    let (t, limit, parking) = (run.plan.fibres, run.plan.iterations, run.plan.parking);
    let all = fibres(&run);
    let indices: Arc<[Aligned<AtomicU64>]> = (0..t).map(|_| Aligned::default()).collect();
    let first = Random::new(run.plan.seed, t).below(t);
    let leader = Arc::new(Aligned(AtomicUsize::new(first)));
    let gate = spawn(&run, &all, |fibre| {
        let (run, all, indices) = (run.clone(), all.clone(), indices.clone());
        let leader = leader.clone();
        move || {
            let mut random = Random::new(run.plan.seed, fibre);
            let mine = &indices[fibre];
            let wake_others = || {
                let others = (0..t).filter(|other| *other != fibre);
                others.for_each(|other| post(&all, other));
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
                yield_now();
                let index = mine.load(Ordering::Relaxed);
                if run.leads.load(Ordering::Acquire) == index {
                    add_one(&run.tallies[fibre].rechecks);
                    continue;
                }
                mine.store(index + 1, Ordering::Release);
                if parking {
                    park();
                } else {
                    yield_now();
                }
            }
        }
    });
    go(&run, &gate, || {});
}
