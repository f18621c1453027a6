//! OpLog's promises besides linearizable reads: nothing lost, nothing done twice, bounded logs, one
//! clear error; and absorption.

#![cfg(not(any(corelay_loom, corelay_shuttle)))]

#[path = "oplog/fibres.rs"]
mod fibres;
#[path = "../../fibre/tests/promise/mod.rs"]
mod promise;
#[path = "oplog/uncertain.rs"]
mod uncertain;

use corelay_clock::{Clock, Logical, Ordo, Skewed, SkewedBuilder};
use corelay_sync::wait::{CodeName, NoSwitch};
use corelay_txn::oplog::{
    Absorbed, Add, Change, Commutes, Count, CountedMap, Counter, Multiset, OpLog, Operation,
    Poisoned, Remap, ReverseMap, key,
};
use proptest::prelude::*;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// An operation that appends a word; words are in the order of their operations.
#[derive(Clone, Debug)]
struct Say(u32);

impl Operation<Vec<u32>> for Say {
    fn apply(self, said: &mut Vec<u32>) {
        said.push(self.0);
    }
}

#[test]
fn a_log_of_capacity_0_is_refused() {
    let refused = OpLog::<_, Add, _>::with_capacity(0, 0, Logical::new()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "an `OpLog` with logs of capacity 0: a log holds between 1 and 16777216 operations"
    );
    let too_much = OpLog::<_, Add, _>::with_capacity(usize::MAX, 0, Logical::new());
    assert!(too_much.is_err());
}

#[test]
fn full_logs_are_merged_by_their_updaters() {
    for capacity in 1..5 {
        let log = OpLog::with_capacity(capacity, Vec::new(), Logical::new()).unwrap();
        let (mut one, mut other) = (log.session(), log.session());
        for n in 0..20 {
            let session = if n % 3 == 0 { &mut one } else { &mut other };
            session.update(Say(n));
        }
        assert!(one.read(|said| said.iter().copied().eq(0..20)));
    }
}

/// Counts the operations that exist at one time: those that are pending.
#[test]
fn full_logs_take_no_more_than_their_capacity() {
    struct Alive<'a>(&'a AtomicUsize);
    impl<'a> Alive<'a> {
        fn new(alive: &'a AtomicUsize) -> Self {
            alive.fetch_add(1, Ordering::Relaxed);
            Self(alive)
        }
    }
    impl Drop for Alive<'_> {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
    }
    impl Operation<()> for Alive<'_> {
        fn apply(self, (): &mut ()) {}
    }
    let (threads, capacity) = (3, 10);
    let alive = AtomicUsize::new(0);
    let log = OpLog::with_capacity(capacity, (), Logical::new()).unwrap();
    thread::scope(|s| {
        for _ in 0..threads {
            s.spawn(|| {
                let mut session = log.session();
                for _ in 0..1_000 {
                    session.update(Alive::new(&alive));
                    // Each log, the operations that a reader has taken of it, and one in the hand
                    // of each thread.
                    let most = threads * (2 * capacity + 1);
                    assert!(alive.load(Ordering::Relaxed) <= most);
                }
            });
        }
    });
    drop(log);
    assert_eq!(alive.into_inner(), 0);
}

#[test]
fn logs_are_used_again_with_what_is_pending() {
    let log = OpLog::new(Vec::new(), Logical::new());
    for n in 0..100 {
        log.session().update(Say(n));
    }
    assert_eq!(log.logs(), 1);
    let two = (log.session(), log.session());
    assert_eq!(log.logs(), 2);
    drop(two);
    let mut session = log.session();
    session.update(Say(100));
    assert_eq!(log.logs(), 2);
    drop(session);
    assert!(log.into_inner().into_iter().eq(0..=100));
}

#[test]
fn merging_early_changes_nothing() {
    let log = OpLog::new(0, Logical::new());
    log.session().update(Add(2));
    log.try_merge().unwrap();
    log.try_merge().unwrap();
    assert_eq!(log.read(|&n| n), 2);
}

/// An operation that counts the ways in which it ends.
struct Counted<'a> {
    applied: &'a AtomicUsize,
    dropped: &'a AtomicUsize,
    group: u32,
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

