//! Calls of several threads, recorded and checked: each took effect at one moment.

use crate::fine_sets::{Set, for_each_set};
use crate::{Random, stress};
use corelay_history::model::queue::{self, Operation::*, Output};
use corelay_history::model::set;
use corelay_history::{History, Model, Recorder, check};
use corelay_structures::fine::TwoLockQueue;
use std::sync::Barrier;

/// Threads begin together, again and again, on a structure that is empty each time.
fn record<S: Sync, M: Model>(
    model: &M,
    make: impl Fn() -> S,
    call: impl Fn(&S, &mut Recorder<M::Operation, M::Output>, &mut Random, u64) + Sync,
) where
    M::Operation: Send,
    M::Output: Send,
{
    for round in 0..20 * stress() as u64 {
        let threads = 2 + round % 3;
        let (shared, begin) = (make(), Barrier::new(threads as usize));
        let history: History<_, _> = std::thread::scope(|s| {
            let thread = |thread| {
                let (shared, begin, call) = (&shared, &begin, &call);
                s.spawn(move || {
                    let mut recorder = Recorder::new();
                    let mut random = Random::new(8 * round + thread);
                    begin.wait();
                    for n in 0..40 {
                        call(shared, &mut recorder, &mut random, threads * n + thread);
                    }
                    recorder
                })
            };
            let threads: Vec<_> = (0..threads).map(thread).collect();
            let recorders = threads.into_iter().map(|thread| thread.join());
            recorders
                .map(|recorder| recorder.expect("no thread panics"))
                .collect()
        });
        check(model, &history).unwrap();
    }
}

for_each_set!({ a_set_is_linearizable: u64 });

fn a_set_is_linearizable<S: Set<u64>>() {
    use set::Operation::{Contains, Insert, Remove};
    record(&set::Set::new(), S::make, |shared, recorder, random, _| {
        let key = random.below(4) as u64;
        match random.below(3) {
            0 => recorder.record(Contains(key), |_| shared.has(&key)),
            1 => recorder.record(Insert(key), |_| shared.add(key)),
            _ => recorder.record(Remove(key), |_| shared.take(&key)),
        };
    });
}

#[test]
fn a_queue_is_linearizable() {
    record(
        &queue::Queue::new(),
        TwoLockQueue::new,
        |shared, recorder, random, n| {
            if random.below(2) == 0 {
                recorder.record(Enqueue(n), |_| {
                    shared.push(n);
                    Output::Enqueued
                });
            } else {
                recorder.record(Dequeue, |_| Output::Dequeued(shared.pop()));
            }
        },
    );
}
