//! Small random histories, right and wrong, against a checker that tries every order.

use crate::support::{FoundOf, HistoryOf, OPEN, Rng, brute_force, explained};
use corelay_history::model::{counter, heap, lru, map, queue, register, set, stack};
use corelay_history::{Call, Failure, History, Model, check};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::cell::Cell;

/// Damage done to a history that had an explanation.
#[derive(Debug, Clone)]
struct Spoil {
    seed: u64,
    threads: usize,
    calls: usize,
    /// Stamps are divided by this, so that many are equal.
    coarse: u64,
    /// In percent: answers exchanged for those of other calls, and answers lost.
    swapped: u64,
    lost: u64,
}

fn spoils() -> impl Strategy<Value = Spoil> {
    let all = (
        any::<u64>(),
        1..4usize,
        1..8usize,
        1..60u64,
        0..40u64,
        0..30u64,
    );
    all.prop_map(|(seed, threads, calls, coarse, swapped, lost)| Spoil {
        seed,
        threads,
        calls,
        coarse,
        swapped,
        lost,
    })
}

fn spoiled<M: Model>(
    model: &M,
    spoil: &Spoil,
    operation: impl Fn(&mut Rng) -> M::Operation,
) -> HistoryOf<M> {
    let mut rng = Rng::new(spoil.seed);
    let right = explained(model, spoil.threads, spoil.calls, &mut rng, |rng, _| {
        operation(rng)
    });
    let outputs: Vec<M::Output> = right
        .calls()
        .map(|(_, c)| c.output().unwrap().clone())
        .collect();
    let mut history = History::new();
    for (thread, call) in right.calls() {
        let invoked = call.invoked() / spoil.coarse;
        let ended = call.ended().unwrap() / spoil.coarse;
        let mut output = call.output().unwrap().clone();
        if rng.below(100) < spoil.swapped {
            output = outputs[rng.below(outputs.len() as u64) as usize].clone();
        }
        let call = if rng.below(100) < spoil.lost {
            Call::pending(call.operation().clone(), invoked)
        } else {
            Call::returned(call.operation().clone(), invoked..=ended, output)
        };
        history.push(thread, call);
    }
    history
}

/// The history up to the return that is not explained, with all calls disregarded but those of
/// `found`. Of these, number `except` is disregarded too: pending, or left out if it changes
/// nothing. `None` if stamps are so coarse that calls of a thread meet: leaving a return out would
/// then leave out the order within the thread as well.
fn relaxed<M: Model>(
    model: &M,
    history: &HistoryOf<M>,
    found: &FoundOf<M>,
    except: Option<usize>,
) -> Option<HistoryOf<M>> {
    let mut relaxed = History::new();
    let place = |call| history.calls().position(|it| it == call);
    let culprit = place(found.unexplained());
    let end = found.unexplained().1.ended();
    for (number, (thread, call)) in history.calls().enumerate() {
        let next = history.calls_of(thread).iter().filter(|next| *next != call);
        if next
            .into_iter()
            .any(|next| Some(next.invoked()) == call.ended())
            || place((thread, call)) != Some(number)
        {
            return None;
        }
        let (operation, invoked) = (call.operation().clone(), call.invoked());
        let (at, output) = (
            found.calls().position(|it| it == (thread, call)),
            call.output(),
        );
        let observes = output.is_some_and(|o| model.observes(&operation, o));
        // Returns with equal stamps come in the order of their threads.
        let returned = (call.ended(), Some(number)) <= (end, culprit);
        match output {
            Some(_) if at.is_some() && at != except && returned => {
                relaxed.push(thread, call.clone());
            }
            Some(output) if at.is_some() && at != except => {
                let open = Call::returned(operation, invoked..=OPEN, output.clone());
                relaxed.push(thread, open);
            }
            _ if observes && Some(number) != culprit => {}
            _ => relaxed.push(thread, Call::pending(operation, invoked)),
        }
    }
    Some(relaxed)
}

/// Checks that the counterexample fails by itself, and that there is an explanation if any one of
/// its calls is disregarded too.
fn is_smallest<M: Model>(model: &M, history: &HistoryOf<M>, found: &FoundOf<M>) {
    let Some(all) = relaxed(model, history, found, None) else {
        return;
    };
    assert!(!brute_force(model, &all), "{found}{history:?}");
    for (at, call) in found.calls().enumerate() {
        let less = relaxed(model, history, found, Some(at)).expect("as before");
        assert!(
            brute_force(model, &less),
            "not needed: {call:?}\n{found}{history:?}"
        );
    }
}

