//! `latency`: the same operation as in [`fetch_add`](super::fetch_add), but arriving on a
//! [schedule](super::schedule), whether or not those before it are done.
//!
//! A closed loop asks again once it has its answer. While a method stalls it asks nothing,
//! so a stall of 20 ms shows as *one* slow operation, and what would have come meanwhile
//! is left out ("coordinated omission"; Tene, "How not to measure latency", 2013). Here
//! each client has its arrivals fixed beforehand, and latency counts from the moment at
//! which an operation was *due*: what had to queue behind a stall has waited, and says so.
//!
//! ```text
//!   due        ·   ·    ·  ·     ·         ·     drawn beforehand
//!   issued     ·   ·           ···         ·     those behind the stall are late
//!   answered    ·   ·──stall──·  ···        ·
//!   latency    ─   ──────────                    from due to answered
//! ```
//!
//! Clients wait for an arrival by looking at the clock, all methods alike; where the next
//! one is 20 µs away and nothing is in flight they offer their CPU to others between
//! two looks. What was due and is not issued when the slice ends counts with the time it
//! has waited so far.
//!
//! # The clock
//! [`Instant`]: nanoseconds by definition, and 24 ns a look on a virtual machine whose
//! kernel keeps time by the processor's counter. `corelay_sync::ticks` costs 29 ns there,
//! has no unit, and drains the store buffer, which would change what is measured. The cost of a look is
//! measured on every machine (`stamp_ns`) and stands in the results: each latency
//! contains about one.

use crate::measure::tally::Tally;
use crate::workload::random::Client;
use crate::workload::schedule::Schedule;
use corelay_sync::facade::atomic::{AtomicBool, Ordering};
use corelay_sync::facade::{hint, thread};
use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The name in results and on the command line.
pub const NAME: &str = "latency";

/// The largest load, in operations per second: beyond any generator.
pub const MAX_LOAD: u64 = 1_000_000_000;

/// An arrival that is closer than this, in nanoseconds, is waited for without giving the
/// CPU away: a yield to nobody takes some hundred, one to somebody much longer.
const NEAR_NS: u64 = 20_000;

/// Operations that are issued without a look at the answers, where the next is always due
/// already: some two microseconds' worth. A poll after each would fetch the answers' line
/// once per operation: `trust-then` bore 4.1 million a second with it, 10.5 without
/// (`bench latency`, one client and one trustee on two virtual CPUs).
const BURST: u64 = 32;

/// More operations than this that were never issued are spread evenly over the time they
/// were due in, at [`STEPS`] moments: their true number differs by less than 1 %.
const MANY: f64 = 1e5;
const STEPS: u64 = 1_000;

/// Nanoseconds since a client's start.
pub(crate) trait Clock {
    /// Nanoseconds now; never less than before.
    fn now(&self) -> u64;
}

/// The clock of measurements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wall(Instant);

impl Wall {
    /// A clock that begins now.
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }
}

impl Clock for Wall {
    #[inline]
    fn now(&self) -> u64 {
        // Wraps after five centuries.
        self.0.elapsed().as_nanos() as u64
    }
}

/// What a look at the clock costs here, in nanoseconds: the quickest of some batches, for
/// nothing makes a batch faster than it is.
pub(crate) fn stamp_ns() -> f64 {
    const LOOKS: u64 = 1_000;
    let clock = Wall::start();
    let batch = |_| {
        let before = clock.now();
        let last = (0..LOOKS).fold(before, |_, _| std::hint::black_box(clock.now()));
        last - before
    };
    (0..20).map(batch).min().unwrap_or(0) as f64 / LOOKS as f64
}

/// The arrivals of one client during one slice, and where its tally goes.
#[derive(Clone, Debug)]
pub(crate) struct Arrivals {
    pub(crate) schedule: Schedule,
    /// All clients of the slice put their tallies together here.
    pub(crate) tallies: Arc<Mutex<Tally>>,
}

impl Arrivals {
    fn split(self, n: usize) -> impl Iterator<Item = Self> {
        let tallies = self.tallies;
        self.schedule.split(n).map(move |schedule| Self {
            schedule,
            tallies: Arc::clone(&tallies),
        })
    }

    fn begin(self, stop: Arc<AtomicBool>) -> Generator<Wall> {
        Generator::new(Wall::start(), self.schedule, stop)
    }
}

/// Adds one client's tally to those of the slice.
fn put(tallies: &Mutex<Tally>, tally: &Tally) {
    // A client that panicked while adding has ended the slice anyway.
    let mut all = tallies.lock().unwrap_or_else(PoisonError::into_inner);
    all.merge(tally);
}

