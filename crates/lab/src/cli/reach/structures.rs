//! `corelay reach structures`: measures the locks' targets at all points of a sweep, and those of
//! structures.

use super::{Args, print_judgements, print_throughput};
use crate::reach::structures::{ALONE, Row};
use crate::reach::{judge, locks, structures};
use corelay_lab_measure::host::Host;
use corelay_lab_measure::measure::plan::Item;
use corelay_lab_measure::measure::rig::Rig;
use corelay_lab_measure::measure::session::{Session, Timing};
use corelay_lab_measure::method::{Method, named};
use corelay_lab_measure::schema::{Mode, Run};
use corelay_lab_measure::workload::operation::{Workload, WorkloadInfo};
use corelay_lab_measure::workload::point::Point;
use corelay_lab_measure::workload::slow::Slow;
use corelay_lab_measure::workload::structure::seq::{ChainedMap, SkipList, SortedList, VecDeque};
use corelay_lab_measure::workload::structure::{SharedStructure, Structure};
use corelay_lab_report::exit::Exit;
use corelay_lab_report::output;
use corelay_topology::Order;
use std::time::{Duration, Instant};

pub(super) fn run(args: &Args, host: &Host) -> Result<Exit, String> {
    let order = Order::default();
    let mut rig = host.rig(&order, locks::most_threads())?;
    if let Some(why) = rig.no_probe() {
        output::say(&format!("no target can be measured here: {why}\n"))?;
        return Ok(Exit::Fine);
    }
    let mut found = sweep(args, host, &mut rig)?;
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
    let methods = locks::methods()?;
    let points = locks::points();
    let mut sessions = Vec::new();
    for (workload, points) in &points {
        let mut session = Session::<Slow>::of(*workload);
        for at in points {
            for &method in &methods {
                let point = placed(host, at.point())?;
                add(&mut session, rig, method, point)?;
            }
        }
        sessions.push(session);
    }
    let mut measured = Vec::new();
    for (runs, (_, points)) in sample(args, rig, sessions).into_iter().zip(points) {
        let mut runs = runs.into_iter();
        for at in points {
            let runs: Vec<_> = runs.by_ref().take(methods.len()).collect();
            measured.push((at, runs));
        }
    }
    if let Some(wrong) = print_wrong(measured.iter().flat_map(|(_, runs)| runs))? {
        return Ok(wrong);
    }
    let blocks = args.blocks as usize;
    let mut missed = false;
    for (point, runs) in &measured {
        output::say(&format!("{point}\n"))?;
        missed |= print_judgements(&locks::judge_point(*point, runs, blocks))?;
        print_throughput(runs)?;
    }
    for (point, judgements) in locks::judge_crowds(&measured, blocks) {
        output::say(&format!("{point}\n"))?;
        missed |= print_judgements(&judgements)?;
    }
    Ok(Found::of(missed))
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
    let mut runs = sample(args, rig, vec![session]).remove(0);
    runs[0].method = ALONE.1.to_owned();
    if let Some(wrong) = print_wrong(runs.iter())? {
        return Ok(wrong);
    }
    let missed = print_judgements(&judge(row.targets, &runs, args.blocks as usize))?;
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

/// Samples all contenders of all sessions in turn, until both modes have enough blocks or time is
/// up. Returns the runs of each session.
fn sample<W: WorkloadInfo>(
    args: &Args,
    rig: &mut Rig,
    mut sessions: Vec<Session<W>>,
) -> Vec<Vec<Run>> {
    let timing = Timing::of(Duration::from_millis(args.slice));
    let (start, limit) = (Instant::now(), Duration::from_secs(args.limit));
    let bar = output::progress(args.limit, limit);
    bar.set_message("measuring");
    let is_complete = |sessions: &[Session<W>], rig: &Rig| {
        let enough = |mode| move |s: &Session<W>| s.blocks(rig, mode) >= args.blocks as usize;
        let of = |mode| sessions.iter().all(enough(mode));
        of(Mode::Near) && of(Mode::Far)
    };
    while start.elapsed() < limit && !rig.is_interrupted() && !is_complete(&sessions, rig) {
        for session in &mut sessions {
            session.round(rig, timing, Some(start + limit), || {});
            bar.set_position(start.elapsed().as_secs());
        }
    }
    bar.finish_and_clear();
    let finish = |session: Session<W>| session.finish(rig, timing);
    sessions.into_iter().map(finish).collect()
}

fn placed(host: &Host, point: Point) -> Result<Point, String> {
    let placement = host.place(&Order::default(), point.threads)?;
    Ok(Point {
        placement: placement.cpus().into(),
        ..point
    })
}
