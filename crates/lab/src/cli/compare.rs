//! `corelay compare`: the main job, within a minute.
//!
//! ```text
//!   look at the machine ─ check each method ─ throughput ─ latency ─ report
//!   0 s                                       └ as the clock allows ┘ 60 s
//! ```
//!
//! The clock decides: a set-up that would take too long is left out and named, rounds are
//! measured until the time is up, and Ctrl-C ends them sooner with the same report.

use crate::cli::host::Host;
use crate::cli::output::{self, Target};
use crate::cli::{Exit, sweep};
use crate::measure::load;
use crate::measure::memory::available_bytes;
use crate::measure::plan::{self, Item};
use crate::measure::rig::Rig;
use crate::measure::session::{Session, Timing};
use crate::method::{ON_SCHEDULE, OnSchedule};
use crate::report;
use crate::schema::Run;
use indicatif::ProgressBar;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Compare all methods on this machine, and say which to use where
///
/// Takes about a minute (with --quick a quarter of it), needs no special rights, and
/// leaves a page (index.html) and the raw results (results.json) in a folder.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A quarter of a minute, fewer points
    #[arg(long)]
    quick: bool,

    /// Folder for index.html and results.json; made if it is not there
    #[arg(long, value_name = "DIR", default_value = "corelay-report")]
    out: PathBuf,

    /// Print the results as JSON instead of the verdict
    #[arg(long)]
    json: bool,
}

/// How the time is spent.
struct Budget {
    /// Everything must be over.
    end: Instant,
    /// Throughput must be measured.
    throughput: Instant,
    /// Measuring must be over: what is left is for checks, taking down and the report.
    measured: Instant,
}

impl Budget {
    fn new(quick: bool) -> Self {
        let whole = Duration::from_secs(if quick { 15 } else { 60 });
        let start = Instant::now();
        // A sixth is kept: it takes a second or two here, and must do on slower machines.
        // Another is for latency.
        Self {
            end: start + whole,
            throughput: start + whole * 4 / 6,
            measured: start + whole * 5 / 6,
        }
    }
}

/// A bar that shows how much of the time is over.
struct Clock {
    start: Instant,
    bar: ProgressBar,
}

impl Clock {
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

pub(crate) fn run(args: Args) -> Result<Exit, String> {
    let budget = Budget::new(args.quick);
    let host = Host::look();
    let (page, data) = args.targets()?;
    let mut sweep = sweep::of(&host, args.quick)?;
    let most = sweep
        .iter()
        .map(|item| item.point.threads)
        .max()
        .unwrap_or(1);
    let mut rig = host.rig(&Default::default(), most)?;
    let clock = Clock::new(&budget);

    clock.say("probing");
    rig.probe(Duration::from_millis(200));
    clock.say("checking");
    let mut left_out = Vec::new();
    let mut runs = check(&rig, &mut sweep, budget.measured, &mut left_out);
    let available = available_bytes();
    sweep.retain(|item| {
        item.check_memory(available)
            .map_err(|why| left_out.push(why))
            .is_ok()
    });
    let fit: BTreeSet<&str> = sweep.iter().map(|item| item.method.name()).collect();
    let waves = plan::waves(sweep, available);
    let (until, later) = (budget.throughput, budget.measured);
    runs.extend(measure(&mut rig, waves, until, &clock, &mut left_out));
    let loads = climb(&mut rig, &host, args.quick, &fit, later, &clock)?;
    let waves = plan::waves(loads, available);
    let under_load = measure(&mut rig, waves, later, &clock, &mut left_out);
    runs.extend(load::conclude(under_load));
    let late = Instant::now().saturating_duration_since(budget.end);
    if !late.is_zero() {
        left_out.push(format!(
            "time: checking and taking down took {late:.1?} more than planned"
        ));
    }
    clock.bar.finish_and_clear();
    rig.save();

    let wrong = runs.iter().any(|run| !run.correct);
    let mut results = host.results(&rig, runs);
    results.machine.unavailable.extend(left_out);
    if host.topology.cpus().len() == 1 {
        let sentence = "one CPU: what cores do to each other (contention, round trips) cannot be \
                        measured; the threads took turns";
        results.machine.unavailable.push(sentence.to_owned());
    }
    let mut json = serde_json::to_string_pretty(&results).map_err(|e| e.to_string())?;
    json.push('\n');
    data.write(json.as_bytes())
        .map_err(|error| args.unwritable(&error))?;
    page.write(report::html(&results).as_bytes())
        .map_err(|error| args.unwritable(&error))?;
    let text = if args.json {
        json
    } else {
        let page = args.out.join("index.html");
        format!(
            "{}\nThe page is {}\n",
            report::verdict(&results),
            page.display()
        )
    };
    output::say(&text)?;
    Ok(match (wrong, rig.is_interrupted()) {
        (true, _) => Exit::Wrong,
        (false, true) => Exit::Interrupted,
        (false, false) => Exit::Fine,
    })
}

impl Args {
    /// The page and the raw results, opened before anything is measured.
    fn targets(&self) -> Result<(Target, Target), String> {
        let open = |name| Target::open(&self.out.join(name));
        if self.out.is_file() {
            let out = self.out.display();
            return Err(format!("--out {out}: it is a file; a folder is needed"));
        }
        std::fs::create_dir_all(&self.out)
            .and_then(|()| Ok((open("index.html")?, open("results.json")?)))
            .map_err(|error| self.unwritable(&error))
    }

