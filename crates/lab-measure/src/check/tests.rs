//! All pairs, a few histories each; and broken methods and structures, which have to be found.
//!
//! `CORELAY_STRESS=10 cargo test …` records ten times as many histories. `cargo xtask deep smoke`
//! records thousands, by the program.

use super::action::Request;
use super::kind::Kind;
use super::structure::Plain;
use super::*;
use crate::method::{self, lock, trust};
use crate::workload::operation::{Answer, Workload};
use crate::workload::random::Client;
use crate::workload::structure::rivals::{Locked, Sharded, TwoCopies, concurrent};
use crate::workload::structure::{self as structures, seq};
use Action::{Get, Insert, Push, Remove};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Mutex;
use std::thread::yield_now;

fn stress() -> u64 {
    std::env::var("CORELAY_STRESS").map_or(1, |times| times.parse().unwrap())
}

fn plan(threads: usize, histories: u64) -> Plan {
    Plan {
        threads,
        operations: 12,
        histories,
        seed: 1,
    }
}

fn run(structure: &'static Structure, method: Method<Recorded>, plan: Plan) -> Checked {
    let checker = Checker::new(plan).unwrap();
    let never = AtomicBool::new(false);
    checker.check(structure, method, &never, || {}).unwrap()
}

#[test]
fn every_structure_by_every_method_is_linearizable() {
    let histories = 3 * stress();
    let never = AtomicBool::new(false);
    // Two clients beside a trustee.
    let checker = Checker::new(plan(3, histories)).unwrap();
    let (mut calls, mut overlapping) = (0, 0);
    for structure in &STRUCTURES {
        let methods = methods().into_iter().map(|entry| entry.method);
        for method in methods.filter(|method| is_pair(structure, method)) {
            let checked = checker.check(structure, method, &never, || {}).unwrap();
            let picture = checked.counterexample.as_ref().map(|found| &found.picture);
            let picture = picture.map_or("", String::as_str);
            assert!(checked.is_right(), "{checked:?}\n{picture}");
            assert_eq!((checked.histories, checked.undecided), (histories, 0));
            (calls, overlapping) = (calls + checked.calls, overlapping + checked.overlapping);
        }
    }
    // How many of them is up to the machine.
    assert!(overlapping > 0, "none of {calls} calls met another one");
}

/// Checks a structure that is only made for a test.
fn is_right(name: &'static str, kind: Kind, make: fn() -> structure::Concurrent) {
    let make = structure::Make::Concurrent(make);
    let made = Box::leak(Box::new(Structure { name, kind, make }));
    let plan = plan(3, 3 * stress());
    let checked = run(made, direct::entry().method, plan);
    let picture = checked.counterexample.as_ref().map(|found| &found.picture);
    assert!(
        checked.is_right(),
        "{checked:?}\n{}",
        picture.map_or("", String::as_str)
    );
    assert_eq!((checked.histories, checked.undecided), (plan.histories, 0));
}

#[test]
fn every_structure_whose_method_knows_its_operations_is_linearizable() {
    macro_rules! locked {
        ($kind:ident: $($structure:ty)*) => {$(
            let name = <$structure as structures::Structure>::NAME;
            is_right(name, Kind::$kind, || {
                Box::new(concurrent::<Locked<std::sync::RwLock<$structure>>>(4))
            });
            is_right(name, Kind::$kind, || {
                Box::new(concurrent::<Locked<parking_lot::RwLock<$structure>>>(4))
            });
            is_right(name, Kind::$kind, || Box::new(concurrent::<TwoCopies<$structure>>(4)));
        )*};
    }
    macro_rules! sharded {
        ($($structure:ty)*) => {$(
            let name = <$structure as structures::Structure>::NAME;
            is_right(name, Kind::Set, || Box::new(concurrent::<Sharded<$structure>>(4)));
        )*};
    }
    locked!(Set: seq::SortedList<u64> seq::ChainedMap<u64, u64> seq::SkipList<u64, u64>
        seq::SearchTree<u64, u64>);
    locked!(Queue: seq::VecDeque<u64>);
    locked!(Stack: Vec<u64>);
    locked!(Heap: seq::BinaryHeap<u64>);
    sharded!(seq::SortedList<u64> seq::ChainedMap<u64, u64> seq::SkipList<u64, u64>
        seq::SearchTree<u64, u64>);
}

