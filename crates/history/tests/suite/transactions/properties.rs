//! Tiny random histories, right and wrong, against brute force: every serial order, and every order
//! of snapshots and commits.

use crate::support::{Rng, scaled};
use corelay_history::Call;
use corelay_history::transactions::{History, Level, Operation, Operation::*, Outcome::*, check};

type Transaction = Call<Vec<Operation>, corelay_history::transactions::Outcome>;

/// A model of a key: lists and registers alike.
type State = Vec<Vec<u64>>;

const KEYS: u64 = 2;

/// Whether a transaction would have read this from a snapshot; adds its writes to `state`.
fn agrees(operations: &[Operation], snapshot: &State, state: &mut State) -> bool {
    let mut view = snapshot.clone();
    operations.iter().all(|operation| {
        let key = *operation.key() as usize;
        match operation {
            Read(_, value) => view[key].last() == value.as_ref(),
            ReadList(_, values) => view[key] == *values,
            Write(_, value) | Append(_, value) => {
                view[key].push(*value);
                state[key].push(*value);
                true
            }
        }
    })
}

fn precedes(a: &Transaction, b: &Transaction) -> bool {
    a.ended().is_some_and(|ended| ended < b.invoked())
}

/// Whether some order of all transactions explains their reads and keeps real time, if that matters.
fn serializable(transactions: &[&Transaction], real_time: bool) -> bool {
    fn go(left: &[&Transaction], state: &State, real_time: bool) -> bool {
        left.is_empty()
            || (0..left.len()).any(|next| {
                let call = left[next];
                let follows = |other: &&Transaction| precedes(other, call);
                if real_time && left.iter().any(follows) {
                    return false;
                }
                let mut after = state.clone();
                let mut rest = left.to_vec();
                rest.remove(next);
                agrees(call.operation(), state, &mut after) && go(&rest, &after, real_time)
            })
    }
    go(transactions, &vec![Vec::new(); KEYS as usize], real_time)
}

/// Whether some order of snapshots and commits explains all reads, such that no two concurrent
/// transactions write the same key.
fn snapshot_isolated(transactions: &[&Transaction], real_time: bool) -> bool {
    struct Search<'a> {
        transactions: &'a [&'a Transaction],
        real_time: bool,
    }
    #[derive(Clone)]
    struct Moment {
        state: State,
        /// The snapshots of those that have begun.
        begun: Vec<Option<State>>,
        committed: Vec<bool>,
    }
    impl Search<'_> {
        fn go(&self, now: &Moment) -> bool {
            (0..self.transactions.len()).all(|n| now.committed[n])
                || (0..self.transactions.len()).any(|n| self.next(now, n))
        }

        fn next(&self, now: &Moment, n: usize) -> bool {
            let call = self.transactions[n];
            let mut after = now.clone();
            match &now.begun[n] {
                _ if now.committed[n] => return false,
                // The snapshot has what ended before.
                None => {
                    let misses = |other: usize| {
                        precedes(self.transactions[other], call) && !now.committed[other]
                    };
                    let disagrees = !agrees(call.operation(), &now.state, &mut now.state.clone());
                    if disagrees || self.real_time && (0..self.transactions.len()).any(misses) {
                        return false;
                    }
                    after.begun[n] = Some(now.state.clone());
                }
                Some(snapshot) => {
                    let mut keys = call.operation().iter().filter(|op| op.written().is_some());
                    let conflict = |op: &Operation| {
                        let key = *op.key() as usize;
                        snapshot[key] != now.state[key]
                    };
                    if keys.any(conflict) || !agrees(call.operation(), snapshot, &mut after.state) {
                        return false;
                    }
                    after.committed[n] = true;
                }
            }
            self.go(&after)
        }
    }
    let n = transactions.len();
    Search {
        transactions,
        real_time,
    }
    .go(&Moment {
        state: vec![Vec::new(); KEYS as usize],
        begun: vec![None; n],
        committed: vec![false; n],
    })
}

