//! A session: contenders of one workload, sampled in turn.
//!
//! The machine's speed changes every few seconds, so measuring first all of A and then all of B
//! would compare two machines. Instead all contenders are set up first, and a *round* takes one
//! sample of each in turn, with a probe before and after it (its *bracket*):
//!
//! ```text
//!   probe  A  probe  B  probe  C  probe  A  probe  B …
//!     └─ bracket ─┘└─ bracket ─┘
//! ```

use crate::measure::limit;
use crate::measure::mode::{Bracket, tag};
use crate::measure::plan::Item;
use crate::measure::rig::Rig;
use crate::measure::slice::{self, Slice};
use crate::measure::stats;
use crate::measure::tally::{Packed, Tally};
use crate::method::{Contender, SetupLimit};
use crate::schema::{
    Arrivals, ConflictCounts, Mode, ModeSummary, Params, Percentiles, PictureResult, Run, Sample,
};
use crate::workload::fetch_add::FetchAdd;
use crate::workload::operation::WorkloadInfo;
use crate::workload::point::Point;
use crate::workload::random::Distribution;
use crate::workload::raytrace::Picture;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Contenders of one workload that are measured together.
#[derive(Debug)]
pub struct Session<W = FetchAdd> {
    workload: W,
    entries: Vec<Measured>,
    /// Random streams handed out so far.
    streams: u64,
}

/// A contender and its samples.
struct Measured {
    method: &'static str,
    point: Point,
    contender: Arc<dyn Contender>,
    draw: Distribution,
    /// Operations since the set-up, in samples and in warm-ups.
    ops: u64,
    taken: Vec<TakenSample>,
    notes: Vec<String>,
    failure: Option<String>,
}

/// A sample whose mode is not decided yet.
struct TakenSample {
    slice: Slice,
    bracket: Option<Bracket>,
    /// Latencies in packed form, if operations arrived on a schedule or were timed; likewise the
    /// field below.
    latencies: Option<Packed>,
    latency_ns: Option<Percentiles>,
    /// The operations that arrived, if they arrived on a schedule.
    arrivals: Option<Arrivals>,
    counts: Option<ConflictCounts>,
    picture: Option<PictureResult>,
}

/// The lengths of the slices of a round.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Length of a sample.
    pub sample: Duration,
    /// Length of the warm-up right before it: the same threads, but nothing is counted.
    pub warm: Duration,
}

impl Timing {
    /// Samples of length `sample`, each after a warm-up of a tenth of it (1 to 20 ms).
    pub fn of(sample: Duration) -> Self {
        Self {
            sample,
            warm: (sample / 10).clamp(Duration::from_millis(1), Duration::from_millis(20)),
        }
    }

    /// Rough time that a sample takes with its warm-up, its probe and its wake-ups.
    pub fn whole(self) -> Duration {
        self.sample + self.warm + super::rig::PROBE_TIME + Duration::from_micros(500)
    }
}

impl std::fmt::Debug for Measured {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry")
            .field("method", &self.method)
            .field("point", &self.point)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// A session of fetch-add without contenders.
    pub fn new() -> Self {
        Self::of(FetchAdd)
    }
}

impl Default for Session {
    fn default() -> Self {
        Self::new()
    }
}

impl<W: WorkloadInfo> Session<W> {
    /// A session of `workload` without contenders.
    pub fn of(workload: W) -> Self {
        Self {
            workload,
            entries: Vec::new(),
            streams: 0,
        }
    }

    /// Sets up a method at its point, adjusted to the method's needs, as a contender.
    ///
    /// # Errors
    /// A sentence that says what could not be had.
    pub fn add(&mut self, item: Item<W>, setup_limit: &SetupLimit) -> Result<(), String> {
        let Item {
            method,
            mut point,
            mut notes,
        } = item;
        notes.extend(point.adjust(&method));
        point.window = method.window_at(&point);
        let contender = Arc::from(method.build(self.workload, &point, setup_limit)?);
        let choices = self.workload.choices(point.vars);
        let draw = Distribution::new(point.choice, choices, point.seed);
        let (taken, failure) = (Vec::new(), None);
        self.entries.push(Measured {
            method: method.name(),
            point,
            contender,
            draw,
            ops: 0,
            taken,
            notes,
            failure,
        });
        Ok(())
    }

    /// Number of contenders.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the session has no contenders.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Runs each contender for `time` without keeping a figure, so that pages are touched, queues
    /// allocated and sleeping threads woken. Stops early when interrupted.
    pub fn warm_up(&mut self, rig: &Rig, time: Duration, mut tick: impl FnMut()) {
        for entry in &mut self.entries {
            self.streams += 1;
            if rig.is_interrupted() {
                return;
            }
            entry.warm_up(self.workload, rig, self.streams, time);
            tick();
        }
    }