/// What a generator sees when it looks at the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// The next operation is due, since this moment (nanoseconds since the start). It is
    /// counted as issued.
    Due(u64),
    /// It will be due in so many nanoseconds.
    Early(u64),
    /// The slice is over.
    Over,
}

/// Issues operations as they become due, and counts them.
#[derive(Debug)]
pub(crate) struct Generator<C> {
    pub(crate) clock: C,
    schedule: Schedule,
    stop: Arc<AtomicBool>,
    pub(crate) tally: Tally,
    /// The next arrival.
    due: u64,
    /// The last answer's stamp, while it is fresh enough to be the next look.
    fresh: Option<u64>,
    /// Since when this generator has been waiting for an arrival.
    waiting: Option<u64>,
}

impl<C: Clock> Generator<C> {
    fn new(clock: C, mut schedule: Schedule, stop: Arc<AtomicBool>) -> Self {
        let due = schedule.next().unwrap_or(u64::MAX);
        Self {
            clock,
            schedule,
            stop,
            tally: Tally::default(),
            due,
            fresh: None,
            waiting: None,
        }
    }

    /// Looks whether the next operation is due.
    #[inline]
    pub(crate) fn look(&mut self) -> Look {
        let now = self.fresh.take().unwrap_or_else(|| self.clock.now());
        // Relaxed: the flag carries no data; results travel by the join.
        if self.stop.load(Ordering::Relaxed) {
            self.end(now);
            return Look::Over;
        }
        if now < self.due {
            self.waiting.get_or_insert(now);
            return Look::Early(self.due - now);
        }
        if let Some(since) = self.waiting.take() {
            self.tally.waiting_ns += now - since;
        }
        let due = self.due;
        self.tally.issue(due, now);
        self.due = self.schedule.next().unwrap_or(u64::MAX);
        Look::Due(due)
    }

    /// The operation that was due then has been answered now.
    #[inline]
    pub(crate) fn answered(&mut self, due: u64) {
        let now = self.clock.now();
        self.tally.answer(now - due);
        self.fresh = Some(now);
    }

    /// What is due and was not issued has waited until now.
    #[cold]
    fn end(&mut self, now: u64) {
        if let Some(since) = self.waiting.take() {
            self.tally.waiting_ns += now - since;
        }
        let left = now.saturating_sub(self.due);
        let expected = self.schedule.expected(left);
        if expected > MANY {
            // Drawing them one by one could take longer than the slice took.
            for step in 0..STEPS {
                let waited = (left as f64 * (step as f64 + 0.5) / STEPS as f64) as u64;
                self.tally
                    .unserved(waited, (expected / STEPS as f64) as u64);
            }
            return;
        }
        while self.due <= now {
            self.tally.unserved(now - self.due, 1);
            self.due = self.schedule.next().unwrap_or(u64::MAX);
        }
    }

    /// Issues operations that answer before they return, until the slice is over.
    #[inline]
    fn wait_for_each(&mut self, mut op: impl FnMut()) {
        loop {
            match self.look() {
                Look::Due(due) => {
                    op();
                    self.answered(due);
                }
                Look::Early(left) => rest(left),
                Look::Over => return,
            }
        }
    }

    /// Issues operations that are answered later, until the slice is over. Between arrivals,
    /// and after [`BURST`] of them without a pause, it calls `poll`, which runs callbacks and
    /// says whether any is still to come.
    #[inline]
    fn issue_each(&mut self, mut issue: impl FnMut(u64), mut poll: impl FnMut() -> bool) {
        let mut burst = 0;
        loop {
            match self.look() {
                Look::Due(due) => {
                    issue(due);
                    burst += 1;
                    if burst % BURST == 0 {
                        poll();
                    }
                }
                Look::Early(left) => {
                    burst = 0;
                    match poll() {
                        true => hint::spin_loop(),
                        false => rest(left),
                    }
                }
                Look::Over => return,
            }
        }
    }
}

/// A moment's rest before the next look.
#[inline]
fn rest(left_ns: u64) {
    if left_ns > NEAR_NS {
        thread::yield_now();
    } else {
        hint::spin_loop();
    }
}

/// An operation under way that will be answered by a callback on this thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket {
    due: u64,
}

/// What callbacks of this thread have recorded in this slice.
struct Answers {
    clock: Wall,
    tally: Tally,
}

thread_local! {
    static ANSWERS: RefCell<Option<Answers>> = const { RefCell::new(None) };
}

impl Ticket {
    /// The answer is there: call this in the callback.
    #[inline]
    pub(crate) fn answered(self) {
        ANSWERS.with_borrow_mut(|answers| {
            let answers = answers
                .as_mut()
                .expect("a slice ends after its last answer");
            answers.tally.answer(answers.clock.now() - self.due);
        });
    }
}