    fn unwritable(&self, error: &std::io::Error) -> String {
        format!(
            "--out {}: the folder cannot be written: {error}",
            self.out.display()
        )
    }
}

/// Runs each method once on few variables and returns the runs that went wrong. Methods
/// that give a wrong result or cannot be set up are taken out of the sweep.
fn check(rig: &Rig, sweep: &mut Vec<Item>, until: Instant, left_out: &mut Vec<String>) -> Vec<Run> {
    const TIME: Duration = Duration::from_millis(10);
    let most = sweep.iter().map(|item| item.point.threads).max();
    let (mut wrong, mut missing) = (Vec::new(), Vec::new());
    for item in sweep
        .iter()
        .filter(|i| Some(i.point.threads) == most && i.point.vars == 1)
    {
        if rig.is_interrupted() {
            break;
        }
        let mut session = Session::new();
        let mut item = item.clone();
        let name = item.method.name();
        // More variables than servers, so that all of them work; few enough to meet.
        item.point.vars = 2 * item.point.servers.max(1) as u64;
        if let Err(sentence) = session.add(item, &rig.patience(Some(until))) {
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

/// The usual methods of those that are `fit`, each at its loads: up to the first that it
/// does not bear.
fn climb(
    rig: &mut Rig,
    host: &Host,
    quick: bool,
    fit: &BTreeSet<&str>,
    until: Instant,
    clock: &Clock,
) -> Result<Vec<Item>, String> {
    clock.say("climbing");
    let (point, notes, ladder) = sweep::latency(host, quick)?;
    let usual = |m: &&OnSchedule| m.usual && fit.contains(m.method.name());
    let methods: Vec<OnSchedule> = ON_SCHEDULE.iter().filter(usual).copied().collect();
    // A third of the time at most; the rest is for measuring.
    let now = Instant::now();
    let until = now + until.saturating_duration_since(now) / 3;
    Ok(load::items(&methods, &point, &notes, |method| {
        let loads = load::climb(rig, method, &point, ladder, Some(until));
        clock.tick();
        loads
    }))
}

fn measure(
    rig: &mut Rig,
    waves: Vec<Vec<Item>>,
    measured: Instant,
    clock: &Clock,
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
        let mut session = Session::new();
        clock.say("setting up");
        set_up(&mut session, wave, rig, until, clock, left_out);
        if session.is_empty() {
            continue;
        }
        clock.say("warming up");
        session.warm_up(rig, Duration::from_millis(5), || clock.tick());
        clock.say("measuring");
        let timing = timing(session.len(), until);
        while session.round(rig, timing, Some(until), || clock.tick()) {}
        clock.say("checking");
        runs.extend(session.finish(rig, timing));
    }
    runs
}

/// Rounds that should fit, so that most points see each mood of the machine.
const ROUNDS: u32 = 12;

/// Samples as long as [`ROUNDS`] of them allow, 5 to 30 ms.
fn timing(contenders: usize, until: Instant) -> Timing {
    let left = until.saturating_duration_since(Instant::now());
    let each = left / ROUNDS / contenders.max(1) as u32;
    // An eleventh warms up, and the probe takes its own.
    let sample = each
        .saturating_sub(Duration::from_millis(3))
        .mul_f64(10.0 / 11.0);
    Timing::of(sample.clamp(Duration::from_millis(5), Duration::from_millis(30)))
}

/// Sets up what can be set up in a third of the time that is left, going by how long the
/// same method took for fewer variables.
fn set_up(
    session: &mut Session,
    mut wave: Vec<Item>,
    rig: &Rig,
    until: Instant,
    clock: &Clock,
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
        let what = format!(
            "{name} with {vars} variables and {} threads",
            item.point.threads
        );
        if start + Duration::from_secs_f64(expected) > latest {
            left_out.push(format!("{what}: setting it up would take too long"));
            continue;
        }
        // One that is slower than it promised must not take the time of all others.
        let patience = rig.patience(Some(start + latest.saturating_duration_since(start) / 2));
        if let Err(sentence) = session.add(item, &patience) {
            left_out.push(format!("{what}: {sentence}"));
        }
        // Small set-ups are all overhead and would frighten us.
        if vars >= 1000.0 {
            seconds_per_var.insert(name, start.elapsed().as_secs_f64() / vars);
        }
        clock.tick();
    }
}
