//! The measurement of `compare`, for any workload, within a limited time.
//!
//! ```text
//!   look at the machine ─ check each method ─ latency ─ throughput ─ results
//!   0 s                                       └ as the clock allows ┘ 60 s
//! ```
//!
//! Time decides how much is measured. A set-up that would take too long is left out and named.
//! Rounds are repeated until the time is up. Ctrl-C ends them sooner and keeps the results so
//! far.

use super::sweep;
use corelay_lab_measure::host::Host;
use corelay_lab_measure::measure::load;
use corelay_lab_measure::measure::memory::available_bytes;
use corelay_lab_measure::measure::plan::{self, Item};
use corelay_lab_measure::measure::rig::Rig;
use corelay_lab_measure::measure::session::{Session, Timing};
use corelay_lab_measure::method::{Entry, METHODS, OnSchedule};
use corelay_lab_measure::schema::{Results, Run};
use corelay_lab_measure::workload::fetch_add::FetchAdd;
use corelay_lab_measure::workload::operation::Workload;
use corelay_lab_measure::workload::random::Choice;
use corelay_lab_measure::workload::structure::hash::Map;
use corelay_lab_measure::workload::structure::{SharedStructure, Structure};
use corelay_lab_report::output;
use indicatif::ProgressBar;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// A workload, and the methods that compete in it.
pub struct Contest<W> {
    pub(crate) workload: W,
    /// The methods of the catalogue that are compared.
    pub(crate) entries: Vec<Entry<W>>,
    /// Numbers of variables at the most threads. `vars_of_fewer` has those at fewer threads.
    pub(crate) vars: Vec<u64>,
    pub(crate) vars_of_fewer: Vec<u64>,
    /// The distribution of the chosen variables, or of a structure's keys.
    pub(crate) choice: Choice,
    /// Whether latency under load is measured, too.
    pub(crate) latency: bool,
}

impl<W> Contest<W> {
    /// Sets the numbers of variables, instead of the usual ones. None means the usual ones.
    #[must_use]
    pub fn on(self, vars: Option<Vec<u64>>) -> Self {
        let Some(vars) = vars else {
            return self;
        };
        Self {
            vars_of_fewer: vars.clone(),
            vars,
            ..self
        }
    }

    /// The numbers of variables at the most threads.
    pub fn vars(&self) -> &[u64] {
        &self.vars
    }

    /// Sets the distribution of the chosen variables, or of a structure's keys.
    #[must_use]
    pub fn choosing(self, choice: Choice) -> Self {
        Self { choice, ..self }
    }
}

impl Contest<FetchAdd> {
    /// Returns the contest of `corelay compare`: fetch-add by the usual methods.
    pub fn usual(quick: bool) -> Self {
        let [vars, vars_of_fewer] = sweep::vars(quick);
        Self {
            workload: FetchAdd,
            entries: compared(METHODS.iter().copied()),
            vars: vars.to_vec(),
            vars_of_fewer: vars_of_fewer.to_vec(),
            choice: Choice::Uniform,
            latency: true,
        }
    }
}

/// Keys of the map that `corelay compare` measures beside fetch-add.
const MAP_KEYS: u64 = 100_000;

impl Contest<SharedStructure<Map>> {
    /// Returns the contest that `corelay compare` holds beside fetch-add: a map of 100,000 keys by the
    /// usual methods, without latency.
    pub fn map() -> Self {
        let mut workload = SharedStructure::usual(Map::NAME).expect("the map's own name");
        workload.size = MAP_KEYS;
        Self {
            latency: false,
            ..Self::of_structure(workload, false).on(Some(vec![1]))
        }
    }
}

