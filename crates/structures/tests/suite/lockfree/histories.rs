//! Recorded histories are linearizable: many short ones, in which threads meet on one or two values.

use crate::stress;
use corelay_history::model::{map, queue, stack};
use corelay_history::{History, Model, Recorder, check};
use corelay_structures::lockfree::{BlockQueue, HarrisList, MsQueue, TreiberStack};
use std::sync::Barrier;
use std::thread;

const HISTORIES: usize = 150;
const THREADS: u32 = 3;
const CALLS: u32 = 12;

/// Checks histories of a new structure each. `call` makes call `n` of a thread.
fn check_histories<S, M>(
    model: &M,
    make: impl Fn() -> S,
    call: impl Fn(&S, &mut Recorder<M::Operation, M::Output>, u32, u32) + Sync,
) where
    S: Sync,
    M: Model<Operation: Send, Output: Send>,
{
    for _ in 0..HISTORIES * stress() {
        let shared = make();
        let begin = Barrier::new(THREADS as usize);
        let mut recorders: Vec<_> = (0..THREADS)
            .map(|_| Recorder::with_capacity(CALLS as usize))
            .collect();
        thread::scope(|s| {
            for (number, recorder) in (0..).zip(&mut recorders) {
                let (shared, begin, call) = (&shared, &begin, &call);
                s.spawn(move || {
                    begin.wait();
                    (0..CALLS).for_each(|n| call(shared, recorder, number, n));
                });
            }
        });
        let history: History<_, _> = recorders.into_iter().collect();
        assert_eq!(history.len(), (THREADS * CALLS) as usize);
        check(model, &history).unwrap();
    }
}

fn check_queue<Q: Default + Sync>(
    push: impl Fn(&Q, u32) + Sync,
    pop: impl Fn(&Q) -> Option<u32> + Sync,
) {
    use queue::Operation::{Dequeue, Enqueue};
    use queue::Output::{Dequeued, Enqueued};
    check_histories(
        &queue::Queue::new(),
        Q::default,
        |queue, recorder, number, n| {
            let value = number * CALLS + n;
            if (number + n) % 2 == 0 {
                recorder.record(Enqueue(value), |_| {
                    push(queue, value);
                    Enqueued
                });
            } else {
                recorder.record(Dequeue, |_| Dequeued(pop(queue)));
            }
        },
    );
}

#[test]
fn ms_queue() {
    check_queue(MsQueue::push, MsQueue::pop);
}

/// With a block for each value, with some blocks, and with one.
#[test]
fn block_queue() {
    check_queue(BlockQueue::<_, 1>::push, BlockQueue::pop);
    check_queue(BlockQueue::<_, 4>::push, BlockQueue::pop);
    check_queue(BlockQueue::<_, 63>::push, BlockQueue::pop);
}

/// With and without elimination.
#[test]
fn treiber_stack() {
    use stack::Operation::{Pop, Push};
    use stack::Output::{Popped, Pushed};
    fn check_stack<const SLOTS: usize>() {
        type Of<const SLOTS: usize> = TreiberStack<u32, SLOTS>;
        let model = stack::Stack::new();
        check_histories(
            &model,
            Of::<SLOTS>::with_slots,
            |stack, recorder, number, n| {
                let value = number * CALLS + n;
                if (number + n) % 2 == 0 {
                    recorder.record(Push(value), |_| {
                        stack.push(value);
                        Pushed
                    });
                } else {
                    recorder.record(Pop, |_| Popped(stack.pop()));
                }
            },
        );
    }
    check_stack::<0>();
    check_stack::<1>();
    check_stack::<4>();
}

/// A set is a map to nothing, of which an insertion replaces nothing.
#[test]
fn harris_list() {
    use map::Operation::{Get, Insert, Remove};
    let some_if = |is_there: bool| is_there.then_some(());
    check_histories(
        &map::Map::new(),
        HarrisList::new,
        |list, recorder, number, n| {
            let key = (number + n) % 3;
            match (number * 5 + n) % 4 {
                0 | 1 => recorder.record(Insert(key, ()), |_| some_if(!list.insert(key))),
                2 => recorder.record(Remove(key), |_| some_if(list.remove(&key))),
                _ => recorder.record(Get(key), |_| some_if(list.contains(&key))),
            };
        },
    );
}