    /// Takes one sample of each contender. Returns false if an interrupt or `deadline` ended the
    /// round early.
    pub fn round(
        &mut self,
        rig: &mut Rig,
        timing: Timing,
        deadline: Option<Instant>,
        mut tick: impl FnMut(),
    ) -> bool {
        let mut before = rig.distance();
        for entry in &mut self.entries {
            let late = |deadline| Instant::now() + timing.whole() > deadline;
            if rig.is_interrupted() || deadline.is_some_and(late) {
                return false;
            }
            self.streams += 2;
            entry.warm_up(self.workload, rig, self.streams, timing.warm);
            // The counts of the warm-up belong to no sample.
            let _ = entry.contender.counts();
            let (slice, picture) = match self.workload.picture() {
                None => (entry.run(rig, self.streams + 1, Some(timing.sample)), None),
                Some(picture) => entry.paint(rig, self.streams + 1, picture),
            };
            let after = rig.distance();
            // Operations of a slice that Ctrl-C cut short enter the check, not the figures.
            if let Some(slice) = slice.filter(|_| !rig.is_interrupted()) {
                let bracket = rig.bracket(before, after);
                let counts = entry.contender.counts();
                let has_schedule = entry.point.load.is_some();
                let sample = TakenSample::new(slice, has_schedule, bracket, counts);
                entry.taken.push(TakenSample { picture, ..sample });
            }
            before = after;
            tick();
        }
        true
    }

    /// The number of samples of `mode` that each contender has at least, as far as modes are known.
    pub fn blocks(&self, rig: &Rig, mode: Mode) -> usize {
        let smallest = rig.smallest_ns();
        let of = |entry: &Measured| {
            entry
                .taken
                .iter()
                .filter(|taken| tag(taken.bracket, smallest) == mode)
                .count()
        };
        self.entries.iter().map(of).min().unwrap_or(0)
    }

    /// Checks every contender's final count and summarizes its samples.
    pub fn finish(self, rig: &Rig, timing: Timing) -> Vec<Run> {
        self.entries
            .into_iter()
            .map(|entry| entry.finish(self.workload, rig, timing))
            .collect()
    }
}

impl Measured {
    /// Runs a slice for `time` that is no sample.
    fn warm_up(&mut self, workload: impl WorkloadInfo, rig: &Rig, stream: u64, time: Duration) {
        if let Some(picture) = workload.picture() {
            picture.begin();
        }
        self.run(rig, stream, Some(time));
    }

    /// Runs a slice in which the clients paint a picture, and another one in which they read its
    /// statistics. If anything is wrong, this contender is not run again.
    fn paint(
        &mut self,
        rig: &Rig,
        stream: u64,
        picture: &Picture,
    ) -> (Option<Slice>, Option<PictureResult>) {
        picture.begin();
        let slice = self.run(rig, stream, None);
        picture.begin_reading();
        self.run(rig, stream, None);
        let Some(slice) = slice.filter(|_| self.failure.is_none() && !rig.is_interrupted()) else {
            return (None, None);
        };
        match picture.finish(slice.wall_s) {
            Ok(result) => (Some(slice), Some(result)),
            Err(wrong) => {
                self.failure = Some(format!("wrong result: {wrong}"));
                (None, None)
            }
        }
    }

    /// Runs one slice for `time`, or until the clients end by themselves. If a client panics, this
    /// contender is not run again.
    fn run(&mut self, rig: &Rig, stream: u64, time: Option<Duration>) -> Option<Slice> {
        if self.failure.is_some() {
            return None;
        }
        let outcome = slice::run(
            &rig.crew,
            &self.contender,
            &self.draw,
            self.point.load,
            stream,
            time,
            &rig.interrupted,
        );
        match outcome {
            Ok(slice) => {
                self.ops += slice.ops();
                // Without a schedule, clients time some operations only.
                let whole = slice.tally.as_ref().filter(|_| self.point.load.is_some());
                self.failure = whole.and_then(|t| t.gap(slice.ops()));
                Some(slice)
            }
            Err(panic) => {
                self.failure = Some(format!("a client panicked: {panic}"));
                None
            }
        }
    }

