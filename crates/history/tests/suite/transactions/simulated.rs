//! Stores that are right and stores that are wrong, simulated step by step in one thread.

use crate::support::{Rng, scaled};
use corelay_history::Call;
use corelay_history::transactions::{
    Access, History, Kind, Level, Operation, Operation::*, Outcome::*, Plan, check,
};
use std::collections::{BTreeMap, BTreeSet};

/// How a store goes about it.
#[derive(Clone, Copy, Default)]
struct Store {
    /// Reads see the state at the begin of the transaction, not the present one.
    snapshot: bool,
    /// Transactions that only read see a state of this many commits ago.
    stale: usize,
    /// Reads see what others have not committed yet.
    dirty: bool,
    /// A transaction commits only if nobody has written its keys since its snapshot.
    checks_writes: bool,
    /// A transaction commits only if nobody has written since what it has read: every key, or only
    /// those that it found present.
    checks_reads: bool,
    checks_absent: bool,
    /// A commit becomes visible key by key, and snapshots come a little late.
    torn: bool,
}

type State = BTreeMap<u64, Vec<u64>>;

/// A transaction under way.
struct Active {
    program: Vec<Access>,
    begin: u64,
    /// The number of commits that it sees.
    sees: usize,
    operations: Vec<Operation>,
    reads: BTreeMap<u64, Vec<u64>>,
    writes: Vec<(u64, u64)>,
    done: usize,
}

/// Runs the programs of a plan on a store, threads in random order.
fn run(store: Store, plan: &Plan, lists: bool) -> History {
    let mut rng = Rng::new(plan.seed);
    let mut programs: Vec<_> = plan.programs().into_iter().map(Vec::into_iter).collect();
    let mut active: Vec<Option<Active>> = programs.iter().map(|_| None).collect();
    let mut states: Vec<State> = vec![State::new()];
    let mut history = History::new();
    let (mut clock, mut value) = (0, 0);
    let mut running = programs.len();
    while running > 0 {
        let thread = rng.below(programs.len() as u64) as usize;
        clock += 1;
        let Some(now) = &mut active[thread] else {
            if let Some(program) = programs[thread].next() {
                let only_reads = program.iter().all(|it| matches!(it, Access::Read(_)));
                let stale = match store.torn {
                    true => rng.below(3) as usize,
                    false if only_reads => store.stale,
                    false => 0,
                };
                active[thread] = Some(Active {
                    program,
                    begin: clock,
                    sees: states.len().saturating_sub(1 + stale),
                    operations: Vec::new(),
                    reads: BTreeMap::new(),
                    writes: Vec::new(),
                    done: 0,
                });
            } else if programs.iter().all(|left| left.as_slice().is_empty()) {
                running = active.iter().flatten().count();
            }
            continue;
        };
        let latest = states.last().unwrap();
        if let Some(access) = now.program.get(now.done).copied() {
            now.done += 1;
            match access {
                Access::Write(key) => {
                    value += 1;
                    now.writes.push((key, value));
                    now.operations.push(match lists {
                        true => Append(key, value),
                        false => Write(key, value),
                    });
                }
                Access::Read(key) => {
                    let from = if store.snapshot || store.stale > 0 {
                        &states[now.sees]
                    } else {
                        latest
                    };
                    let mut view = from.get(&key).cloned().unwrap_or_default();
                    now.reads.entry(key).or_insert_with(|| view.clone());
                    let mine = now.writes.clone();
                    if store.dirty {
                        let others = active.iter().flatten().flat_map(|other| &other.writes);
                        let others = others.filter(|write| !mine.contains(write));
                        view.extend(others.filter(|(k, _)| *k == key).map(|(_, value)| value));
                    }
                    view.extend(
                        mine.iter()
                            .filter(|(k, _)| *k == key)
                            .map(|(_, value)| value),
                    );
                    active[thread]
                        .as_mut()
                        .unwrap()
                        .operations
                        .push(match lists {
                            true => ReadList(key, view),
                            false => Read(key, view.last().copied()),
                        });
                }
            }
            continue;
        }
        let now = active[thread].take().unwrap();
        let present = |key: &u64| latest.get(key).cloned().unwrap_or_default();
        let outdated = store.checks_reads
            && !(store.stale > 0 && now.writes.is_empty())
            && now.reads.iter().any(|(key, seen)| {
                let matters = store.checks_absent || !seen.is_empty();
                matters && present(key) != *seen
            });
        let seen = &states[now.sees];
        let conflict = store.checks_writes
            && now
                .writes
                .iter()
                .any(|(key, _)| seen.get(key) != latest.get(key));
        let call = if outdated || conflict || rng.below(20) == 0 {
            Call::returned(now.operations, now.begin..=clock, Aborted)
        } else {
            let mut state = latest.clone();
            for (key, value) in now.writes {
                state.entry(key).or_default().push(value);
                if store.torn {
                    states.push(state.clone());
                }
            }
            states.push(state);
            match rng.below(50) {
                0 => Call::pending(now.operations, now.begin),
                _ => Call::returned(now.operations, now.begin..=clock, Committed),
            }
        };
        history.push(thread, call);
        if programs.iter().all(|left| left.as_slice().is_empty()) {
            running = active.iter().flatten().count();
        }
    }
    history
}