#[test]
fn each_method_and_each_structure_has_a_partner() {
    let methods = methods();
    for structure in &STRUCTURES {
        assert!(
            methods
                .iter()
                .any(|entry| is_pair(structure, &entry.method))
        );
    }
    for entry in &methods {
        let takes = |structure| is_pair(structure, &entry.method);
        assert!(STRUCTURES.iter().any(takes), "{}", entry.name());
    }
    for name in [
        "mutex",
        "rwlock",
        "parking-lot-rwlock",
        "tas",
        "flat-combining",
        "cc-synch",
        "dsm-synch",
        "trust",
        "trust-then",
        "trust-async",
        "trust-fibre",
        "flat-adaptive",
        "flat-apply",
        "direct",
    ] {
        assert!(methods.iter().any(|entry| entry.name() == name), "{name}");
    }
}

#[test]
fn an_interrupt_ends_a_check() {
    let checker = Checker::new(plan(2, 10)).unwrap();
    let interrupted = AtomicBool::new(true);
    let checked = checker.check(&STRUCTURES[0], lock::mutex(), &interrupted, || {});
    let checked = checked.unwrap();
    assert_eq!((checked.histories, checked.is_right()), (0, true));
}

/// The most histories in which a broken method or structure must be found; they are made ten by ten.
const MOST: u64 = 500;

/// Checks `structure` by `method` until it is found out.
#[track_caller]
fn is_found(structure: &'static Structure, method: Method<Recorded>, threads: usize) {
    let checked = (0..MOST / 10).find_map(|n| {
        let seed = n + 1;
        let checked = run(
            structure,
            method,
            Plan {
                seed,
                ..plan(threads, 10)
            },
        );
        (checked.wrong > 0).then_some(checked)
    });
    let name = structure.name;
    let checked = checked.unwrap_or_else(|| panic!("{name} was not found out"));
    assert!(!checked.is_right());
    let found = checked.counterexample.unwrap();
    println!("{name}: {}", found.picture);
    assert!(
        found.picture.starts_with("not linearizable"),
        "{}",
        found.picture
    );
    assert!(found.calls > 0);
}

/// A method that keeps the actions instead of the object, and runs them again on a copy for each
/// call. It is right if it does all that under its lock.
struct Replays {
    workload: Recorded,
    threads: usize,
    /// Whether it reads in one section and writes in another one.
    splits: bool,
    actions: Box<[Mutex<Vec<Action>>]>,
}

impl Replays {
    fn boxed(workload: Recorded, point: &Point, splits: bool) -> Box<dyn Contender> {
        Box::new(Self {
            workload,
            threads: point.threads,
            splits,
            actions: (0..point.vars).map(|_| Mutex::default()).collect(),
        })
    }

    fn copy(&self, actions: &[Action]) -> Plain {
        let mut copy = self.workload.object();
        actions.iter().for_each(|&action| _ = copy(action));
        copy
    }

    fn call(&self, var: usize, Request { action, .. }: Request) -> Reply {
        let mut actions = self.actions[var].lock().unwrap();
        let mut copy = self.copy(&actions);
        if self.splits {
            drop(actions);
            yield_now();
            actions = self.actions[var].lock().unwrap();
        }
        actions.push(action);
        copy(action)
    }
}

impl Contender for Replays {
    fn clients(&self) -> Range<usize> {
        0..self.threads
    }

    fn client(&self, client: Client) -> u64 {
        client.call_each(self.workload, |var, request| {
            request.replied(self.call(var, request)).number()
        })
    }

    fn total(&self) -> Result<u64, String> {
        Ok(0)
    }
}

const SPLITS: Method<Recorded> = Method::new("splits", method::Kind::Direct, |w, p, _| {
    Ok(Replays::boxed(w, p, true))
});

