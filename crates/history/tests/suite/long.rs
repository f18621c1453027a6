//! Long histories of many clients, right and wrong, without a moment of quiet.
//!
//! They are checked within the limits below, which bound memory and, with it, time.

use crate::support::{FoundOf, HistoryOf, Rng, explained, refuted, replaced};
use corelay_history::model::register::{Operation, Output, Register};
use corelay_history::model::{counter, heap, lru, map, queue, set, stack};
use corelay_history::{Call, Failure, History, check, check_within};

const CALLS: usize = 100_000;
const CLIENTS: usize = 8;
/// The value that nobody writes towards the end.
const RARE: u32 = 4;

/// Histories with few values, which repeat all the time; `RARE` occurs only before the last 500
/// calls.
fn registers() -> HistoryOf<Register<u32>> {
    let model = Register::new(0);
    explained(&model, CLIENTS, CALLS, &mut Rng::new(1), |rng, n| {
        let values = if n < CALLS - 500 { RARE + 1 } else { RARE };
        let mut value = || rng.below(u64::from(values)) as u32;
        let (current, new) = (value(), value());
        match rng.below(10) {
            0..5 => Operation::Read,
            5..8 => Operation::Write(new),
            _ => Operation::CompareExchange { current, new },
        }
    })
}

/// The same history, but a read near the end returns `value`.
fn spoiled(value: u32) -> HistoryOf<Register<u32>> {
    let history = registers();
    let calls = history.calls_of(3);
    let reads = |index: &usize| calls[*index].operation() == &Operation::Read;
    let index = (0..calls.len() - 2)
        .rev()
        .find(reads)
        .expect("half of them read");
    let when = calls[index].invoked()..=calls[index].ended().unwrap();
    let wrong = Call::returned(Operation::Read, when, Output::Value(value));
    replaced(&history, (3, index), wrong)
}

/// Whether something is in flight at every moment between the first calls and the last.
fn is_never_quiet<O, R>(history: &History<O, R>) -> bool {
    let mut ends: Vec<(u64, i32)> = Vec::new();
    for (_, call) in history.calls() {
        ends.push((call.invoked(), 1));
        ends.push((call.ended().unwrap(), -1));
    }
    ends.sort_unstable();
    let mut in_flight = 0;
    ends[..ends.len() - 1].iter().all(|(_, change)| {
        in_flight += change;
        in_flight > 0
    })
}

/// Checks that the counterexample fails by itself from each of the states that it names.
#[track_caller]
fn proves(found: &FoundOf<Register<u32>>) {
    let mut part = History::new();
    for (thread, call) in found.calls() {
        part.push(thread, call.clone());
    }
    for state in found.states() {
        let state = state.parse().unwrap();
        refuted(&Register::new(state), &part);
    }
}

#[test]
fn a_register_that_is_right() {
    let history = registers();
    assert!(is_never_quiet(&history));
    assert_eq!((history.len(), history.threads()), (CALLS, CLIENTS));
    check_within(&Register::new(0), &history, 1 << 14).unwrap();
}

/// The stale value was written thousands of times, and replaced long before.
#[test]
fn a_register_with_a_stale_read_near_its_end() {
    let wrong = check_within(&Register::new(0), &spoiled(RARE), 1 << 14).unwrap_err();
    let Failure::NotLinearizable(found) = wrong else {
        panic!("{wrong}");
    };
    assert_eq!(found.unexplained().1.output(), Some(&Output::Value(RARE)));
    assert!(found.calls().count() <= 4, "{found}");
    proves(&found);
}

#[test]
fn a_register_with_a_value_from_nowhere_near_its_end() {
    let found = refuted(&Register::new(0), &spoiled(99));
    assert_eq!(found.calls().count(), 1, "{found}");
    proves(&found);
}

#[test]
fn a_counter_with_an_update_lost_near_its_end() {
    use counter::{Counter, Operation};
    let model = Counter::new(0);
    let history = explained(
        &model,
        CLIENTS,
        20_000,
        &mut Rng::new(2),
        |rng, _| match rng.below(4) {
            0 => Operation::Read,
            _ => Operation::FetchAdd(1),
        },
    );
    check(&model, &history).unwrap();
    let calls = history.calls_of(1);
    let adds = |index: &usize| calls[*index].operation() == &Operation::FetchAdd(1);
    let mut late = (0..calls.len()).rev().filter(adds);
    let (last, earlier) = (late.next().unwrap(), late.next().unwrap());
    let when = calls[last].invoked()..=calls[last].ended().unwrap();
    let twice = calls[earlier].output().unwrap().clone();
    let wrong = Call::returned(Operation::FetchAdd(1), when, twice.clone());
    let found = refuted(&model, &replaced(&history, (1, last), wrong));
    // Another thread has seen a higher count before.
    assert_eq!(found.calls().count(), 2, "{found}");
    assert_eq!(found.unexplained().1.output(), Some(&twice));
}