    /// A sentence if this contender has no figure, because it panicked or lost operations.
    fn failure(&mut self, counts: bool, rig: &Rig) -> Option<String> {
        if self.failure.is_some() {
            return self.failure.take();
        }
        // Summed up on a client's CPU: the main thread may share one with a busy server.
        let first = self.contender.clients().start;
        let contender = Arc::clone(&self.contender);
        let sum = rig
            .crew
            .start(first..first + 1, move |_| contender.total())
            .join();
        match sum.into_iter().next() {
            Some(Ok(Ok(total))) if total == self.ops || !counts => None,
            Some(Ok(Ok(total))) => Some(format!(
                "wrong result: {} operations, but the variables sum up to {total}",
                self.ops
            )),
            Some(Ok(Err(sentence))) => Some(format!("wrong result: {sentence}")),
            Some(Err(panic)) => Some(format!("the final sum panicked: {panic}")),
            None => Some("the variables could not be summed up".to_owned()),
        }
    }

    /// Ends the contender and summarizes its samples.
    fn finish(mut self, task: impl WorkloadInfo, rig: &Rig, timing: Timing) -> Run {
        let failure = self.failure(task.counts(), rig);
        let loads = self.contender.loads();
        // Jobs drop the contender before they send their result, so this is its only owner.
        let trustees = Arc::get_mut(&mut self.contender).map_or_else(Vec::new, |c| c.end());
        let correct = failure.is_none();
        let mut notes = self.notes;
        notes.extend(failure);
        notes.extend(rig.crew.notes(self.point.threads).map(str::to_owned));
        let smallest = rig.smallest_ns();
        let latencies = if correct {
            latencies(&self.taken, smallest)
        } else {
            BTreeMap::new()
        };
        let samples: Vec<Sample> = self.taken.into_iter().map(|t| t.tagged(smallest)).collect();
        let kept = if correct {
            kept(&samples)
        } else {
            BTreeMap::new()
        };
        let all: Vec<f64> = kept.values().flatten().copied().collect();
        if correct && all.is_empty() {
            notes.push("no sample could be used".to_owned());
        }
        let load = self
            .point
            .load
            .map(|offered| limit::load(offered, &samples));
        let workload = match load {
            None => task.name(),
            Some(_) => task.name_under_load(),
        };
        Run {
            workload: workload.to_owned(),
            method: self.method.to_owned(),
            params: params(&self.point, task, timing, |member| rig.crew.cpu(member)),
            correct,
            median_mops: stats::median(&all).unwrap_or(0.0),
            harmonic_mean_mops: stats::harmonic_mean(&all).unwrap_or(0.0),
            by_mode: kept
                .into_iter()
                .filter_map(|(m, v)| {
                    let of_mode = samples.iter().filter(|s| s.mode == m);
                    let open = ModeSummary {
                        latency_ns: latencies.get(&m).and_then(Tally::percentiles),
                        limit: load.map(|_| limit::limit(of_mode)),
                        ..summary(&v)?
                    };
                    Some((m, open))
                })
                .collect(),
            latency_ns: together(latencies.values()).percentiles(),
            load,
            samples,
            trustees,
            loads,
            not_installed: None,
            cache: None,
            notes,
        }
    }
}

/// The latencies of the kept samples, by mode.
fn latencies(taken: &[TakenSample], smallest: Option<f64>) -> BTreeMap<Mode, Tally> {
    let mut by_mode: BTreeMap<Mode, Tally> = BTreeMap::new();
    for taken in taken {
        let mode = tag(taken.bracket, smallest);
        if let Some(latencies) = taken.latencies.as_ref().filter(|_| mode != Mode::Discarded) {
            by_mode.entry(mode).or_default().unpack(latencies);
        }
    }
    by_mode
}

/// All tallies merged into one.
fn together<'a>(tallies: impl Iterator<Item = &'a Tally>) -> Tally {
    let mut all = Tally::default();
    tallies.for_each(|tally| all.merge(tally));
    all
}

impl TakenSample {
    fn new(
        mut slice: Slice,
        has_schedule: bool,
        bracket: Option<Bracket>,
        counts: Option<ConflictCounts>,
    ) -> Self {
        let tally = slice.tally.take();
        let tally = tally.as_ref();
        Self {
            latencies: tally.map(Tally::packed),
            latency_ns: tally.and_then(Tally::percentiles),
            arrivals: tally.filter(|_| has_schedule).map(|t| Arrivals {
                due: t.issued + t.unserved,
                late: t.late,
                unserved: t.unserved,
                waiting_s: t.waiting_ns as f64 * 1e-9,
                wall_s: slice.wall_s,
            }),
            slice,
            bracket,
            counts,
            picture: None,
        }
    }