impl<S: Structure> Contest<SharedStructure<S>> {
    /// Returns the contest of a structure that threads share, by the usual methods and by the
    /// structures that threads use directly.
    pub fn of_structure(workload: SharedStructure<S>, quick: bool) -> Self {
        let [vars, vars_of_fewer] = sweep::shards(quick);
        let with_keys = |entry: Entry<_>| Entry {
            method: entry.method.with_heap(workload.bytes()),
            ..entry
        };
        let entries = compared(SharedStructure::methods()).into_iter();
        Self {
            workload,
            entries: entries.map(with_keys).collect(),
            vars: vars.to_vec(),
            vars_of_fewer: vars_of_fewer.to_vec(),
            choice: Choice::Uniform,
            latency: true,
        }
    }
}

/// Returns the entries that the catalogue marks as compared.
pub(crate) fn compared<W>(entries: impl IntoIterator<Item = Entry<W>>) -> Vec<Entry<W>> {
    let entries = entries.into_iter();
    entries.filter(|entry| entry.compared.is_some()).collect()
}

/// The outcome of a survey.
pub(crate) struct Surveyed {
    pub(crate) results: Results,
    /// Whether Ctrl-C ended the survey early.
    pub(crate) interrupted: bool,
}

impl Surveyed {
    /// Adds the outcome of another survey on the same machine.
    pub(crate) fn add(&mut self, other: Self) {
        self.results.runs.extend(other.results.runs);
        let unavailable = &mut self.results.machine.unavailable;
        for sentence in other.results.machine.unavailable {
            if !unavailable.contains(&sentence) {
                unavailable.push(sentence);
            }
        }
        self.interrupted |= other.interrupted;
    }
}

/// A survey shorter than this takes the quick sweep, with fewer points.
pub(crate) const QUICK_BELOW: Duration = Duration::from_secs(30);

/// The time limits of a survey.
struct Budget {
    /// The moment at which the whole survey ends.
    end: Instant,
    /// Time for measuring latency.
    latency: Duration,
    /// The moment at which measuring ends. The time after it is for checks, taking down and the
    /// report.
    measured: Instant,
}

impl Budget {
    fn new(whole: Duration) -> Self {
        let start = Instant::now();
        // A quarter is kept back. The reference machine needs a second or two; slower ones need
        // more.
        Self {
            end: start + whole,
            latency: whole / 6,
            measured: start + whole * 3 / 4,
        }
    }
}

/// The progress bar of a survey, which shows the time used so far.
struct Progress {
    start: Instant,
    bar: ProgressBar,
}

impl Progress {
    fn new(budget: &Budget) -> Self {
        let start = Instant::now();
        let expected = budget.measured - start;
        Self {
            start,
            bar: output::progress(expected.as_millis() as u64, expected),
        }
    }

    fn say(&self, what: &'static str) {
        self.bar.set_message(what);
        self.tick();
    }

    fn tick(&self) {
        self.bar
            .set_position(self.start.elapsed().as_millis() as u64);
    }
}

