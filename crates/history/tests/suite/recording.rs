//! Recorders on real threads.

use crate::support::{Rng, refuted, scaled};
use corelay_history::model::{counter, map, queue};
use corelay_history::{History, Model, Recorder, check};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Barrier, Mutex};

const THREADS: usize = 4;

/// Each thread records `body`, given its number.
fn recorded<O: Send, R: Send>(body: impl Fn(usize, &mut Recorder<O, R>) + Sync) -> History<O, R> {
    let mut recorders: Vec<_> = (0..THREADS)
        .map(|_| Recorder::with_capacity(1000))
        .collect();
    std::thread::scope(|s| {
        for (thread, recorder) in recorders.iter_mut().enumerate() {
            let body = &body;
            s.spawn(move || body(thread, recorder));
        }
    });
    recorders.into_iter().collect()
}

#[test]
fn a_map_behind_a_mutex_is_linearizable() {
    use map::Operation::{self, *};
    let shared = Mutex::new(BTreeMap::new());
    let history = recorded(|thread, recorder| {
        let mut rng = Rng::new(thread as u64 + 1);
        for n in 0..scaled(2_000) {
            let key = rng.below(5);
            let operation = match rng.below(3) {
                0 => Get(key),
                1 => Insert(key, n),
                _ => Remove(key),
            };
            recorder.record(operation, |operation: &Operation<u64, usize>| {
                let mut map = shared.lock().unwrap();
                match operation {
                    Get(key) => map.get(key).copied(),
                    Insert(key, value) => map.insert(*key, *value),
                    Remove(key) => map.remove(key),
                }
            });
        }
    });
    assert_eq!(history.len(), THREADS * scaled(2_000));
    check(&map::Map::new(), &history).unwrap();
}

/// Only the thread that took a value shows the order of the values inside.
#[test]
fn a_queue_behind_a_mutex_is_linearizable() {
    use queue::Operation::{Dequeue, Enqueue};
    let model = queue::Queue::new();
    let shared = Mutex::new(model.initial());
    let history = recorded(|thread, recorder| {
        let mut rng = Rng::new(thread as u64 + 1);
        for n in 0..scaled(1_000) {
            let operation = match rng.below(2) {
                0 => Enqueue(n * THREADS + thread),
                _ => Dequeue,
            };
            recorder.record(operation, |operation| {
                model.step(&mut shared.lock().unwrap(), operation)
            });
        }
    });
    check(&model, &history).unwrap();
}

/// A counter that adds in two steps, between which all threads wait for each other.
#[test]
fn a_counter_that_loses_updates_is_found_out() {
    use counter::{Counter, Operation, Output};
    let (count, all) = (AtomicI64::new(0), Barrier::new(THREADS));
    let history = recorded(|_, recorder| {
        for _ in 0..10 {
            recorder.record(Operation::FetchAdd(1), |_| {
                let before = count.load(Ordering::SeqCst);
                all.wait();
                count.store(before + 1, Ordering::SeqCst);
                Output::Value(before)
            });
            all.wait();
        }
    });
    let found = refuted(&Counter::new(0), &history);
    // Two of the four that found 0.
    assert_eq!(found.calls().count(), 2, "{found}");
    assert!(
        found
            .calls()
            .all(|(_, call)| call.output() == Some(&Output::Value(0)))
    );
}

#[test]
fn a_thread_that_panics_leaves_its_call_pending() {
    use counter::{Counter, Operation, Output};
    let count = AtomicI64::new(0);
    let mut recorders = [Recorder::new(), Recorder::new()];
    let [one, two] = &mut recorders;
    std::thread::scope(|s| {
        let panics = s.spawn(|| {
            one.record(Operation::FetchAdd(1), |_| {
                Output::Value(count.fetch_add(1, Ordering::SeqCst))
            });
            one.record(Operation::FetchAdd(1), |_| {
                count.fetch_add(1, Ordering::SeqCst);
                panic!("after the fact")
            });
        });
        assert!(panics.join().is_err());
    });
    let seen = two.record(Operation::Read, |_| {
        Output::Value(count.load(Ordering::SeqCst))
    });
    assert_eq!(seen, &Output::Value(2));
    let history: History<_, _> = recorders.into_iter().collect();
    assert_eq!(history.calls_of(0)[1].output(), None);
    check(&Counter::new(0), &history).unwrap();
}

/// A thread has several calls in flight, as callbacks have.
#[test]
fn calls_may_return_in_another_order() {
    use counter::{Counter, Operation, Output};
    let mut recorder = Recorder::new();
    let first = recorder.invoke(Operation::FetchAdd(1));
    let second = recorder.invoke(Operation::FetchAdd(1));
    // The second one took effect first.
    recorder.respond(second, Output::Value(0));
    recorder.respond(first, Output::Value(1));
    let third = recorder.invoke(Operation::FetchAdd(1));
    recorder.respond(third, Output::Value(2));
    let history: History<_, _> = [recorder].into_iter().collect();
    check(&Counter::new(0), &history).unwrap();
}

#[test]
#[should_panic(expected = "respond to an invocation of the same recorder")]
fn an_invocation_belongs_to_its_recorder() {
    let (mut one, mut two) = (Recorder::new(), Recorder::<&str, ()>::new());
    let invocation = one.invoke("one");
    one.respond(invocation, ());
    let foreign = one.invoke("another");
    two.respond(foreign, ());
}