    /// The sample with its mode, as it stands in a result file.
    fn tagged(self, smallest: Option<f64>) -> Sample {
        Sample {
            mops: self.slice.mops(),
            mode: tag(self.bracket, smallest),
            rtt_ns: self.bracket.map(Bracket::larger_ns),
            cpu_s: self.slice.cpu_s,
            latency_ns: self.latency_ns,
            arrivals: self.arrivals,
            fibres: None,
            counts: self.counts,
            picture: self.picture,
            cache: None,
            per_thread: self.slice.per_thread,
        }
    }
}

/// The throughput of the kept samples (all but the discarded ones), by mode.
pub fn kept(samples: &[Sample]) -> BTreeMap<Mode, Vec<f64>> {
    let mut kept: BTreeMap<Mode, Vec<f64>> = BTreeMap::new();
    for sample in samples.iter().filter(|s| s.mode != Mode::Discarded) {
        kept.entry(sample.mode).or_default().push(sample.mops);
    }
    kept
}

/// Median and quartiles of `mops`; `None` if it is empty.
pub fn summary(mops: &[f64]) -> Option<ModeSummary> {
    Some(ModeSummary {
        median_mops: stats::median(mops)?,
        n: mops.len(),
        q1_mops: stats::quantile(mops, 0.25)?,
        q3_mops: stats::quantile(mops, 0.75)?,
        latency_ns: None,
        limit: None,
    })
}