fn answers_so_far() -> u64 {
    ANSWERS.with_borrow(|answers| answers.as_ref().map_or(0, |a| a.tally.answered()))
}

impl Client {
    /// Runs `op(variable)` whenever one is due, until the slice is over, and returns how
    /// often. Kept out of [`drive`](Self::drive), whose closed loop shall stay as it is.
    #[inline(never)]
    pub(super) fn drive_on_schedule(
        self,
        arrivals: Arrivals,
        mut op: impl FnMut(usize) -> u64,
    ) -> u64 {
        let mut stream = self.stream;
        let tallies = Arc::clone(&arrivals.tallies);
        let mut generator = arrivals.begin(self.stop);
        let mut sum = 0u64;
        generator.wait_for_each(|| sum = sum.wrapping_add(op(stream.choose())));
        std::hint::black_box(sum);
        put(&tallies, &generator.tally);
        generator.tally.issued
    }

    /// True where operations arrive on a schedule, which methods with callbacks have to
    /// know: see [`issue`](Self::issue).
    pub(crate) fn has_schedule(&self) -> bool {
        self.arrivals.is_some()
    }

    /// For methods whose answers come to a callback: calls `issue(variable, ticket)`
    /// whenever an operation is due; its callback redeems the ticket. Between arrivals, and
    /// now and then where there is no time between them, `poll` is called, which runs
    /// callbacks; in the end `settle`, after which none is left. Returns how many operations were done.
    ///
    /// # Panics
    /// Without a schedule, and where a callback has not run when all are settled.
    pub(crate) fn issue(
        mut self,
        mut issue: impl FnMut(usize, Ticket),
        mut poll: impl FnMut(),
        settle: impl FnOnce(),
    ) -> u64 {
        let arrivals = self.arrivals.take().expect("the client has a schedule");
        let mut stream = self.stream;
        let tallies = Arc::clone(&arrivals.tallies);
        let mut generator = arrivals.begin(self.stop);
        let clock = generator.clock;
        ANSWERS.set(Some(Answers {
            clock,
            tally: Tally::default(),
        }));
        let issued = std::cell::Cell::new(0);
        generator.issue_each(
            |due| {
                issued.set(issued.get() + 1);
                issue(stream.choose(), Ticket { due });
            },
            || {
                poll();
                answers_so_far() < issued.get()
            },
        );
        settle();
        let answers = ANSWERS.take().expect("it was set above").tally;
        let done = answers.answered();
        assert_eq!(done, issued.get(), "callbacks run and operations issued");
        put(&tallies, &generator.tally);
        put(&tallies, &answers);
        done
    }

    /// For methods that run clients as tasks: `n` generators with a stream of choices each,
    /// among which the arrivals are dealt out, and where their tallies go.
    ///
    /// # Panics
    /// Without a schedule.
    pub(crate) fn into_generators(mut self, n: usize) -> (Vec<(Generator<Wall>, Self)>, Tallies) {
        let arrivals = self.arrivals.take().expect("the client has a schedule");
        let tallies = Tallies(Arc::clone(&arrivals.tallies));
        let stop = Arc::clone(&self.stop);
        let generators = arrivals.split(n).map(|part| part.begin(Arc::clone(&stop)));
        (generators.zip(self.split(n)).collect(), tallies)
    }
}

/// Where the tallies of a slice go.
#[derive(Clone, Debug)]
pub(crate) struct Tallies(Arc<Mutex<Tally>>);

