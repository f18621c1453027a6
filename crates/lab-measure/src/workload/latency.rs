//! `latency`: the operation of [`fetch_add`](super::fetch_add), arriving on a
//! [schedule](super::schedule), whether or not earlier operations are done.
//!
//! A client in a closed loop issues its next operation when it has the answer. While a method
//! stalls it issues nothing, so a stall of 20 ms shows as *one* slow operation, and the operations
//! that would have come meanwhile are left out ("coordinated omission"; Tene, "How not to measure
//! latency", 2013). Here each client's arrivals are fixed beforehand, and latency counts from the
//! moment at which an operation was *due*: operations that queued after a stall show their wait.
//!
//! ```text
//!   due        ·   ·    ·  ·     ·         ·     drawn beforehand
//!   issued     ·   ·           ···         ·     those after the stall are late
//!   answered    ·   ·──stall──·  ···        ·
//!   latency    ─   ──────────                    from due to answered
//! ```
//!
//! Clients of all methods wait for an arrival by reading the clock again and again. If the next
//! arrival is more than 20 µs away and nothing is in flight, they yield between two reads. An
//! operation that was due and not issued when the slice ends counts with the time it has waited.
//!
//! # The clock
//! Times come from [`Instant`]: in nanoseconds by definition, and 24 ns a read on a virtual machine
//! whose kernel keeps time by the processor's counter. `corelay_sync::ticks` costs 29 ns there, has
//! no unit, and drains the store buffer, which would change what is measured. The cost of a read
//! is measured on every machine (`stamp_ns`) and stands in the results: each latency contains
//! about one.

use crate::measure::tally::Tally;
use crate::workload::random::Client;
use crate::workload::schedule::Schedule;
use corelay_sync::facade::atomic::{AtomicBool, Ordering};
use corelay_sync::facade::{hint, thread};
use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The workload's name in results and on the command line.
pub const NAME: &str = "latency";

/// The largest load, in operations per second: more than any generator can issue.
pub const MAX_LOAD: u64 = 1_000_000_000;

/// Distance of the next arrival, in nanoseconds, beyond which a client yields while it waits. A
/// yield takes some hundred nanoseconds if no thread takes the CPU, and much longer if one does.
const YIELD_DISTANCE_NS: u64 = 20_000;

/// Operations that are issued between two polls while the next one is always due already: some two
/// microseconds' worth. A poll after each would fetch the answers' line once per operation:
/// `trust-then` bore 4.1 million a second with it, 10.5 without (`bench latency`, one client and
/// one trustee on two virtual CPUs).
const ISSUES_PER_POLL: u64 = 32;

/// Number of unserved operations beyond which they are not drawn one by one, but spread evenly over
/// the time in which they were due, at [`UNSERVED_STEPS`] moments. Their true number then differs
/// by less than 1 %.
const MAX_DRAWN_UNSERVED: f64 = 1e5;
/// Moments over which unserved operations are spread.
const UNSERVED_STEPS: u64 = 1_000;

/// A clock that counts nanoseconds from its start.
pub(crate) trait Clock {
    /// The time in nanoseconds; never less than before.
    fn now(&self) -> u64;
}

/// The clock of real measurements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WallClock(Instant);

impl WallClock {
    /// A clock that starts now.
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }
}

impl Clock for WallClock {
    #[inline]
    fn now(&self) -> u64 {
        // Wraps after five centuries.
        self.0.elapsed().as_nanos() as u64
    }
}

/// The cost of reading the clock, in nanoseconds: that of the quickest batch, as nothing makes a
/// batch faster than the hardware.
pub(crate) fn stamp_ns() -> f64 {
    const READS: u64 = 1_000;
    let clock = WallClock::start();
    let batch = |_| {
        let before = clock.now();
        let last = (0..READS).fold(before, |_, _| std::hint::black_box(clock.now()));
        last - before
    };
    (0..20).map(batch).min().unwrap_or(0) as f64 / READS as f64
}

/// The arrivals of one client during one slice, and the tally that it adds its own to.
#[derive(Clone, Debug)]
pub(crate) struct Arrivals {
    pub(crate) schedule: Schedule,
    /// The tally of the slice, to which all clients add theirs.
    pub(crate) tallies: Arc<Mutex<Tally>>,
}

