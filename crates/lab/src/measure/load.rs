//! Which loads are offered, and what the results say of them.
//!
//! Beside the methods their generators are measured, as contenders like any other: same
//! rounds, same clients, a load that no generator bears, and an operation that does
//! nothing. In the end they are taken out again and leave their figure with the others.

use crate::measure::limit;
use crate::measure::plan::Item;
use crate::measure::rig::Rig;
use crate::measure::session::{Session, Timing};
use crate::method::OnSchedule;
use crate::schema::{Arrivals, Mode, Run};
use crate::workload::latency;
use crate::workload::operation::Workload;
use crate::workload::point::Point;
use std::time::{Duration, Instant};

/// Loads of a sweep, in operations per second: 1, 2 and 5 of each decade.
pub const LADDER: &[u64] = &[
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
];

/// Length of the sample that decides whether a method climbs on.
const STEP: Duration = Duration::from_millis(10);

/// Share of the due operations that has to be issued for that. Less than for a load that
/// is borne, because a scheduler's hiccup weighs more in so short a sample: rather one
/// load too many than one that is missing.
const ENOUGH: f64 = 0.75;

/// The loads of `ladder` that the method bears, and the first that it clearly does not.
/// Each is tried for a moment, the failing one again. Ends early when interrupted or at
/// `until`.
pub fn climb<W: Workload>(
    workload: W,
    rig: &mut Rig,
    entry: &OnSchedule<W>,
    point: &Point,
    ladder: &[u64],
    until: Option<Instant>,
) -> Vec<u64> {
    let over =
        |rig: &Rig| rig.is_interrupted() || until.is_some_and(|until| Instant::now() > until);
    let mut climbed = Vec::new();
    for &load in ladder {
        if over(rig) {
            break;
        }
        climbed.push(load);
        if !bears(workload, rig, entry, point, load) && !bears(workload, rig, entry, point, load) {
            break;
        }
    }
    climbed
}

/// One short sample. What cannot be set up, or is wrong, bears nothing: measuring says why.
fn bears<W: Workload>(
    workload: W,
    rig: &mut Rig,
    entry: &OnSchedule<W>,
    point: &Point,
    load: u64,
) -> bool {
    let timing = Timing::of(STEP);
    let mut session = Session::of(workload);
    let item = item(entry, point, &[], load);
    if session.add(item, &rig.patience(None)).is_err() {
        return false;
    }
    session.warm_up(rig, STEP / 4, || {});
    session.round(rig, timing, None, || {});
    let runs = session.finish(rig, timing);
    let bears = |arrivals: &Arrivals| {
        let issued = arrivals.due - arrivals.unserved;
        issued as f64 >= ENOUGH * arrivals.due as f64
    };
    // Where others had the CPUs, nothing follows from what was not issued.
    let crowded = |run: &Run| run.load.as_ref().is_some_and(limit::crowded);
    if runs.iter().any(|run| run.correct && crowded(run)) {
        return true;
    }
    let samples = || runs.iter().flat_map(|run| &run.samples);
    runs.iter().all(|run| run.correct) && samples().filter_map(|s| s.arrivals).all(|a| bears(&a))
}

fn item<W: Copy>(entry: &OnSchedule<W>, point: &Point, notes: &[String], load: u64) -> Item<W> {
    let mut point = point.clone();
    point.load = Some(load);
    Item {
        method: entry.method,
        point,
        notes: notes.to_vec(),
    }
}

/// The methods at a point, each at its loads, and the generators that they need.
pub fn items<W: Copy>(
    methods: &[OnSchedule<W>],
    point: &Point,
    notes: &[String],
    mut loads: impl FnMut(&OnSchedule<W>) -> Vec<u64>,
) -> Vec<Item<W>> {
    let mut items: Vec<Item<W>> = Vec::new();
    for entry in methods {
        let generator = Item {
            method: entry.generator,
            point: entry.generator_point(point),
            notes: vec![],
        };
        let key = |item: &Item<W>| (item.method.name(), item.point.servers);
        if items.iter().all(|known| key(known) != key(&generator)) {
            items.push(generator);
        }
        items.extend(
            loads(entry)
                .into_iter()
                .map(|load| item(entry, point, notes, load)),
        );
    }
    items
}

/// Takes the generators of `methods` out of `runs` and says, where a load was not borne,
/// what was in the way.
pub fn conclude<W>(methods: &[OnSchedule<W>], runs: Vec<Run>) -> Vec<Run> {
    let stamp_ns = latency::stamp_ns();
    let is_generator = |run: &Run| run.method.starts_with("generator");
    let (generators, mut runs): (Vec<Run>, Vec<Run>) = runs.into_iter().partition(is_generator);
    for run in &mut runs {
        let Some(entry) = methods.iter().find(|m| m.method.name() == run.method) else {
            continue;
        };
        let clients = |run: &Run| run.samples.first().map_or(0, |s| s.per_thread.len());
        let own = generators.iter().find(|generator| {
            generator.method == entry.generator.name()
                && generator.params.threads == run.params.threads
                && clients(generator) == clients(run)
        });
        limit::tell_apart(run, own.map_or(0.0, |own| own.median_mops * 1e6), stamp_ns);
        if run.correct
            && run.latency_ns.is_none()
            && run.samples.iter().any(|s| s.mode != Mode::Discarded)
        {
            run.notes
                .push("no operation arrived: the samples are too short for this load".to_owned());
        }
    }
    runs
}