impl Operation<()> for Counted<'_> {
    const COMMUTES: Commutes = Commutes::AcrossKeys;

    fn apply(self, (): &mut ()) {
        self.applied.fetch_add(1, Ordering::Relaxed);
    }

    fn key(&self) -> Option<u64> {
        Some(key(&self.group))
    }

    fn absorb(self, earlier: &Self) -> Absorbed<Self> {
        match (self.group == earlier.group, self.group % 3) {
            (true, 1) => Absorbed::Replaces(self),
            (true, 2) => Absorbed::Cancels,
            _ => Absorbed::Neither(self),
        }
    }
}

#[test]
fn every_operation_ends_once() {
    for (pending, read) in [
        (0, false),
        (1, false),
        (50, false),
        (50, true),
        (1_000, true),
    ] {
        let (applied, dropped) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let log = OpLog::with_capacity(32, (), Logical::new()).unwrap();
        {
            let mut sessions = [log.session(), log.session(), log.session()];
            for n in 0..pending {
                sessions[n % 3].update(Counted {
                    applied: &applied,
                    dropped: &dropped,
                    group: (n * n % 11) as u32,
                });
            }
            if read {
                sessions[0].read(|()| ());
            }
        }
        drop(log);
        assert_eq!(dropped.into_inner(), pending);
        assert!(applied.into_inner() <= pending);
    }
}

/// An operation that may panic when it is applied.
struct Fuse<'a>(bool, &'a AtomicUsize);

impl Operation<u32> for Fuse<'_> {
    fn apply(self, applied: &mut u32) {
        assert!(!self.0, "blown");
        *applied += 1;
    }
}

impl Drop for Fuse<'_> {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::Relaxed);
    }
}

fn panic_of<R>(f: impl FnOnce() -> R) -> String {
    let payload = catch_unwind(AssertUnwindSafe(f)).err().expect("a panic");
    match payload.downcast::<String>() {
        Ok(text) => *text,
        Err(payload) => payload.downcast::<&str>().unwrap().to_string(),
    }
}

#[test]
fn a_panicking_operation_poisons() {
    let dropped = AtomicUsize::new(0);
    let log = OpLog::new(0, Logical::new());
    let mut session = log.session();
    for fuse in [false, true, false] {
        session.update(Fuse(fuse, &dropped));
    }
    assert_eq!(panic_of(|| log.read(|&n| n)), "blown");
    assert_eq!(log.try_read(|&n| n), Err(Poisoned));
    assert_eq!(log.try_merge(), Err(Poisoned));
    for text in [
        panic_of(|| log.read(|&n| n)),
        panic_of(|| session.update(Fuse(false, &dropped))),
        panic_of(|| log.session().update(Fuse(false, &dropped))),
    ] {
        assert!(text.starts_with("this `OpLog` is poisoned"), "{text}");
    }
    drop(session);
    assert!(panic_of(|| log.into_inner()).starts_with("this `OpLog` is poisoned"));
    assert_eq!(dropped.into_inner(), 5);
}

#[test]
fn a_panicking_read_does_not_poison() {
    let log = OpLog::new(0, Logical::new());
    log.session().update(Add(1));
    assert_eq!(panic_of(|| log.read(|_| panic!("looked"))), "looked");
    log.session().update(Add(1));
    assert_eq!(log.read(|&n| n), 2);
}

#[test]
fn a_panicking_absorption_leaves_the_log_usable() {
    struct Picky(bool);
    impl Operation<u32> for Picky {
        const COMMUTES: Commutes = Commutes::Always;
        fn apply(self, n: &mut u32) {
            *n += 1;
        }
        fn key(&self) -> Option<u64> {
            Some(0)
        }
        fn absorb(self, _earlier: &Self) -> Absorbed<Self> {
            assert!(!self.0, "picky");
            Absorbed::Neither(self)
        }
    }
    let log = OpLog::new(0, Logical::new());
    let mut session = log.session();
    session.update(Picky(false));
    assert_eq!(panic_of(|| session.update(Picky(true))), "picky");
    session.update(Picky(false));
    assert_eq!(session.read(|&n| n), 2);
}

#[test]
fn a_read_inside_a_read_is_refused() {
    let log: Counter<_> = OpLog::new(0, Logical::new());
    let text = panic_of(|| log.read(|_| log.read(|&n| n)));
    assert!(
        text.contains("waiting for an `OpLog`") && text.contains("inside an `OpLog` read"),
        "{text}"
    );
    // So is an update that would have to merge.
    let log = OpLog::with_capacity(1, Vec::new(), Logical::new()).unwrap();
    let text = panic_of(|| {
        log.read(|_| {
            let mut session = log.session();
            session.update(Say(1));
            session.update(Say(2));
        });
    });
    assert!(text.contains("waiting for an `OpLog`"), "{text}");
    assert_eq!(log.into_inner(), [1]);
}