const REPLAYS: Method<Recorded> = Method::new("replays", method::Kind::Direct, |w, p, _| {
    Ok(Replays::boxed(w, p, false))
});

#[test]
fn a_method_that_splits_operations_is_found_with_each_structure() {
    for structure in STRUCTURES.iter().filter(|s| !s.is_concurrent()) {
        // The same under one lock is right: what is found is the split.
        let right = run(structure, REPLAYS, plan(3, 5));
        assert!(right.is_right() && right.histories == 5, "{right:?}");
        is_found(structure, SPLITS, 3);
    }
}

/// A queue whose every third value overtakes the one before it.
static OVERTAKES: Structure = Structure {
    name: "overtaking-queue",
    kind: Kind::Queue,
    make: structure::Make::Plain(|| {
        let (mut queue, mut pushes) = (VecDeque::new(), 0);
        Box::new(move |action| match action {
            Push(value) => {
                queue.push_back(value);
                pushes += 1;
                if pushes % 3 == 0 && queue.len() >= 2 {
                    let last = queue.len() - 1;
                    queue.swap(last - 1, last);
                }
                None
            }
            _ => queue.pop_front(),
        })
    }),
};

/// A map that loses every fifth insertion. Often only the look-ups at the end show it.
static LOSES: Structure = Structure {
    name: "losing-map",
    kind: Kind::Map,
    make: structure::Make::Plain(|| {
        let (mut map, mut inserts) = (BTreeMap::new(), 0);
        Box::new(move |action| match action {
            Get(key) => map.get(&key).copied(),
            Insert(key, value) => {
                inserts += 1;
                match inserts % 5 {
                    0 => map.get(&key).copied(),
                    _ => map.insert(key, value),
                }
            }
            Remove(key) => map.remove(&key),
            other => other.refuse(),
        })
    }),
};

/// A stack that reads its top in one section, and removes it in another.
static TWO_STEPS: Structure = Structure {
    name: "two-step-stack",
    kind: Kind::Stack,
    make: structure::Make::Concurrent(|| {
        let stack = Mutex::new(Vec::new());
        Box::new(move |action| match action {
            Push(value) => {
                stack.lock().unwrap().push(value);
                None
            }
            _ => {
                let top = stack.lock().unwrap().last().copied();
                yield_now();
                stack.lock().unwrap().pop();
                top
            }
        })
    }),
};

#[test]
fn a_broken_structure_is_found_by_methods_that_are_right() {
    for method in [lock::mutex(), trust::apply(), trust::then()] {
        is_found(&OVERTAKES, method, 3);
        is_found(&LOSES, method, 3);
    }
    // It is wrong without concurrency, too.
    is_found(&OVERTAKES, lock::mutex(), 1);
    is_found(&LOSES, lock::mutex(), 1);
}

#[test]
fn a_concurrent_structure_of_two_steps_is_found() {
    let direct = direct::entry().method;
    is_found(&TWO_STEPS, direct, 3);
    let alone = run(&TWO_STEPS, direct, plan(1, 5));
    assert!(alone.is_right(), "{alone:?}");
}

/// A method whose clients do nothing, or panic.
struct Idle {
    panics: bool,
}

impl Contender for Idle {
    fn clients(&self) -> Range<usize> {
        0..1
    }

    fn client(&self, _: Client) -> u64 {
        assert!(!self.panics, "broken by design");
        0
    }

    fn total(&self) -> Result<u64, String> {
        Ok(0)
    }
}

#[test]
fn a_client_that_makes_no_calls_or_panics_is_a_failure() {
    let idle = Method::new("idle", method::Kind::Direct, |_, _, _| {
        Ok(Box::new(Idle { panics: false }))
    });
    let panics = Method::new("panics", method::Kind::Direct, |_, _, _| {
        Ok(Box::new(Idle { panics: true }))
    });
    for (method, why) in [(idle, "0 calls"), (panics, "broken by design")] {
        let checked = run(&STRUCTURES[0], method, plan(1, 3));
        let failure = checked.failure.clone().unwrap();
        assert!(failure.contains(why), "{failure}");
        assert!(!checked.is_right() && checked.histories == 0);
    }
}
