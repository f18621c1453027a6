//! Calls on each key are linearizable, in all forms and in batches.
//!
//! `CORELAY_STRESS=10 cargo test …` records ten times as many calls.

use crate::support::{block_on, dedicated, flat};
use corelay_delegate::{Team, Trustees, barrier};
use corelay_history::model::map::Map;
use corelay_history::model::map::Operation::{self, Get, Insert, Remove};
use corelay_history::{History, Recorder, check};
use corelay_structures::sharded::ShardedMap;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Barrier, Mutex};

type Notes = Recorder<Operation<u64, u64>, Option<u64>>;
type Shared = ShardedMap<u64, u64>;

const KEYS: u64 = 6;

/// One round of a thread's calls, with values that are its own: in each form, and batches of all
/// keys.
fn round(map: &Shared, notes: &Rc<RefCell<Notes>>, n: u64) {
    let call = |operation: Operation<u64, u64>| {
        notes
            .borrow_mut()
            .record(operation, |operation| match operation {
                Get(key) => map.get(key),
                Insert(key, value) => map.insert(*key, *value),
                Remove(key) => map.remove(key),
            });
    };
    let key = n % KEYS;
    match n / KEYS % 7 {
        0 => call(Insert(key, n)),
        1 => call(Get(key)),
        2 => call(Remove(key)),
        3 => {
            let invocation = notes.borrow_mut().invoke(Insert(key, n));
            let result = block_on(map.insert_async(key, n)).expect("nothing panics");
            notes.borrow_mut().respond(invocation, result);
        }
        4 => {
            let invocation = notes.borrow_mut().invoke(Get(key));
            let later = Rc::clone(notes);
            map.get_then(key, move |result| {
                later.borrow_mut().respond(invocation, result)
            });
        }
        5 => {
            let begun: Vec<_> = (0..KEYS)
                .map(|key| notes.borrow_mut().invoke(Insert(key, n)))
                .collect();
            let results = map.insert_many((0..KEYS).map(|key| (key, n)));
            for (invocation, result) in begun.into_iter().zip(results) {
                notes.borrow_mut().respond(invocation, result);
            }
        }
        _ => {
            let begun: Vec<_> = (0..KEYS)
                .map(|key| notes.borrow_mut().invoke(Get(key)))
                .collect();
            let keys: Vec<_> = (0..KEYS).collect();
            for (invocation, result) in begun.into_iter().zip(map.get_many(&keys)) {
                notes.borrow_mut().respond(invocation, result);
            }
        }
    }
}

/// Records the calls of `threads` threads, which `run` runs, and checks them.
fn check_calls(
    map: &Shared,
    threads: usize,
    calls: u64,
    run: impl FnOnce(&(dyn Fn(usize) + Sync)),
) {
    let (all, recorders) = (Barrier::new(threads), Mutex::new(Vec::new()));
    run(&|thread| {
        let notes = Rc::new(RefCell::new(Notes::new()));
        all.wait();
        for n in 0..calls {
            round(map, &notes, n * threads as u64 + thread as u64);
        }
        barrier().expect("nothing panics");
        let notes = Rc::into_inner(notes).expect("no callback is left");
        recorders
            .lock()
            .expect("never poisoned")
            .push(notes.into_inner());
    });
    let recorders = recorders.into_inner().expect("never poisoned");
    let history: History<_, _> = recorders.into_iter().collect();
    check(&Map::new(), &history).unwrap();
}

fn on_threads(trustees: &Trustees, shards: usize, threads: usize, calls: u64) {
    let map = ShardedMap::with_shards(trustees, shards);
    check_calls(&map, threads, calls, |work| {
        std::thread::scope(|s| {
            for thread in 0..threads {
                s.spawn(move || work(thread));
            }
        });
    });
}

fn on_members(team: &Team, shards: usize, calls: u64) {
    let map = ShardedMap::with_shards(team, shards);
    check_calls(&map, team.len(), calls, |work| {
        team.run(|me| work(me.number()));
    });
}

fn calls() -> u64 {
    let factor = std::env::var("CORELAY_STRESS").map_or(1.0, |text| {
        text.parse::<f64>().expect("CORELAY_STRESS is a number")
    });
    ((200.0 * factor) as u64).max(1)
}

#[test]
fn calls_on_dedicated_trustees_are_linearizable() {
    for shards in [1, 2, 3] {
        on_threads(&dedicated(2), shards, 3, calls());
    }
}

#[test]
fn calls_on_flat_teams_are_linearizable() {
    for (members, shards) in [(2, 2), (3, 5)] {
        on_members(&flat(members), shards, calls());
    }
}

#[test]
#[ignore = "thousands of histories, for a quiet hour"]
fn thousands_of_histories_are_linearizable() {
    let trustees = dedicated(2);
    let teams = [flat(2), flat(4)];
    for n in 0..2000 {
        on_threads(&trustees, 1 + n % 4, 2 + n % 3, 40);
        teams
            .iter()
            .for_each(|team| on_members(team, 1 + n % 5, 40));
    }
}