#[test]
fn other_logs_may_be_read_and_updated_inside_a_read() {
    let (one, other) = (OpLog::new(1, Logical::new()), OpLog::new(2, Logical::new()));
    one.session().update(Add(10));
    let sum = one.read(|&n| {
        other.session().update(Add(20));
        one.session().update(Add(100));
        n + other.read(|&n| n)
    });
    assert_eq!((sum, one.into_inner()), (33, 111));
}

#[test]
fn a_free_log_is_read_where_nothing_may_wait() {
    let log = OpLog::new(0, Logical::new());
    let name = CodeName::fixed(&"a delegated closure");
    // SAFETY: the guard is dropped at the end, before `name`.
    let guard = unsafe { NoSwitch::enter(&name) };
    log.session().update(Add(1));
    assert_eq!(log.read(|&n| n), 1);
    drop(guard);
}

#[test]
fn sessions_may_move() {
    let log = OpLog::new(Vec::new(), Logical::new());
    let mut session = log.session();
    session.update(Say(1));
    let mut session = thread::scope(|s| {
        let moved = s.spawn(move || {
            session.update(Say(2));
            session
        });
        moved.join().unwrap()
    });
    session.update(Say(3));
    drop(session);
    assert_eq!(log.into_inner(), [1, 2, 3]);
}

/// The actions of a session.
#[derive(Clone, Debug)]
enum Step<Op> {
    Update(usize, Op),
    Read,
    /// The session is dropped, and another one opened.
    Replace(usize),
}

fn steps<Op: Clone + Debug + 'static>(
    op: impl Strategy<Value = Op> + Clone + 'static,
) -> impl Strategy<Value = Vec<Step<Op>>> {
    let step = prop_oneof![
        8 => (0..3usize, op).prop_map(|(session, op)| Step::Update(session, op)),
        1 => Just(Step::Read),
        1 => (0..3usize).prop_map(Step::Replace),
    ];
    prop::collection::vec(step, 0..60)
}

/// Actions one after the other, through three sessions: every read shows the same as a plain state
/// to which each is applied at once.
fn like_a_plain_state<S, Op, C>(capacity: usize, clock: C, steps: &[Step<Op>])
where
    S: Default + Clone + Debug + PartialEq,
    Op: Operation<S> + Clone,
    C: Clock,
{
    let mut plain = S::default();
    let log = OpLog::with_capacity(capacity, S::default(), clock).unwrap();
    let mut sessions: [_; 3] = std::array::from_fn(|_| Some(log.session()));
    for step in steps {
        match step {
            Step::Update(session, op) => {
                op.clone().apply(&mut plain);
                sessions[*session].as_mut().unwrap().update(op.clone());
            }
            Step::Read => assert_eq!(log.read(S::clone), plain),
            Step::Replace(session) => {
                sessions[*session] = None;
                sessions[*session] = Some(log.session());
            }
        }
    }
    assert_eq!(log.logs(), 3);
    drop(sessions);
    assert_eq!(log.into_inner(), plain);
}

fn on_each_clock<S, Op>(capacity: usize, steps: &[Step<Op>])
where
    S: Default + Clone + Debug + PartialEq,
    Op: Operation<S> + Clone,
{
    like_a_plain_state::<S, Op, _>(capacity, Logical::new(), steps);
    like_a_plain_state::<S, Op, _>(capacity, skewed(), steps);
    if corelay_sync::counter::usable() {
        like_a_plain_state::<S, Op, _>(capacity, Ordo::with_boundary(50), steps);
    }
}

fn skewed() -> Skewed {
    SkewedBuilder {
        skew: 10,
        step: 5,
        boundary: 15,
        delay: 1,
    }
    .build()
}

fn remap() -> impl Strategy<Value = Remap<u8, u8>> + Clone {
    (any::<bool>(), 0..3u8, 0..3u8).prop_map(|(add, page, mapping)| match add {
        true => Remap::Add(page, mapping),
        false => Remap::Remove(page, mapping),
    })
}

fn count() -> impl Strategy<Value = Count<u8, u8>> + Clone {
    (any::<bool>(), 0..2u8, 0..2u8).prop_map(|(add, page, mapping)| match add {
        true => Count::add(page, mapping),
        false => Count::remove(page, mapping),
    })
}