const OPTIMISTIC: Store = Store {
    snapshot: false,
    stale: 0,
    dirty: false,
    checks_writes: false,
    checks_reads: true,
    checks_absent: true,
    torn: false,
};

const SNAPSHOT: Store = Store {
    snapshot: true,
    checks_writes: true,
    checks_reads: false,
    ..OPTIMISTIC
};

/// The kinds that a level finds in some runs of a store, on lists and on registers.
fn kinds(store: Store, level: Level) -> [BTreeSet<Kind>; 2] {
    [true, false].map(|lists| {
        let mut kinds = BTreeSet::new();
        for seed in 0..scaled(8) as u64 {
            let plan = Plan {
                seed: seed + 1,
                transactions: 150,
                skew: 1.0 + (seed % 3) as f64,
                reads: 0.6,
                writes_per_key: 16,
                ..Plan::default()
            };
            let history = run(store, &plan, lists);
            assert_eq!(history.len(), plan.threads * plan.transactions);
            match check(&history, level) {
                Ok(checked) => {
                    assert!(checked.wr > 0 && checked.rw > 0 || level == Level::ReadUncommitted)
                }
                Err(found) => kinds.extend(found.counts().map(|(kind, _)| kind)),
            }
        }
        kinds
    })
}

#[track_caller]
fn is_right(store: Store, level: Level) {
    assert_eq!(
        kinds(store, level),
        [BTreeSet::new(), BTreeSet::new()],
        "{level}"
    );
}

#[test]
fn optimistic_store_is_strictly_serializable() {
    is_right(OPTIMISTIC, Level::StrictSerializable);
}

#[test]
fn snapshots_allow_write_skew_only() {
    is_right(SNAPSHOT, Level::StrongSnapshotIsolation);
    for found in kinds(SNAPSHOT, Level::Serializable) {
        assert_eq!(found, BTreeSet::from([Kind::G2Item]));
    }
}

/// Each case is a faulty store, the level that it keeps, a level that it does not, and a kind by which that is
/// seen.
#[test]
fn wrong_stores_are_found() {
    let dirty = Store {
        dirty: true,
        ..SNAPSHOT
    };
    let blind = Store {
        checks_writes: false,
        ..SNAPSHOT
    };
    let old = Store {
        stale: 3,
        ..OPTIMISTIC
    };
    let phantoms = Store {
        checks_absent: false,
        ..OPTIMISTIC
    };
    let torn = Store {
        torn: true,
        ..SNAPSHOT
    };
    let unchecked = Store {
        checks_reads: false,
        ..OPTIMISTIC
    };
    for (store, keeps, breaks, kind) in [
        (
            dirty,
            Level::ReadUncommitted,
            Level::ReadCommitted,
            Kind::G1a,
        ),
        (
            blind,
            Level::ReadCommitted,
            Level::SnapshotIsolation,
            Kind::LostUpdate,
        ),
        (
            phantoms,
            Level::ReadCommitted,
            Level::Serializable,
            Kind::G2Item,
        ),
        (
            torn,
            Level::ReadUncommitted,
            Level::SnapshotIsolation,
            Kind::GSingle,
        ),
        (
            unchecked,
            Level::ReadCommitted,
            Level::SnapshotIsolation,
            Kind::GSingle,
        ),
    ] {
        is_right(store, keeps);
        for (found, model) in kinds(store, breaks).iter().zip(["lists", "registers"]) {
            assert!(
                found.contains(&kind),
                "{model}: {kind} is not among {found:?}"
            );
        }
    }
    // Old snapshots are in order, but not in real time.
    is_right(old, Level::SnapshotIsolation);
    for found in kinds(old, Level::StrictSerializable) {
        assert!(
            found
                .iter()
                .all(|kind| kind.to_string().contains("realtime")),
            "{found:?}"
        );
        assert!(found.contains(&Kind::GSingleRealtime), "{found:?}");
    }
}