/// Checks that both verdicts occur, and that brute force agrees with each.
fn agrees_with_brute_force<M: Model>(model: &M, operation: impl Fn(&mut Rng) -> M::Operation) {
    let cases = crate::support::scaled(1_500) as u32;
    let (right, wrong) = (Cell::new(0), Cell::new(0));
    let mut runner = TestRunner::new(Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    });
    let property = |spoil: Spoil| {
        let history = spoiled(model, &spoil, &operation);
        match check(model, &history) {
            Ok(()) => {
                right.set(right.get() + 1);
                prop_assert!(brute_force(model, &history), "wrong: {history:?}");
            }
            Err(Failure::NotLinearizable(found)) => {
                wrong.set(wrong.get() + 1);
                prop_assert!(!brute_force(model, &history), "right: {history:?}\n{found}");
                is_smallest(model, &history, &found);
            }
            Err(gave_up) => prop_assert!(false, "{gave_up}"),
        }
        Ok(())
    };
    if let Err(error) = runner.run(&spoils(), property) {
        panic!("{error}");
    }
    let (right, wrong) = (right.get(), wrong.get());
    assert!(
        right > cases / 20 && wrong > cases / 20,
        "{right} right, {wrong} wrong"
    );
}

#[test]
fn registers() {
    use register::Operation::*;
    agrees_with_brute_force(&register::Register::new(0), |rng| {
        let mut value = || rng.below(3);
        let (current, new) = (value(), value());
        match rng.below(6) {
            0..2 => Read,
            2..4 => Write(new),
            _ => CompareExchange { current, new },
        }
    });
}

#[test]
fn counters() {
    use counter::Operation::*;
    agrees_with_brute_force(&counter::Counter::new(0), |rng| {
        let by = rng.below(3) as i64 - 1;
        [Read, Add(by), FetchAdd(by), AddFetch(by)][rng.below(4) as usize].clone()
    });
}

#[test]
fn maps() {
    use map::Operation::*;
    agrees_with_brute_force(&map::Map::new(), |rng| {
        let key = rng.below(2);
        match rng.below(3) {
            0 => Get(key),
            1 => Insert(key, rng.below(2)),
            _ => Remove(key),
        }
    });
}

/// Values that repeat, and values that hardly do: the model then reads their order off.
#[test]
fn queues() {
    use queue::Operation::*;
    for values in [2, 1_000] {
        agrees_with_brute_force(&queue::Queue::new(), |rng| match rng.below(2) {
            0 => Enqueue(rng.below(values)),
            _ => Dequeue,
        });
    }
}

#[test]
fn stacks() {
    use stack::Operation::*;
    for values in [2, 1_000] {
        agrees_with_brute_force(&stack::Stack::new(), |rng| match rng.below(2) {
            0 => Push(rng.below(values)),
            _ => Pop,
        });
    }
}

#[test]
fn sets() {
    use set::Operation::*;
    agrees_with_brute_force(&set::Set::new(), |rng| {
        let key = rng.below(2);
        [Contains(key), Insert(key), Remove(key)][rng.below(3) as usize].clone()
    });
}

#[test]
fn heaps() {
    use heap::Operation::*;
    for values in [3, 1_000] {
        agrees_with_brute_force(&heap::Heap::new(), |rng| match rng.below(5) {
            0..2 => Push(rng.below(values)),
            2..4 => Pop,
            _ => Peek,
        });
    }
}

#[test]
fn lru_maps() {
    use lru::Operation::*;
    for capacity in [1, 2] {
        let lru = lru::Lru::new(std::num::NonZeroUsize::new(capacity).unwrap());
        agrees_with_brute_force(&lru, |rng| {
            let (key, value) = (rng.below(3), rng.below(2));
            match rng.below(8) {
                0 => Peek(key),
                1..3 => Get(key),
                3 => Insert(key, value),
                4..6 => Push(key, value),
                6 => Remove(key),
                _ => PopLru,
            }
        });
    }
}

/// The wrong model says "observes" of a write.
#[test]
#[should_panic(expected = "Model::observes is wrong about `()")]
fn a_model_that_errs_about_observing_panics() {
    struct Toggle;
    impl Model for Toggle {
        type Operation = ();
        type Output = bool;
        type State = bool;
        type Key = ();
        fn initial(&self) -> bool {
            false
        }
        fn step(&self, state: &mut bool, (): &()) -> bool {
            std::mem::replace(state, !*state)
        }
        fn key(&self, (): &()) {}
        fn observes(&self, (): &(), _output: &bool) -> bool {
            true
        }
    }
    let mut history = History::new();
    history.push(0, Call::returned((), 0..=1, false));
    let _ = check(&Toggle, &history);
}