/// A few transactions of a store that often goes wrong: it reads old snapshots, or two of them, and
/// looks for conflicts now and then.
fn random(rng: &mut Rng, lists: bool) -> History {
    let mut history = History::new();
    let mut states: Vec<State> = vec![vec![Vec::new(); KEYS as usize]];
    let count = 2 + rng.below(3) as usize;
    let mut value = 0;
    for thread in 0..count {
        let mut state = states.last().unwrap().clone();
        let old = |rng: &mut Rng| states.len() - 1 - rng.below(states.len() as u64) as usize;
        let mut view = states[old(rng)].clone();
        let mut operations = Vec::new();
        for _ in 0..1 + rng.below(3) {
            let key = rng.below(KEYS) as usize;
            if rng.below(2) == 0 {
                value += 1;
                view[key].push(value);
                state[key].push(value);
                operations.push(match lists {
                    true => Append(key as u64, value),
                    false => Write(key as u64, value),
                });
            } else {
                if rng.below(8) == 0 {
                    view = states[old(rng)].clone();
                }
                operations.push(match lists {
                    true => ReadList(key as u64, view[key].clone()),
                    false => Read(key as u64, view[key].last().copied()),
                });
            }
        }
        let begin = rng.below(6);
        let when = begin..=begin + rng.below(6);
        let call = match rng.below(12) {
            0 => Call::pending(operations, begin),
            1 => Call::returned(operations, when, Aborted),
            _ => Call::returned(operations, when, Committed),
        };
        // What has aborted may be seen all the same, now and then.
        if call.output() != Some(&Aborted) || rng.below(4) == 0 {
            states.push(state);
        }
        history.push(thread, call);
    }
    if lists {
        // Tells the order of all versions.
        let last = states.last().unwrap();
        let reads = (0..KEYS).map(|key| ReadList(key, last[key as usize].clone()));
        history.push(count, Call::returned(reads.collect(), 20..=21, Committed));
    }
    history
}

/// Whether some choice of the transactions of unknown outcome makes the history right.
fn explained(history: &History, level: Level) -> bool {
    let calls: Vec<&Transaction> = history.calls().map(|(_, call)| call).collect();
    let unknown = calls.iter().filter(|call| call.output().is_none()).count();
    (0..1 << unknown).any(|chosen: u32| {
        let mut n = 0;
        let committed: Vec<&Transaction> = calls
            .iter()
            .copied()
            .filter(|call| match call.output() {
                Some(outcome) => *outcome != Aborted,
                None => {
                    n += 1;
                    chosen & (1 << (n - 1)) != 0
                }
            })
            .collect();
        match level {
            Level::SnapshotIsolation => snapshot_isolated(&committed, false),
            Level::StrongSnapshotIsolation => snapshot_isolated(&committed, true),
            Level::Serializable => serializable(&committed, false),
            _ => serializable(&committed, true),
        }
    })
}

const LEVELS: [Level; 4] = [
    Level::SnapshotIsolation,
    Level::StrongSnapshotIsolation,
    Level::Serializable,
    Level::StrictSerializable,
];

/// The checker is exact if lists tell the order of versions.
#[test]
fn lists_agree_with_brute_force() {
    let mut rng = Rng::new(5);
    let mut counts = [[0; 2]; LEVELS.len()];
    for _ in 0..scaled(2_000) {
        let history = random(&mut rng, true);
        for (n, level) in LEVELS.into_iter().enumerate() {
            let right = explained(&history, level);
            let checked = check(&history, level);
            assert_eq!(checked.is_ok(), right, "{level}: {history:?}\n{checked:?}");
            counts[n][usize::from(right)] += 1;
        }
    }
    println!("wrong and right, by level: {counts:?}");
    assert!(
        counts
            .as_flattened()
            .iter()
            .all(|n| *n > scaled(2_000) / 20)
    );
}

/// Registers do not tell their order, so wrong ones may pass; right ones are never accused.
#[test]
fn right_registers_pass() {
    let mut rng = Rng::new(6);
    let mut counts = [[[0; 2]; 2]; LEVELS.len()];
    for _ in 0..scaled(2_000) {
        let history = random(&mut rng, false);
        for (n, level) in LEVELS.into_iter().enumerate() {
            let right = explained(&history, level);
            let checked = check(&history, level);
            assert!(
                checked.is_ok() || !right,
                "{level}: {history:?}\n{checked:?}"
            );
            counts[n][usize::from(right)][usize::from(checked.is_ok())] += 1;
        }
    }
    println!("by level, right, and passed: {counts:?}");
    // Most of the wrong ones are found.
    assert!(counts.iter().all(|[wrong, _]| wrong[0] > 4 * wrong[1]));
}