impl Tallies {
    /// Adds one.
    pub(crate) fn put(&self, tally: &Tally) {
        put(&self.0, tally);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::rc::Rc;

    /// A clock that a test moves: each look takes 10 ns, operations take what they say.
    #[derive(Clone, Default)]
    struct Virtual(Rc<Cell<u64>>);

    impl Clock for Virtual {
        fn now(&self) -> u64 {
            self.0.set(self.0.get() + 10);
            self.0.get()
        }
    }

    impl Virtual {
        fn pass(&self, ns: u64) {
            self.0.set(self.0.get() + ns);
        }
    }

    const MS: u64 = 1_000_000;

    /// Operations of 100 ns at `per_second` for `ms`; `stall` says what the n-th takes more.
    fn run(per_second: f64, ms: u64, stall: impl Fn(u64) -> u64) -> Tally {
        let clock = Virtual::default();
        let stop = Arc::new(AtomicBool::new(false));
        let schedule = Schedule::poisson(per_second, 7);
        let mut generator = Generator::new(clock.clone(), schedule, Arc::clone(&stop));
        // As `rest` would, but quickly; the slice ends when its time is over.
        let mut n = 0;
        loop {
            // Relaxed: one thread only.
            stop.store(clock.0.get() >= ms * MS, Ordering::Relaxed);
            match generator.look() {
                Look::Due(due) => {
                    clock.pass(100 + stall(n));
                    n += 1;
                    generator.answered(due);
                }
                Look::Early(left) => clock.pass(left.min(1_000)),
                Look::Over => return generator.tally,
            }
        }
    }

    #[test]
    fn one_stall_is_felt_by_all_that_were_due_meanwhile() {
        // 100,000 a second for 200 ms; the 5,000th operation takes 20 ms.
        let stalled = run(1e5, 200, |n| if n == 5_000 { 20 * MS } else { 0 });
        let calm = run(1e5, 200, |_| 0);
        let (with, without) = (stalled.percentiles().unwrap(), calm.percentiles().unwrap());
        // Of the 20,000 operations some 2,000 were due during the stall: a tenth, so that
        // its middle shows in p99.9, and nearly all of it in the maximum.
        assert!((1_800..=2_200).contains(&stalled.late), "{stalled:?}");
        assert!(with.p999 >= 18 * MS && with.max >= 20 * MS, "{with:?}");
        assert!(with.p99 >= 16 * MS, "{with:?}");
        assert!(with.p50 < 1_000, "{with:?}");
        // Nothing was left out: the same operations were issued with and without it.
        assert_eq!(
            stalled.issued + stalled.unserved,
            calm.issued + calm.unserved
        );
        assert_eq!(stalled.answered(), stalled.issued + stalled.unserved);
        assert!(calm.late < 10 && without.p999 < 2_000, "{calm:?}");
    }

    #[test]
    fn what_is_never_served_counts_with_its_wait() {
        // Ten million a second, and each takes 110 ns: it falls ever further behind.
        let few = run(1e7, 2, |_| 0);
        assert!(few.unserved > 0 && few.late > few.issued / 2);
        // Twice what it bears: half is left, and has waited up to half the time.
        let half = run(2e7, 10, |_| 0);
        let due = (half.issued + half.unserved) as f64;
        assert!((due / 2e5 - 1.0).abs() < 0.02, "{due}");
        let longest = half.percentiles().unwrap().max as f64;
        assert!((4.0e6..6.5e6).contains(&longest), "{longest}");
        // So many that they are not drawn one by one: the same picture.
        let many = run(2e9, 1, |_| 0);
        let due = (many.issued + many.unserved) as f64;
        assert!((due / 2e6 - 1.0).abs() < 0.02, "{due}");
        assert_eq!(many.answered(), many.issued + many.unserved);
    }

    #[test]
    fn waiting_is_measured() {
        // An operation in 10 µs on average, which takes 110 ns and two looks.
        let tally = run(1e5, 100, |_| 0);
        let share = tally.waiting_ns as f64 / (100 * MS) as f64;
        assert!((0.97..0.995).contains(&share), "{share}");
        assert!(run(1e8, 1, |_| 0).waiting_ns < MS / 100);
    }

    #[test]
    fn callbacks_bring_the_latencies() {
        let stop = Arc::new(AtomicBool::new(false));
        let all = Arc::new(Mutex::new(Tally::default()));
        let arrivals = Arrivals {
            schedule: Schedule::poisson(1e6, 3),
            tallies: Arc::clone(&all),
        };
        let draw = crate::workload::random::Draw::new(Default::default(), 5, 1);
        let client = Client::new(0, draw.stream(0, 0), Arc::clone(&stop));
        // Answers come three polls later, and the last ones in the end.
        let open = std::cell::RefCell::new(std::collections::VecDeque::new());
        let polls = Cell::new(0);
        let done = client.with_arrivals(Some(arrivals)).issue(
            |_, ticket| open.borrow_mut().push_back((polls.get() + 3, ticket)),
            || {
                polls.set(polls.get() + 1);
                while open
                    .borrow()
                    .front()
                    .is_some_and(|(at, _)| *at <= polls.get())
                {
                    open.borrow_mut().pop_front().unwrap().1.answered();
                }
                // Relaxed: one thread only.
                stop.store(polls.get() > 10_000, Ordering::Relaxed);
            },
            || {
                open.take()
                    .into_iter()
                    .for_each(|(_, ticket)| ticket.answered())
            },
        );
        let all = all.lock().unwrap();
        assert!(done > 0);
        assert_eq!((all.issued, all.answered() - all.unserved), (done, done));
    }

    #[test]
    fn a_look_at_the_clock_costs_something() {
        assert!(stamp_ns() > 0.0);
    }
}
