//! `corelay reach structures`: measures the locks' targets at all points of a sweep, their latency
//! under load, and the targets of structures.

use super::{Args, print_throughput};
use crate::reach::structures::{ALONE, Row};
use crate::reach::{judge, locks, p99s, structures};
use corelay_lab_measure::host::Host;
use corelay_lab_measure::measure::plan::Item;
use corelay_lab_measure::measure::rig::Rig;
use corelay_lab_measure::measure::session::{Session, Timing};
use corelay_lab_measure::measure::stats;
use corelay_lab_measure::method::{Method, named};
use corelay_lab_measure::schema::{Mode, Run};
use corelay_lab_measure::workload::fetch_add::FetchAdd;
use corelay_lab_measure::workload::operation::{Workload, WorkloadInfo};
use corelay_lab_measure::workload::point::Point;
use corelay_lab_measure::workload::structure::seq::{ChainedMap, SkipList, SortedList, VecDeque};
use corelay_lab_measure::workload::structure::{SharedStructure, Structure};
use corelay_lab_report::exit::Exit;
use corelay_lab_report::output;
use corelay_lab_report::plot::grouped;
use corelay_lab_report::words;
use corelay_topology::Order;
use std::time::{Duration, Instant};

/// The number of parts that each take as long as the limit: throughput and latency of the locks with
/// each section, and the structures.
pub(super) fn parts() -> u64 {
    2 * (1 + locks::sections().count() as u64) + STRUCTURES
}

const STRUCTURES: u64 = 5;

pub(super) fn run(args: &Args, host: &Host) -> Result<Exit, String> {
    let order = Order::default();
    let mut rig = host.rig(&order, locks::most_threads())?;
    if let Some(why) = rig.no_probe() {
        output::say(&format!("no target can be measured here: {why}\n"))?;
        return Ok(Exit::Fine);
    }
    let mut found = sweep(args, host, &mut rig)?;
    if !rig.is_interrupted() {
        found = found.and(latency(args, host, &mut rig)?);
    }
    let structures = [
        structure::<VecDeque<u64>>,
        structure::<Vec<u64>>,
        structure::<SortedList<u64>>,
        structure::<ChainedMap<u64, u64>>,
        structure::<SkipList<u64, u64>>,
    ];
    let rows = [
        &structures::QUEUE,
        &structures::STACK,
        &structures::LIST,
        &structures::HASH,
        &structures::SKIP_LIST,
    ];
    for (structure, row) in structures.into_iter().zip(rows) {
        if !rig.is_interrupted() {
            found = found.and(structure(args, host, &mut rig, row)?);
        }
    }
    rig.save();
    Ok(match (found, rig.is_interrupted()) {
        (_, true) => Exit::Interrupted,
        (Found::Miss | Found::Wrong, false) => Exit::Wrong,
        (Found::Fine, false) => Exit::Fine,
    })
}

/// What a part of the run has found, the worst last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Found {
    Fine,
    /// A target is missed.
    Miss,
    /// A method has a wrong result.
    Wrong,
}

impl Found {
    fn and(self, other: Self) -> Self {
        self.max(other)
    }

    fn of(is_missed: bool) -> Self {
        if is_missed { Self::Miss } else { Self::Fine }
    }
}

/// Prints the first run that has a wrong result, if there is one.
fn print_wrong<'a>(mut runs: impl Iterator<Item = &'a Run>) -> Result<Option<Found>, String> {
    let Some(wrong) = runs.find(|run| !run.correct) else {
        return Ok(None);
    };
    output::say(&format!("{}: {}\n", wrong.method, wrong.notes.join("; ")))?;
    Ok(Some(Found::Wrong))
}

/// Measures the locks at all points, and prints their targets.
fn sweep(args: &Args, host: &Host, rig: &mut Rig) -> Result<Found, String> {
    let mut measured = at_points(args, host, rig, FetchAdd, Duration::ZERO)?;
    for (section, workload) in locks::sections() {
        measured.extend(at_points(args, host, rig, workload, section)?);
    }
    if let Some(wrong) = print_wrong(measured.iter().flat_map(|(_, runs)| runs))? {
        return Ok(wrong);
    }
    let blocks = args.blocks as usize;
    let mut missed = false;
    for (point, runs) in &measured {
        args.at(&point.to_string())?;
        missed |= args.judged(&locks::judge_point(*point, runs, blocks))?;
        print_throughput(runs)?;
    }
    for (point, judgements) in locks::judge_crowds(&measured, blocks) {
        args.at(&point.to_string())?;
        missed |= args.judged(&judgements)?;
    }
    Ok(Found::of(missed))
}

/// Measures the locks at all points of a section.
fn at_points<W: Workload>(
    args: &Args,
    host: &Host,
    rig: &mut Rig,
    workload: W,
    section: Duration,
) -> Result<Vec<(locks::Point, Vec<Run>)>, String> {
    let methods = locks::methods()?;
    let points = locks::points(section);
    let mut session = Session::of(workload);
    for at in &points {
        for &method in &methods {
            add(&mut session, rig, method, placed(host, at.point())?)?;
        }
    }
    let mut runs = sample(args, rig, args.slice, session).into_iter();
    let at_point = |at| (at, runs.by_ref().take(methods.len()).collect());
    Ok(points.into_iter().map(at_point).collect())
}

/// A sample of latency lasts so many times as long as one of throughput, to have more operations
/// beyond its 99th percentile.
const LATENCY_SLICES: u64 = 2;