impl Arrivals {
    /// Deals the arrivals out to `n` generators.
    fn split(self, n: usize) -> impl Iterator<Item = Self> {
        let tallies = self.tallies;
        self.schedule.split(n).map(move |schedule| Self {
            schedule,
            tallies: Arc::clone(&tallies),
        })
    }

    /// Starts the clock and the generator of these arrivals.
    fn begin(self, stop: Arc<AtomicBool>) -> Generator<WallClock> {
        Generator::new(WallClock::start(), self.schedule, stop)
    }
}

/// Adds one client's tally to that of the slice.
pub(super) fn put(tallies: &Mutex<Tally>, tally: &Tally) {
    // If a client panicked while it held the lock, the slice has failed anyway.
    let mut all = tallies.lock().unwrap_or_else(PoisonError::into_inner);
    all.merge(tally);
}

/// The result of [`Generator::look`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// The next operation is due, since this moment in nanoseconds from the start. It has been
    /// counted as issued.
    Due(u64),
    /// The next operation will be due in so many nanoseconds.
    Early(u64),
    /// The slice is over.
    Over,
}

/// A generator of load: tells when each operation is due, and counts operations and latencies.
#[derive(Debug)]
pub(crate) struct Generator<C> {
    pub(crate) clock: C,
    schedule: Schedule,
    stop: Arc<AtomicBool>,
    pub(crate) tally: Tally,
    /// The moment at which the next operation is due.
    due: u64,
    /// The time of the last answer, if the next look may use it instead of the clock.
    fresh: Option<u64>,
    /// The moment since which the generator has been waiting for an arrival.
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

    /// Reads the clock and tells whether the next operation is due.
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

    /// Records that the operation which was due at `due` has been answered now.
    #[inline]
    pub(crate) fn answered(&mut self, due: u64) {
        let now = self.clock.now();
        self.tally.answer(now - due);
        self.fresh = Some(now);
    }

    /// Counts the operations that were due by `now` and not issued.
    #[cold]
    fn end(&mut self, now: u64) {
        if let Some(since) = self.waiting.take() {
            self.tally.waiting_ns += now - since;
        }
        let left = now.saturating_sub(self.due);
        let expected = self.schedule.expected(left);
        if expected > MAX_DRAWN_UNSERVED {
            // Drawing them one by one could take longer than the slice did.
            for step in 0..UNSERVED_STEPS {
                let waited = (left as f64 * (step as f64 + 0.5) / UNSERVED_STEPS as f64) as u64;
                self.tally
                    .unserved(waited, (expected / UNSERVED_STEPS as f64) as u64);
            }
            return;
        }
        while self.due <= now {
            self.tally.unserved(now - self.due, 1);
            self.due = self.schedule.next().unwrap_or(u64::MAX);
        }
    }

    /// Issues operations that are answered before `op` returns, until the slice is over.
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