impl<W: Workload> Contest<W> {
    /// Measures the whole contest in about `whole`.
    ///
    /// # Errors
    /// A sentence that says what the system refused.
    pub(crate) fn survey(&self, host: &Host, whole: Duration) -> Result<Surveyed, String> {
        let (budget, quick) = (Budget::new(whole), whole < QUICK_BELOW);
        let mut sweep = sweep::of(host, quick, self)?;
        let threads = sweep.iter().map(|item| item.point.threads);
        let mut rig = host.rig(&Default::default(), threads.max().unwrap_or(1))?;
        let progress = Progress::new(&budget);

        progress.say("probing");
        rig.watch(Duration::from_millis(200));
        progress.say("checking");
        let mut left_out = Vec::new();
        let mut runs = self.check(&rig, &mut sweep, budget.measured, &mut left_out);
        let available = available_bytes();
        sweep.retain(|item| {
            item.check_memory(available)
                .map_err(|why| left_out.push(why))
                .is_ok()
        });
        if let (true, true, Some(why)) = (sweep.is_empty(), runs.is_empty(), left_out.last()) {
            return Err(why.clone());
        }
        let fit: BTreeSet<&str> = sweep.iter().map(|item| item.method.name()).collect();
        // Latency comes first: throughput's many contenders take long to check and take down,
        // which only the end has time for. On one CPU the load's generators would take turns with
        // what they load, and the figures would be the scheduler's.
        let one_cpu = host.topology.cpus().len() == 1;
        let mut under_load = Vec::new();
        if self.latency && !one_cpu {
            let until = Instant::now() + budget.latency;
            let usual = |m: &&Entry<W>| m.is_usual_on_schedule() && fit.contains(m.name());
            let entries = self.entries.iter().filter(usual);
            let methods: Vec<OnSchedule<W>> = entries.filter_map(Entry::on_schedule).collect();
            let items = self.climb(&methods, &mut rig, host, quick, until, &progress)?;
            let waves = plan::waves(items, available);
            let measured = self.measure(&mut rig, waves, until, &progress, &mut left_out);
            under_load = load::conclude(&methods, measured);
            let interrupted = rig.is_interrupted();
            left_out.extend(unseen(&methods, &under_load, interrupted, &left_out));
        }
        let waves = plan::waves(sweep, available);
        runs.extend(self.measure(&mut rig, waves, budget.measured, &progress, &mut left_out));
        runs.extend(under_load);
        let late = Instant::now().saturating_duration_since(budget.end);
        if !late.is_zero() {
            left_out.push(format!(
                "time: checking and taking down took {late:.1?} more than planned"
            ));
        }
        progress.bar.finish_and_clear();
        rig.save();

        let mut results = host.results(&rig, runs);
        results.machine.unavailable.extend(left_out);
        if !self.workload.checks() {
            let name = self.workload.name();
            results.machine.unavailable.push(format!(
                "check: this comparison of `{name}` has neither `counted` nor `check`, so a \
                 method that loses operations would not be noticed"
            ));
        }
        if one_cpu {
            let sentence = "one CPU: what cores do to each other (contention, round trips) cannot \
                            be measured, nor latency under load, whose generators need a CPU \
                            of their own; the threads took turns";
            results.machine.unavailable.push(sentence.to_owned());
        }
        Ok(Surveyed {
            results,
            interrupted: rig.is_interrupted(),
        })
    }

    /// Runs each method once on few variables and returns the runs that went wrong. Takes methods
    /// that give a wrong result or cannot be set up out of the sweep.
    fn check(
        &self,
        rig: &Rig,
        sweep: &mut Vec<Item<W>>,
        until: Instant,
        left_out: &mut Vec<String>,
    ) -> Vec<Run> {
        const TIME: Duration = Duration::from_millis(10);
        let most = sweep.iter().map(|item| item.point.threads).max();
        let at_most = || sweep.iter().filter(|i| Some(i.point.threads) == most);
        let fewest = at_most().map(|item| item.point.vars).min();
        let (mut wrong, mut missing) = (Vec::new(), Vec::new());
        for item in at_most().filter(|item| Some(item.point.vars) == fewest) {
            if rig.is_interrupted() {
                break;
            }
            let mut session = Session::of(self.workload);
            let mut item = item.clone();
            let name = item.method.name();
            // More variables than servers, so that every server has work; few enough that threads
            // meet.
            item.point.vars = 2 * item.point.servers.max(1) as u64;
            if let Err(sentence) = session.add(item, &rig.setup_limit(Some(until))) {
                left_out.push(format!("{name}: {sentence}"));
                missing.push(name);
                continue;
            }
            session.warm_up(rig, TIME, || {});
            let runs = session.finish(rig, Timing::of(TIME));
            wrong.extend(runs.into_iter().filter(|run| !run.correct));
        }
        sweep.retain(|item| {
            let name = item.method.name();
            !missing.contains(&name) && wrong.iter().all(|run| run.method != name)
        });
        wrong
    }