fn params(
    point: &Point,
    task: impl WorkloadInfo,
    timing: Timing,
    cpu: impl Fn(usize) -> Option<usize>,
) -> Params {
    let mut extra = task.extra();
    if let Some(load) = point.load {
        extra.other.insert("load".to_owned(), load.into());
        extra.other.insert("arrivals".to_owned(), "poisson".into());
    }
    Params {
        threads: point.threads,
        servers: point.servers,
        vars: point.vars,
        window: point.window,
        secs: match task.picture() {
            None => timing.sample.as_secs_f64(),
            Some(_) => 0.0,
        },
        dist: point.choice.to_string(),
        seed: point.seed,
        placement: (0..point.threads).map(cpu).collect(),
        extra,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::{Entry, Kind, METHODS, Method, alone, broken};
    use crate::workload::latency;
    use corelay_sync::facade::atomic::Ordering;

    fn item(method: Method, threads: usize) -> Item {
        let point = Point {
            // At least one for each member of a flat team.
            vars: threads.max(3) as u64,
            window: 4,
            ..Point::small(threads)
        };
        Item {
            method,
            point,
            notes: vec!["said before".to_owned()],
        }
    }

    fn rig(threads: usize) -> Rig {
        Rig::new(&vec![None; threads], &[], "test", Arc::default()).unwrap()
    }

    const TIMING: Timing = Timing {
        sample: Duration::from_millis(2),
        warm: Duration::from_millis(1),
    };

    fn measure(rig: &mut Rig, methods: &[Method], rounds: usize) -> Vec<Run> {
        let mut session = Session::new();
        for &method in methods {
            session
                .add(item(method, rig.crew.len()), &SetupLimit::default())
                .unwrap();
        }
        session.warm_up(rig, TIMING.warm, || {});
        for _ in 0..rounds {
            session.round(rig, TIMING, None, || {});
        }
        session.finish(rig, TIMING)
    }

    #[test]
    fn every_method_is_correct_with_two_and_with_five_threads() {
        for threads in [2, 5] {
            let methods: Vec<Method> = METHODS.iter().map(|entry| entry.method).collect();
            for run in measure(&mut rig(threads), &methods, 2) {
                assert!(run.correct, "{run:?}");
                assert_eq!(run.samples.len(), 2);
                assert!(run.median_mops > 0.0);
                assert_eq!(run.by_mode[&Mode::Unknown].n, 2);
                assert_eq!(run.notes[0], "said before");
                let is_alone = run.method == alone::NAME;
                let threads = if is_alone { 1 } else { threads };
                assert_eq!(run.params.placement, vec![None; threads]);
                let servers = match Method::named(&run.method).map(|m| m.kind()) {
                    Some(Kind::Dedicated) => 1,
                    Some(Kind::Flat) => threads,
                    _ => 0,
                };
                assert_eq!(run.trustees.len(), servers, "{}", run.method);
                let asked: u64 = run.samples.iter().flat_map(|s| &s.per_thread).sum();
                let ran: u64 = run.trustees.iter().map(|t| t.requests).sum();
                assert!(servers == 0 || ran > asked, "{run:?}");
                for trustee in &run.trustees {
                    assert!(trustee.requests >= trustee.batches && trustee.batches > 0);
                    assert!(trustee.passes >= trustee.passes_with_work);
                    assert!(trustee.passes_with_work > 0);
                    assert_eq!(trustee.panics, 0);
                }
            }
        }
    }

    #[test]
    fn every_method_on_a_schedule_counts_every_operation_that_was_due() {
        for threads in [2, 5] {
            let mut rig = rig(threads);
            let mut session = Session::new();
            for entry in METHODS.iter().filter_map(Entry::on_schedule) {
                let mut item = item(entry.method, threads);
                let generator = entry.generator_point(&item.point);
                item.point.load = Some(100_000);
                session.add(item, &SetupLimit::default()).unwrap();
                let generator = Item {
                    method: entry.generator,
                    point: generator,
                    notes: vec![],
                };
                session.add(generator, &SetupLimit::default()).unwrap();
            }
            session.warm_up(&rig, TIMING.warm, || {});
            for _ in 0..3 {
                session.round(&mut rig, TIMING, None, || {});
            }
            for run in session.finish(&rig, TIMING) {
                assert!(run.correct, "{run:?}");
                assert_eq!(run.workload, latency::NAME);
                let load = run.load.unwrap();
                assert_eq!(run.params.extra.other["load"], load.offered);
                for sample in &run.samples {
                    let arrivals = sample.arrivals.unwrap();
                    let done: u64 = sample.per_thread.iter().sum();
                    assert_eq!(arrivals.due, done + arrivals.unserved);
                    assert!(arrivals.late <= done);
                }
                let all = run.latency_ns.unwrap();
                assert!(all.p50 <= all.p99 && all.p99 <= all.p999 && all.p999 <= all.max);
                assert_eq!(run.by_mode[&Mode::Unknown].latency_ns, Some(all));
            }
        }
    }

    #[test]
    fn lost_updates_on_a_schedule_have_no_latency() {
        let mut rig = rig(2);
        let mut session = Session::new();
        let mut item = item(broken::LOSES, 2);
        // More than the method bears, for long enough: thousands of operations, of which every
        // thousandth is lost, if no other.
        item.point.load = Some(100_000_000);
        session.add(item, &SetupLimit::default()).unwrap();
        session.warm_up(&rig, Duration::from_millis(50), || {});
        for _ in 0..3 {
            session.round(&mut rig, TIMING, None, || {});
        }
        let run = &session.finish(&rig, TIMING)[0];
        assert!(!run.correct && run.latency_ns.is_none() && run.by_mode.is_empty());
    }

    #[test]
    fn lost_updates_have_no_figure() {
        for threads in [1, 2] {
            let runs = measure(&mut rig(threads), &[METHODS[0].method, broken::LOSES], 3);
            assert!(runs[0].correct);
            assert!(!runs[1].correct);
            assert!(
                runs[1].notes.iter().any(|n| n.starts_with("wrong result")),
                "{:?}",
                runs[1].notes
            );
            assert!(runs[1].by_mode.is_empty());
            assert_eq!(
                (runs[1].median_mops, runs[1].harmonic_mean_mops),
                (0.0, 0.0)
            );
        }
    }

    #[test]
    fn panic_is_a_wrong_result_and_other_contenders_go_on() {
        let runs = measure(&mut rig(2), &[broken::PANICS, METHODS[0].method], 2);
        assert!(!runs[0].correct && runs[1].correct);
        assert!(runs[0].notes.iter().any(|n| n.contains("broken by design")));
        assert_eq!(runs[1].samples.len(), 2);
    }

    #[test]
    fn interrupt_keeps_the_samples_taken_so_far() {
        let mut rig = rig(2);
        let mut session = Session::new();
        session
            .add(item(METHODS[0].method, 2), &SetupLimit::default())
            .unwrap();
        session
            .add(item(METHODS[1].method, 2), &SetupLimit::default())
            .unwrap();
        assert!(session.round(&mut rig, TIMING, None, || {}));
        let flag = Arc::clone(&rig.interrupted);
        // Relaxed: one thread only.
        let after_one = || flag.store(true, Ordering::Relaxed);
        assert!(!session.round(&mut rig, TIMING, None, after_one));
        let runs = session.finish(&rig, TIMING);
        assert_eq!(
            runs.iter().map(|r| r.samples.len()).collect::<Vec<_>>(),
            [2, 1]
        );
        assert!(runs.iter().all(|run| run.correct));
    }

    #[test]
    fn deadline_ends_a_round() {
        let mut rig = rig(2);
        let mut session = Session::new();
        session
            .add(item(METHODS[0].method, 2), &SetupLimit::default())
            .unwrap();
        assert!(!session.round(&mut rig, TIMING, Some(Instant::now()), || {}));
        assert!(
            session.finish(&rig, TIMING)[0]
                .notes
                .iter()
                .any(|n| n == "no sample could be used")
        );
    }
}