    /// Issues operations that are answered later, until the slice is over. Between arrivals, and
    /// after [`ISSUES_PER_POLL`] operations without a pause, it calls `poll`, which runs callbacks
    /// and returns whether any is still to come.
    #[inline]
    fn issue_each(&mut self, mut issue: impl FnMut(u64), mut poll: impl FnMut() -> bool) {
        let mut burst = 0;
        loop {
            match self.look() {
                Look::Due(due) => {
                    issue(due);
                    burst += 1;
                    if burst % ISSUES_PER_POLL == 0 {
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

/// Pauses briefly before the next look at the clock.
#[inline]
fn rest(left_ns: u64) {
    if left_ns > YIELD_DISTANCE_NS {
        thread::yield_now();
    } else {
        hint::spin_loop();
    }
}

/// A ticket for an operation that a callback on this thread will answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket {
    due: u64,
}

/// The latencies that callbacks of this thread have recorded in this slice.
struct Answers {
    clock: WallClock,
    tally: Tally,
}

thread_local! {
    static ANSWERS: RefCell<Option<Answers>> = const { RefCell::new(None) };
}

impl Ticket {
    /// Records the answer; the callback calls this.
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

/// Number of answers that callbacks of this thread have recorded in this slice.
fn answers_so_far() -> u64 {
    ANSWERS.with_borrow(|answers| answers.as_ref().map_or(0, |a| a.tally.answered()))
}

impl Client {
    /// Runs `op(variable)` whenever an operation is due, until the slice is over; returns how
    /// often. A separate function, so that the closed loop of [`drive`](Self::drive) compiles
    /// without it.
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

    /// Whether operations arrive on a schedule. Methods with callbacks then call
    /// [`issue`](Self::issue).
    pub(crate) fn has_schedule(&self) -> bool {
        self.arrivals.is_some()
    }

    /// Runs a schedule for methods whose answers come to a callback; returns the number of
    /// operations done.
    ///
    /// It calls `issue(variable, ticket)` whenever an operation is due; the callback redeems the
    /// ticket. Between arrivals, and now and then if there is no time between them, it calls
    /// `poll`, which runs callbacks. At the end it calls `settle`, after which no callback may be
    /// outstanding.
    ///
    /// # Panics
    /// There is no schedule, or a callback has not run after `settle`.
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

    /// Makes `n` generators for methods that run clients as tasks. The arrivals are dealt out
    /// among them, and each has its own stream of choices. The second value collects their
    /// tallies.
    ///
    /// # Panics
    /// There is no schedule.
    pub(crate) fn into_generators(
        mut self,
        n: usize,
    ) -> (Vec<(Generator<WallClock>, Self)>, Tallies) {
        let arrivals = self.arrivals.take().expect("the client has a schedule");
        let tallies = Tallies(Arc::clone(&arrivals.tallies));
        let stop = Arc::clone(&self.stop);
        let generators = arrivals.split(n).map(|part| part.begin(Arc::clone(&stop)));
        (generators.zip(self.split(n)).collect(), tallies)
    }
}

/// The tally of a slice, to which the generators of a client add theirs.
#[derive(Clone, Debug)]
pub(crate) struct Tallies(Arc<Mutex<Tally>>);

impl Tallies {
    /// Adds a tally.
    pub(crate) fn put(&self, tally: &Tally) {
        put(&self.0, tally);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::rc::Rc;

    /// A clock that a test moves: reading it takes 10 ns, operations pass their own time.
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

    /// Runs operations of 100 ns at `per_second` for `ms`; `stall(n)` is the n-th one's extra time.
    fn run(per_second: f64, ms: u64, stall: impl Fn(u64) -> u64) -> Tally {
        let clock = Virtual::default();
        let stop = Arc::new(AtomicBool::new(false));
        let schedule = Schedule::poisson(per_second, 7);
        let mut generator = Generator::new(clock.clone(), schedule, Arc::clone(&stop));
        // Waits as `rest` would, but quickly; the slice ends when its time is over.
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
    fn stall_delays_every_operation_due_meanwhile() {
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
    fn unserved_operations_count_with_their_wait() {
        // Ten million a second, each of 110 ns: the generator falls ever further behind.
        let few = run(1e7, 2, |_| 0);
        assert!(few.unserved > 0 && few.late > few.issued / 2);
        // Twice the bearable load: half is left, and has waited up to half the time.
        let half = run(2e7, 10, |_| 0);
        let due = (half.issued + half.unserved) as f64;
        assert!((due / 2e5 - 1.0).abs() < 0.02, "{due}");
        let longest = half.percentiles().unwrap().max as f64;
        assert!((4.0e6..6.5e6).contains(&longest), "{longest}");
        // So many that they are not drawn one by one: the result is the same.
        let many = run(2e9, 1, |_| 0);
        let due = (many.issued + many.unserved) as f64;
        assert!((due / 2e6 - 1.0).abs() < 0.02, "{due}");
        assert_eq!(many.answered(), many.issued + many.unserved);
    }

    #[test]
    fn waiting_time_is_measured() {
        // One operation per 10 µs on average; it takes 110 ns and two looks.
        let tally = run(1e5, 100, |_| 0);
        let share = tally.waiting_ns as f64 / (100 * MS) as f64;
        assert!((0.97..0.995).contains(&share), "{share}");
        assert!(run(1e8, 1, |_| 0).waiting_ns < MS / 100);
    }

    #[test]
    fn callbacks_record_the_latencies() {
        let stop = Arc::new(AtomicBool::new(false));
        let all = Arc::new(Mutex::new(Tally::default()));
        let arrivals = Arrivals {
            schedule: Schedule::poisson(1e6, 3),
            tallies: Arc::clone(&all),
        };
        let draw = crate::workload::random::Distribution::new(Default::default(), 5, 1);
        let client = Client::new(0, draw.stream(0, 0), Arc::clone(&stop));
        // Answers come three polls later, and the last ones at the end.
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
    fn reading_the_clock_has_a_cost() {
        assert!(stamp_ns() > 0.0);
    }
}
