//! Helpers of all tests: a generator of numbers, histories with and without an explanation, and a
//! checker that tries every order.

use corelay_history::{Call, Counterexample, Failure, History, Model, check};

/// A model's histories.
pub(crate) type HistoryOf<M> = History<<M as Model>::Operation, <M as Model>::Output>;
/// A model's calls.
pub(crate) type CallOf<M> = Call<<M as Model>::Operation, <M as Model>::Output>;
/// A model's counterexamples.
pub(crate) type FoundOf<M> = Counterexample<<M as Model>::Operation, <M as Model>::Output>;

/// `n` times the factor in `CORELAY_STRESS` (1 unless set).
pub(crate) fn scaled(n: usize) -> usize {
    let factor = std::env::var("CORELAY_STRESS").map_or(1.0, |text| {
        text.parse::<f64>().expect("CORELAY_STRESS is a number")
    });
    ((n as f64 * factor) as usize).max(1)
}

/// A small generator (xorshift64): the same numbers in every run.
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

/// A history from its calls: thread, operation, two stamps, output.
pub(crate) fn history<O, R>(
    calls: impl IntoIterator<Item = (usize, O, std::ops::RangeInclusive<u64>, R)>,
) -> History<O, R> {
    let mut history = History::new();
    for (thread, operation, when, output) in calls {
        history.push(thread, Call::returned(operation, when, output));
    }
    history
}

/// The counterexample of a history that must be refuted.
#[track_caller]
pub(crate) fn refuted<M: Model>(model: &M, history: &HistoryOf<M>) -> FoundOf<M> {
    match check(model, history) {
        Err(Failure::NotLinearizable(found)) => *found,
        other => panic!("not refuted: {other:?}"),
    }
}

/// A history that has an explanation: `threads` threads call without a pause, and each call takes
/// effect at some moment while it lasts.
pub(crate) fn explained<M: Model>(
    model: &M,
    threads: usize,
    calls: usize,
    rng: &mut Rng,
    mut operation: impl FnMut(&mut Rng, usize) -> M::Operation,
) -> HistoryOf<M> {
    struct Plan<O> {
        thread: usize,
        operation: O,
        invoked: u64,
        effect: u64,
        ended: u64,
    }
    let mut now: Vec<u64> = (0..threads).map(|_| rng.below(20)).collect();
    let mut plans = Vec::with_capacity(calls);
    for n in 0..calls {
        // The thread whose time is least calls next.
        let thread = (0..threads).min_by_key(|&t| now[t]).expect("threads");
        let invoked = now[thread];
        let effect = invoked + 1 + rng.below(50);
        let ended = effect + 1 + rng.below(50);
        now[thread] = ended + 1;
        plans.push(Plan {
            thread,
            operation: operation(rng, n),
            invoked,
            effect,
            ended,
        });
    }
    plans.sort_by_key(|plan| plan.effect);
    let mut states = std::collections::HashMap::new();
    let mut done: Vec<(usize, CallOf<M>)> = plans
        .into_iter()
        .map(|plan| {
            let key = model.key(&plan.operation);
            let state = states.entry(key).or_insert_with(|| model.initial());
            let output = model.step(state, &plan.operation);
            let when = plan.invoked..=plan.ended;
            (plan.thread, Call::returned(plan.operation, when, output))
        })
        .collect();
    done.sort_by_key(|(_, call)| call.invoked());
    let mut history = History::new();
    for (thread, call) in done {
        history.push(thread, call);
    }
    history
}

/// The same history with one call replaced.
pub(crate) fn replaced<O: Clone, R: Clone>(
    history: &History<O, R>,
    (thread, index): (usize, usize),
    call: Call<O, R>,
) -> History<O, R> {
    let mut changed = History::new();
    for t in 0..history.threads() {
        for (i, old) in history.calls_of(t).iter().enumerate() {
            let new = if (t, i) == (thread, index) {
                &call
            } else {
                old
            };
            changed.push(t, new.clone());
        }
    }
    changed
}

/// The stamp of a return that is left open: the call may take effect with its output, or not at
/// all.
pub(crate) const OPEN: u64 = u64::MAX;

/// Tries every order of the whole history. It does not know that objects can be checked by
/// themselves.
pub(crate) fn brute_force<M: Model>(model: &M, history: &HistoryOf<M>) -> bool {
    let calls: Vec<(usize, usize, &CallOf<M>)> = (0..history.threads())
        .flat_map(|t| {
            history
                .calls_of(t)
                .iter()
                .enumerate()
                .map(move |(i, c)| (t, i, c))
        })
        .collect();
    try_all(model, &calls, &mut vec![false; calls.len()], &[])
}

type States<M> = [(<M as Model>::Key, <M as Model>::State)];

fn try_all<M: Model>(
    model: &M,
    calls: &[(usize, usize, &CallOf<M>)],
    placed: &mut [bool],
    states: &States<M>,
) -> bool {
    let open = |i: &usize| !placed[*i];
    // Those that never returned need not be placed.
    if (0..calls.len())
        .filter(open)
        .all(|i| calls[i].2.ended().is_none_or(|ended| ended == OPEN))
    {
        return true;
    }
    let candidates: Vec<usize> = (0..calls.len())
        .filter(open)
        .filter(|&i| {
            let others = (0..calls.len()).filter(open);
            !others
                .into_iter()
                .any(|j| precedes(model, calls[j], calls[i]))
        })
        .collect();
    for i in candidates {
        let (.., call) = calls[i];
        let key = model.key(call.operation());
        let mut states = states.to_vec();
        let at = states
            .iter()
            .position(|(k, _)| *k == key)
            .unwrap_or_else(|| {
                states.push((key, model.initial()));
                states.len() - 1
            });
        let output = model.step(&mut states[at].1, call.operation());
        if call.output().is_none_or(|expected| *expected == output) {
            placed[i] = true;
            if try_all(model, calls, placed, &states) {
                return true;
            }
            placed[i] = false;
        }
    }
    false
}

/// Whether one call precedes another: by the stamps, and if they are equal, by the order within a
/// thread and an object.
fn precedes<M: Model>(
    model: &M,
    (thread_a, index_a, a): (usize, usize, &CallOf<M>),
    (thread_b, index_b, b): (usize, usize, &CallOf<M>),
) -> bool {
    let Some(ended) = a.ended() else {
        return false;
    };
    let follows = || {
        let one_object = model.key(a.operation()) == model.key(b.operation());
        thread_a == thread_b && index_a < index_b && one_object
    };
    ended < b.invoked() || (ended == b.invoked() && follows())
}