fn change() -> impl Strategy<Value = Change<u8>> + Clone {
    (any::<bool>(), 0..3u8).prop_map(|(add, value)| match add {
        true => Change::add(value),
        false => Change::remove(value),
    })
}

proptest! {
    #[test]
    fn what_is_said_stands_in_order(capacity in 1..9usize, steps in steps((0..99u32).prop_map(Say))) {
        on_each_clock::<Vec<u32>, _>(capacity, &steps);
    }

    #[test]
    fn a_reverse_map_is_like_a_plain_one(capacity in 1..9usize, steps in steps(remap())) {
        on_each_clock::<ReverseMap<u8, u8>, _>(capacity, &steps);
    }

    #[test]
    fn a_multiset_is_like_a_plain_one(capacity in 1..9usize, steps in steps(change())) {
        on_each_clock::<Multiset<u8>, _>(capacity, &steps);
    }

    #[test]
    fn a_counted_map_is_like_a_plain_one(capacity in 1..9usize, steps in steps(count())) {
        on_each_clock::<CountedMap<u8, u8>, _>(capacity, &steps);
    }

    #[test]
    fn a_counted_map_absorbs_by_the_law(
        before in prop::collection::vec(count(), 0..6),
        earlier in count(),
        between in prop::collection::vec(count(), 0..6),
        later in count(),
    ) {
        prop_assert!(keeps_the_law::<CountedMap<u8, u8>, _>(&before, &earlier, &between, &later));
    }

    #[test]
    fn a_counter_is_like_a_plain_one(capacity in 1..9usize, steps in steps((-9..9i64).prop_map(Add))) {
        on_each_clock::<i64, _>(capacity, &steps);
    }

    #[test]
    fn lists_by_key_are_like_plain_ones(
        capacity in 1..9usize,
        steps in steps((0..2u8, 0..9u8).prop_map(|(key, value)| Append(key, value))),
    ) {
        on_each_clock::<[Vec<u8>; 2], _>(capacity, &steps);
    }

    #[test]
    fn a_reverse_map_absorbs_by_the_law(
        before in prop::collection::vec(remap(), 0..6),
        earlier in remap(),
        between in prop::collection::vec(remap(), 0..6),
        later in remap(),
    ) {
        prop_assert!(keeps_the_law::<ReverseMap<u8, u8>, _>(&before, &earlier, &between, &later));
    }

    #[test]
    fn a_multiset_absorbs_by_the_law(
        before in prop::collection::vec(change(), 0..6),
        earlier in change(),
        between in prop::collection::vec(change(), 0..6),
        later in change(),
    ) {
        prop_assert!(keeps_the_law::<Multiset<u8>, _>(&before, &earlier, &between, &later));
    }
}

/// An operation that appends to one of two lists. Within a key the order of all shows. Cancelling a
/// third operation scrambles, on purpose, a pair of equal ones in one log.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Append(u8, u8);

impl Operation<[Vec<u8>; 2]> for Append {
    const COMMUTES: Commutes = Commutes::AcrossKeys;

    fn apply(self, lists: &mut [Vec<u8>; 2]) {
        // Zero does nothing, so two of it may cancel.
        if self.1 > 0 {
            lists[usize::from(self.0)].push(self.1);
        }
    }

    fn key(&self) -> Option<u64> {
        Some(key(&self.0))
    }

    fn absorb(self, earlier: &Self) -> Absorbed<Self> {
        match (self.1, earlier.1) {
            (0, 0) => Absorbed::Cancels,
            _ => Absorbed::Neither(self),
        }
    }
}

#[test]
fn filling_a_gap_with_the_last_entry_keeps_the_order() {
    let log = OpLog::<[Vec<u8>; 2], Append, _>::new(Default::default(), Logical::new());
    let mut session = log.session();
    // The second zero cancels the first, and the last operation of the other list takes its place.
    for append in [Append(0, 0), Append(1, 1), Append(1, 2), Append(0, 0)] {
        session.update(append);
    }
    assert_eq!(session.read(|lists| lists[1].clone()), [1, 2]);
}

/// Whether the result of absorbing leaves the state that the two operations would have left.
fn keeps_the_law<S, Op>(before: &[Op], earlier: &Op, between: &[Op], later: &Op) -> bool
where
    S: Default + PartialEq,
    Op: Operation<S> + Clone,
{
    let all = |parts: [&[Op]; 4]| {
        let mut state = S::default();
        for op in parts.concat() {
            op.apply(&mut state);
        }
        state
    };
    let (earlier_alone, later_alone) = (std::slice::from_ref(earlier), std::slice::from_ref(later));
    let left = all([before, earlier_alone, between, later_alone]);
    left == match later.clone().absorb(earlier) {
        Absorbed::Neither(later) => all([before, earlier_alone, between, &[later]]),
        Absorbed::Replaces(new) => all([before, between, &[new], &[]]),
        Absorbed::Cancels => all([before, between, &[], &[]]),
    }
}