    /// Measures each method at rising loads, up to the first that it cannot bear. Low loads come
    /// first, so that no method is missing if time runs out.
    fn climb(
        &self,
        methods: &[OnSchedule<W>],
        rig: &mut Rig,
        host: &Host,
        quick: bool,
        until: Instant,
        progress: &Progress,
    ) -> Result<Vec<Item<W>>, String> {
        progress.say("finding loads");
        let (point, notes, ladder) = sweep::latency(host, quick, self)?;
        // A third of the time at most goes into setting up; the rest is for measuring.
        let now = Instant::now();
        let until = Some(now + until.saturating_duration_since(now) / 3);
        let tick = || progress.tick();
        let loads = load::climb(self.workload, rig, methods, &point, ladder, until, tick);
        let mut items = load::items(methods, &point, &notes, &loads);
        let is_generator = |name| methods.iter().any(|entry| entry.generator.name() == name);
        items.sort_by_key(|item| (!is_generator(item.method.name()), item.point.load));
        Ok(items)
    }

    fn measure(
        &self,
        rig: &mut Rig,
        waves: Vec<Vec<Item<W>>>,
        measured: Instant,
        progress: &Progress,
        left_out: &mut Vec<String>,
    ) -> Vec<Run> {
        let mut runs = Vec::new();
        let mut to_come: usize = waves.iter().map(Vec::len).sum();
        for wave in waves {
            // Each wave gets its share of what is left.
            let now = Instant::now();
            let share = wave.len() as f64 / to_come.max(1) as f64;
            to_come -= wave.len();
            let until = now + measured.saturating_duration_since(now).mul_f64(share);
            let mut session = Session::of(self.workload);
            progress.say("setting up");
            set_up(&mut session, wave, rig, until, progress, left_out);
            if session.is_empty() {
                continue;
            }
            progress.say("warming up");
            session.warm_up(rig, Duration::from_millis(5), || progress.tick());
            progress.say("measuring");
            let timing = timing(session.len(), until);
            while session.round(rig, timing, Some(until), || progress.tick()) {}
            progress.say("checking");
            runs.extend(session.finish(rig, timing));
        }
        runs
    }
}

/// Adds a sentence for each method that has no sample under load and no explanation yet.
fn unseen<W>(
    methods: &[OnSchedule<W>],
    runs: &[Run],
    interrupted: bool,
    said: &[String],
) -> Vec<String> {
    let why = match interrupted {
        true => "interrupted",
        false => "the time was over",
    };
    let names = methods.iter().map(|entry| entry.method.name());
    let seen = |name: &str| {
        runs.iter()
            .any(|r| r.method == name && !r.samples.is_empty())
    };
    names
        .filter(|name| !seen(name))
        .map(under_load)
        .filter(|what| {
            !said
                .iter()
                .any(|sentence| sentence.starts_with(what.as_str()))
        })
        .map(|what| format!("{what}: {why} before its first sample"))
        .collect()
}

/// Number of rounds that should fit, so that most points see each mode of the machine.
const ROUNDS: u32 = 12;

/// Chooses a sample length of 5 to 30 ms, so that [`ROUNDS`] of them fit before `until`.
fn timing(contenders: usize, until: Instant) -> Timing {
    let left = until.saturating_duration_since(Instant::now());
    let each = left / ROUNDS / contenders.max(1) as u32;
    // A sample costs a tenth more for its warm-up, and the time of the probe.
    let sample = each
        .saturating_sub(Duration::from_millis(3))
        .mul_f64(10.0 / 11.0);
    Timing::of(sample.clamp(Duration::from_millis(5), Duration::from_millis(30)))
}