#[test]
fn a_map() {
    use map::Operation::*;
    let model = map::Map::new();
    let mut history = explained(&model, CLIENTS, 50_000, &mut Rng::new(3), |rng, n| {
        let key = rng.below(64);
        [Get(key), Insert(key, n), Remove(key)][rng.below(3) as usize].clone()
    });
    check(&model, &history).unwrap();
    let end = u64::MAX - 10;
    history.push(0, Call::returned(Remove(5), end..=end + 1, Some(1_000_000)));
    assert_eq!(refuted(&model, &history).calls().count(), 1);
}

/// The values inside may be in more orders than could be kept, and nobody knows which until they
/// come out.
#[test]
fn a_queue() {
    use queue::Operation::*;
    let model = queue::Queue::new();
    let history = explained(&model, 4, 3_000, &mut Rng::new(4), |rng, n| {
        if rng.below(100) < 48 {
            Enqueue(n)
        } else {
            Dequeue
        }
    });
    check_within(&model, &history, 1 << 16).unwrap();
}

/// The value that came out first comes out a second time.
#[test]
fn a_queue_that_gives_a_value_twice() {
    use queue::{Operation::*, Output};
    let model = queue::Queue::new();
    let mut history = explained(&model, 3, 600, &mut Rng::new(4), |rng, n| {
        if rng.below(100) < 42 {
            Enqueue(n)
        } else {
            Dequeue
        }
    });
    check(&model, &history).unwrap();
    let first = history.calls().find_map(|(_, call)| match call.output() {
        Some(Output::Dequeued(Some(n))) => Some(*n),
        _ => None,
    });
    let end = u64::MAX - 10;
    let twice = Call::returned(Dequeue, end..=end + 1, Output::Dequeued(first));
    history.push(0, twice.clone());
    let found = refuted(&model, &history);
    assert_eq!(found.unexplained(), (0, &twice));
    assert_eq!(found.calls().count(), 1, "{found}");
}

#[test]
fn a_stack() {
    use stack::Operation::*;
    let model = stack::Stack::new();
    let history = explained(&model, 4, 3_000, &mut Rng::new(5), |rng, n| {
        if rng.below(100) < 48 { Push(n) } else { Pop }
    });
    check_within(&model, &history, 1 << 16).unwrap();
}

#[test]
fn a_set() {
    use set::Operation::*;
    let model = set::Set::new();
    let mut history = explained(&model, CLIENTS, 50_000, &mut Rng::new(6), |rng, _| {
        let key = rng.below(64);
        [Contains(key), Insert(key), Remove(key)][rng.below(3) as usize].clone()
    });
    check(&model, &history).unwrap();
    let end = u64::MAX - 10;
    // Whether the key was there or not, one of the two is wrong.
    history.push(0, Call::returned(Insert(5), end..=end + 1, true));
    history.push(1, Call::returned(Remove(5), end + 2..=end + 3, false));
    refuted(&model, &history);
}

/// The order in which values came does not matter, so a heap is easier than a queue.
#[test]
fn a_heap() {
    use heap::{Operation::*, Output};
    let model = heap::Heap::new();
    let mut history = explained(&model, 4, 3_000, &mut Rng::new(7), |rng, n| {
        if rng.below(100) < 48 {
            Push((rng.below(1_000), n))
        } else {
            Pop
        }
    });
    check_within(&model, &history, 1 << 16).unwrap();
    let end = u64::MAX - 10;
    let never_pushed = Output::Value(Some((0, 5_000)));
    history.push(0, Call::returned(Pop, end..=end + 1, never_pushed));
    refuted(&model, &history);
}

#[test]
fn an_lru_map() {
    use lru::{Operation::*, Output};
    let model = lru::Lru::new(std::num::NonZeroUsize::new(8).unwrap());
    let mut history = explained(&model, 3, 3_000, &mut Rng::new(8), |rng, n| {
        let key = rng.below(12);
        match rng.below(4) {
            0..2 => Get(key),
            2 => Push(key, n),
            _ => Remove(key),
        }
    });
    check_within(&model, &history, 1 << 16).unwrap();
    let end = u64::MAX - 10;
    let stale = Output::Value(Some(5_000));
    history.push(0, Call::returned(Get(3), end..=end + 1, stale));
    refuted(&model, &history);
}
