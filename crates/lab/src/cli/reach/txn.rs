//! `corelay reach txn`: measures the targets of the structures that a clock orders.

use super::Args;
use crate::reach::Judgement;
use crate::reach::txn::{self, Point};
use corelay_lab_bench::ordered::contest::{Contest, Entrant};
use corelay_lab_measure::host::Host;
use corelay_lab_measure::measure::rig::Rig;
use corelay_lab_measure::measure::session::Timing;
use corelay_lab_measure::measure::stats::Interval;
use corelay_lab_measure::schema::{ConflictCounts, Mode, Run};
use corelay_lab_measure::workload::point::Point as Threads;
use corelay_lab_measure::workload::random::Choice;
use corelay_lab_report::exit::Exit;
use corelay_lab_report::output;
use corelay_topology::Order;
use std::time::{Duration, Instant};

pub(super) fn run(args: &Args, host: &Host) -> Result<Exit, String> {
    let order = Order::default();
    let points = txn::points()?;
    let most = points.iter().map(|point| point.threads).max().unwrap_or(2);
    let mut rig = host.rig(&order, most)?;
    if let Some(why) = rig.no_probe() {
        output::say(&format!("no target can be measured here: {why}\n"))?;
        return Ok(Exit::Fine);
    }
    let slice = Duration::from_millis(args.slice);
    let runs = measure(args, host, &mut rig, &points, slice)?;
    rig.save();
    if let Some(wrong) = runs.iter().flatten().find(|run| !run.correct) {
        output::say(&format!("{}: {}\n", wrong.method, wrong.notes.join("; ")))?;
        return Ok(Exit::Wrong);
    }
    let (mut missed, blocks) = (false, args.blocks as usize);
    for (point, runs) in points.iter().zip(&runs) {
        args.at(&point.name())?;
        let (targets, untargeted) = point.judge(runs, blocks);
        missed |= args.judged(&targets)?;
        untargeted
            .iter()
            .try_for_each(|ratio| print_untargeted(ratio.what, ratio))?;
        runs.iter().try_for_each(print_run)?;
    }
    output::say("throughput on 2 threads / on 1, without a target; 2 is perfect\n")?;
    let slopes = txn::slopes(&points, &runs, blocks);
    slopes
        .iter()
        .try_for_each(|(name, ratio)| print_untargeted(name, ratio))?;
    Ok(match (missed, rig.is_interrupted()) {
        (_, true) => Exit::Interrupted,
        (true, false) => Exit::Wrong,
        (false, false) => Exit::Fine,
    })
}

/// Samples all points in turn, each for `slice`, until both modes have enough blocks or time is up.
/// Returns the runs of each point.
pub(super) fn measure(
    args: &Args,
    host: &Host,
    rig: &mut Rig,
    points: &[Point],
    slice: Duration,
) -> Result<Vec<Vec<Run>>, String> {
    let mut contest = Contest::default();
    for point in points {
        let placement = host.place(&Order::default(), point.threads)?;
        for &method in &point.methods {
            let entrant = Entrant {
                spec: point.spec,
                method,
                point: Threads {
                    threads: point.threads,
                    servers: 1,
                    vars: 1,
                    window: point.window,
                    load: None,
                    lines: Default::default(),
                    fibres: 0,
                    choice: Choice::Uniform,
                    seed: 1,
                    placement: placement.cpus().into(),
                },
                notes: vec![],
            };
            contest.add(entrant, &rig.setup_limit(None))?;
        }
    }
    let timing = Timing::of(slice);
    let (start, limit) = (Instant::now(), Duration::from_secs(args.limit));
    let bar = output::progress(args.limit, limit);
    bar.set_message("measuring");
    contest.warm_up(rig, Duration::from_millis(50), || {});
    let enough = |contest: &Contest, rig: &Rig| {
        let seen = |&mode: &Mode| contest.blocks(rig, mode) >= args.blocks as usize;
        [Mode::Near, Mode::Far].iter().all(seen)
    };
    while start.elapsed() < limit && !rig.is_interrupted() && !enough(&contest, rig) {
        contest.round(rig, timing, Some(start + limit), || {
            bar.set_position(start.elapsed().as_secs());
        });
    }
    bar.finish_and_clear();
    let mut runs = contest.finish(rig, timing).into_iter();
    let of_point = |point: &Point| runs.by_ref().take(point.methods.len()).collect();
    Ok(points.iter().map(of_point).collect())
}

/// Prints a ratio that has no target.
pub(super) fn print_untargeted(what: &str, judgement: &Judgement) -> Result<(), String> {
    let mode = match judgement.mode {
        Mode::Near => "near",
        _ => "far",
    };
    let ratio = match judgement.ratio {
        Some(Interval { low, ratio, high }) => format!("{ratio:.3} [{low:.3}, {high:.3}]"),
        None => "not seen".to_owned(),
    };
    output::say(&format!("{what:36} {mode:5} {ratio:>34}  no target\n"))
}

/// Prints a run's throughput by mode, and its aborts and uncertain comparisons per 1,000 operations.
pub(super) fn print_run(run: &Run) -> Result<(), String> {
    let figure = |mode| match run.by_mode.get(&mode) {
        Some(s) => format!(
            "{:.2} [{:.2}, {:.2}] n={}",
            s.median_mops, s.q1_mops, s.q3_mops, s.n
        ),
        None => "not seen".to_owned(),
    };
    let (near, far) = (figure(Mode::Near), figure(Mode::Far));
    let counts: ConflictCounts = run.samples.iter().filter_map(|s| s.counts).sum();
    let operations: u64 = run.samples.iter().flat_map(|s| &s.per_thread).sum();
    let per_thousand = |n: u64| n as f64 * 1e3 / operations.max(1) as f64;
    output::say(&format!(
        "  {:16} near {near:32} far {far:32} Mops  aborts {:.3} uncertain {:.3} per 1,000\n",
        run.method,
        per_thousand(counts.aborts.all()),
        per_thousand(counts.uncertain),
    ))
}