/// Measures the locks' latency at several loads. Prints it in each mode at half of the load that every
/// lock bears, with its target.
fn latency(args: &Args, host: &Host, rig: &mut Rig) -> Result<Found, String> {
    let mut found = latency_of(args, host, rig, FetchAdd, Duration::ZERO)?;
    for (section, workload) in locks::sections() {
        found = found.and(latency_of(args, host, rig, workload, section)?);
    }
    Ok(found)
}

/// Measures and judges the locks' latency with one section.
fn latency_of<W: Workload>(
    args: &Args,
    host: &Host,
    rig: &mut Rig,
    workload: W,
    section: Duration,
) -> Result<Found, String> {
    let methods = locks::on_schedule()?;
    let at = locks::latency_at(section);
    let point = placed(host, at.point())?;
    let loads = locks::loads(workload, rig, &methods, &point);
    let mut session = Session::of(workload);
    for &load in &loads {
        for on in &methods {
            let load = Some(load);
            let point = Point {
                load,
                ..point.clone()
            };
            add(&mut session, rig, on.method, point)?;
        }
    }
    let runs = sample(args, rig, LATENCY_SLICES * args.slice, session);
    if let Some(wrong) = print_wrong(runs.iter())? {
        return Ok(wrong);
    }
    let mut runs = runs.into_iter();
    let at_load = |load| (load, runs.by_ref().take(methods.len()).collect());
    let by_load: Vec<locks::AtLoad> = loads.into_iter().map(at_load).collect();
    let mut missed = false;
    for mode in [Mode::Near, Mode::Far] {
        let mode_name = words::mode(mode);
        let Some((load, runs)) = locks::at_half_of_bearable(&by_load, mode) else {
            output::say(&format!(
                "{at}, {mode_name}: not judged, as no load above the lowest was borne by every lock\n"
            ))?;
            continue;
        };
        args.at(&format!(
            "{at}, {mode_name}: {} operations per second",
            grouped(*load)
        ))?;
        let blocks = args.blocks as usize;
        missed |= args.judged(&locks::judge_latency(runs, mode, blocks))?;
        print_p99(runs, mode)?;
    }
    Ok(Found::of(missed))
}

/// Prints median and quartiles of the samples' 99th percentiles of each run, in one mode.
fn print_p99(runs: &[Run], mode: Mode) -> Result<(), String> {
    let width = runs.iter().map(|run| run.method.len()).max().unwrap_or(0);
    for run in runs {
        let p99s = p99s(run, mode);
        let [low, median, high] =
            [0.25, 0.5, 0.75].map(|q| stats::quantile(&p99s, q).unwrap_or(0.0));
        output::say(&format!(
            "  {:width$} p99 {median:.0} [{low:.0}, {high:.0}] ns, n={}\n",
            run.method,
            p99s.len()
        ))?;
    }
    Ok(())
}

/// Measures a structure by the methods of its row, and prints its targets.
fn structure<S: Structure>(
    args: &Args,
    host: &Host,
    rig: &mut Rig,
    row: &Row,
) -> Result<Found, String> {
    let usual = SharedStructure::<S>::usual(S::NAME);
    let workload = usual.ok_or_else(|| format!("`{}` has no usual size", S::NAME))?;
    let known = SharedStructure::<S>::methods();
    let mut session = Session::of(workload);
    let lone = (ALONE.0, structures::point(1));
    let on_two = row.methods.iter().map(|&name| (name, structures::point(2)));
    for (name, point) in [lone].into_iter().chain(on_two) {
        let missing = || Err(format!("`{}` has no method `{name}`", S::NAME));
        let method = named(&known, name).unwrap_or_else(missing)?;
        add(&mut session, rig, method, placed(host, point)?)?;
    }
    let mut runs = sample(args, rig, args.slice, session);
    runs[0].method = ALONE.1.to_owned();
    if let Some(wrong) = print_wrong(runs.iter())? {
        return Ok(wrong);
    }
    args.ledger.at(S::NAME);
    let missed = args.judged(&judge(row.targets, &runs, args.blocks as usize))?;
    print_throughput(&runs)?;
    Ok(Found::of(missed))
}

fn add<W: Workload>(
    session: &mut Session<W>,
    rig: &Rig,
    method: Method<W>,
    point: Point,
) -> Result<(), String> {
    let item = Item {
        method,
        point,
        notes: vec![],
    };
    session.add(item, &rig.setup_limit(None))
}

/// Samples all contenders in turn, `slice` milliseconds each, until both modes have enough blocks or
/// time is up.
fn sample<W: WorkloadInfo>(
    args: &Args,
    rig: &mut Rig,
    slice: u64,
    mut session: Session<W>,
) -> Vec<Run> {
    let timing = Timing::of(Duration::from_millis(slice));
    let (start, limit) = (Instant::now(), Duration::from_secs(args.limit));
    let bar = output::progress(args.limit, limit);
    bar.set_message("measuring");
    let is_complete = |session: &Session<W>, rig: &Rig| {
        let enough = |mode| session.blocks(rig, mode) >= args.blocks as usize;
        enough(Mode::Near) && enough(Mode::Far)
    };
    while start.elapsed() < limit && !rig.is_interrupted() && !is_complete(&session, rig) {
        session.round(rig, timing, Some(start + limit), || {});
        bar.set_position(start.elapsed().as_secs());
    }
    bar.finish_and_clear();
    session.finish(rig, timing)
}

fn placed(host: &Host, point: Point) -> Result<Point, String> {
    let placement = host.place(&Order::default(), point.threads)?;
    Ok(Point {
        placement: placement.cpus().into(),
        ..point
    })
}