/// Opposite updates of a set do not cancel: the example of the law.
#[test]
fn a_set_that_cancels_breaks_the_law() {
    #[derive(Clone, Copy, PartialEq)]
    struct Cancelling(bool);
    impl Operation<bool> for Cancelling {
        fn apply(self, is_there: &mut bool) {
            *is_there = self.0;
        }
        fn absorb(self, earlier: &Self) -> Absorbed<Self> {
            match (self.0, earlier.0) {
                (false, true) => Absorbed::Cancels,
                _ => Absorbed::Neither(self),
            }
        }
    }
    let [add, remove] = [Cancelling(true), Cancelling(false)];
    assert!(keeps_the_law(&[], &add, &[], &remove));
    assert!(!keeps_the_law(&[], &add, &[remove, add], &remove));
}

/// Ten million updates with the `CORELAY_STRESS=10` of `cargo xtask deep`: nothing is lost,
/// whichever thread merges, while sessions come and go.
#[test]
fn a_storm_of_updates_is_counted() {
    let calls = stressed(stressed(100_000));
    for threads in [2, 4] {
        for capacity in [1, 7, 4_096] {
            storm(threads, capacity, calls / 6, Logical::new());
        }
    }
}

fn storm<C: Clock>(threads: usize, capacity: usize, calls: usize, clock: C) {
    let each = calls / threads;
    let state = (0, vec![0; threads]);
    let log = Arc::new(OpLog::<_, Nth, C>::with_capacity(capacity, state, clock).unwrap());
    thread::scope(|s| {
        for thread in 0..threads {
            let log = &log;
            s.spawn(move || {
                let mut session = log.session();
                for n in 1..=each {
                    session.update(Nth { thread, n });
                    if n % 100 == 0 {
                        session.read(|(_, last)| assert_eq!(last[thread], n));
                    }
                    if n % 1_000 == 0 {
                        drop(session);
                        session = log.session();
                    }
                }
            });
        }
    });
    assert!(log.logs() <= threads);
    log.read(|(count, last)| {
        assert_eq!(*count, each * threads);
        assert!(last.iter().all(|&n| n == each));
    });
}

/// The n-th update of its thread.
struct Nth {
    thread: usize,
    n: usize,
}

impl Operation<(usize, Vec<usize>)> for Nth {
    fn apply(self, (count, last): &mut (usize, Vec<usize>)) {
        assert_eq!(last[self.thread] + 1, self.n, "out of order, or lost");
        last[self.thread] = self.n;
        *count += 1;
    }
}

/// `n` times the factor in `CORELAY_STRESS` (1 unless set).
fn stressed(n: usize) -> usize {
    let factor = std::env::var("CORELAY_STRESS").map_or(1.0, |text| {
        text.parse::<f64>().expect("CORELAY_STRESS is a number")
    });
    (n as f64 * factor) as usize
}

/// The drop of an absorbed operation may run code that uses the same log.
#[test]
fn absorbed_operations_are_dropped_outside_of_the_log() {
    use std::sync::OnceLock;

    static LOG: OnceLock<OpLog<u64, Last, Logical>> = OnceLock::new();
    static SEEN: AtomicUsize = AtomicUsize::new(0);

    struct Last(u64);
    impl Operation<u64> for Last {
        fn apply(mut self, last: &mut u64) {
            *last = std::mem::take(&mut self.0);
        }
        fn key(&self) -> Option<u64> {
            Some(0)
        }
        fn absorb(self, _: &Self) -> Absorbed<Self> {
            Absorbed::Replaces(self)
        }
    }
    impl Drop for Last {
        fn drop(&mut self) {
            if self.0 != 0 {
                // The operation that replaced it is in the log by now.
                SEEN.store(LOG.get().unwrap().read(|&n| n) as usize, Ordering::Relaxed);
            }
        }
    }

    let log = LOG.get_or_init(|| OpLog::new(0, Logical::new()));
    let mut session = log.session();
    session.update(Last(1));
    session.update(Last(2));
    assert_eq!(SEEN.load(Ordering::Relaxed), 2);
}