/// Sets up the contenders that fit into a third of the remaining time. Predicts each by the time
/// the same method took for fewer variables.
fn set_up<W: Workload>(
    session: &mut Session<W>,
    mut wave: Vec<Item<W>>,
    rig: &Rig,
    until: Instant,
    progress: &Progress,
    left_out: &mut Vec<String>,
) {
    let now = Instant::now();
    let latest = now + until.saturating_duration_since(now) / 3;
    wave.sort_by_key(|item| item.point.vars);
    let mut seconds_per_var: BTreeMap<&str, f64> = BTreeMap::new();
    for item in wave {
        if rig.is_interrupted() {
            return;
        }
        let (name, vars) = (item.method.name(), item.point.vars as f64);
        let expected = seconds_per_var.get(name).copied().unwrap_or(0.0) * vars;
        let start = Instant::now();
        let what = what(&item);
        if start + Duration::from_secs_f64(expected) > latest {
            leave_out(left_out, &what, "setting it up would take too long");
            continue;
        }
        // A contender slower than predicted must not take the time of all others.
        let setup_limit =
            rig.setup_limit(Some(start + latest.saturating_duration_since(start) / 2));
        if let Err(sentence) = session.add(item, &setup_limit) {
            leave_out(left_out, &what, &sentence);
        }
        // Small set-ups are mostly overhead; extrapolating from them would overestimate.
        if vars >= 1000.0 {
            seconds_per_var.insert(name, start.elapsed().as_secs_f64() / vars);
        }
        progress.tick();
    }
}

/// Describes a contender: `trust with 64 variables and 2 threads`.
fn what<W>(item: &Item<W>) -> String {
    let name = item.method.name();
    let vars = match item.point.vars {
        1 => "1 variable".to_owned(),
        n => format!("{n} variables"),
    };
    match item.point.load {
        Some(_) if name.starts_with("generator") => "the generator of the load".to_owned(),
        Some(_) => under_load(name),
        None => format!("{name} with {vars} and {} threads", item.point.threads),
    }
}

fn under_load(name: &str) -> String {
    format!("{name} under load")
}

/// Adds the sentence `what: why` to the list of what was left out, unless it is there already: all
/// loads of a method give the same sentence.
fn leave_out(left_out: &mut Vec<String>, what: &str, why: &str) {
    let sentence = format!("{what}: {why}");
    if !left_out.contains(&sentence) {
        left_out.push(sentence);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corelay_lab_measure::workload::point::Point;
    use corelay_sync::facade::atomic::Ordering;
    use std::sync::Arc;

    #[test]
    fn a_method_without_a_sample_under_load_is_named() {
        let usual = METHODS.iter().filter(|m| m.is_usual_on_schedule());
        let usual: Vec<OnSchedule> = usual.filter_map(Entry::on_schedule).collect();
        let [first, second, third] = [0, 1, 2].map(|i: usize| usual[i].method.name());
        let point = Point::small(2);
        let mut rig = Rig::new(&[None; 2], &[], "test", Default::default()).unwrap();
        let mut session = Session::new();
        // The generator and the first two methods; there is no time for the second.
        let items = load::items(&usual[..2], &point, &[], &[vec![1_000], vec![1_000]]);
        assert_eq!(what(&items[0]), "the generator of the load");
        assert_eq!(what(&items[1]), format!("{first} under load"));
        for item in items {
            session.add(item, &rig.setup_limit(None)).unwrap();
        }
        let interrupted = Arc::clone(&rig.interrupted);
        let mut samples = 0;
        session.round(&mut rig, Timing::of(Duration::from_millis(2)), None, || {
            samples += 1;
            // Relaxed: only one thread uses the flag.
            interrupted.store(samples == 2, Ordering::Relaxed);
        });
        let runs = session.finish(&rig, Timing::of(Duration::from_millis(2)));
        let runs = load::conclude(&usual, runs);
        let unseen = |said: &[String]| unseen(&usual[..3], &runs, false, said);
        let sentence =
            |name| format!("{name} under load: the time was over before its first sample");
        assert_eq!(unseen(&[]), [sentence(second), sentence(third)]);
        let said = [format!("{second} under load: no thread")];
        assert_eq!(unseen(&said), [sentence(third)]);
    }

    #[test]
    fn a_reason_for_leaving_out_is_recorded_once() {
        let mut left_out = Vec::new();
        for why in ["no thread", "no thread", "no memory"] {
            leave_out(&mut left_out, "mutex under load", why);
        }
        assert_eq!(
            left_out,
            ["mutex under load: no thread", "mutex under load: no memory"]
        );
    }
}
