//! `corelay reach fibre`: measures the fibres' targets, at many points, and their costs when idle.

use super::Args;
use crate::reach::fibre::{self, Point};
use crate::reach::{self, Area};
use crate::reach::{Bound, Judgement};
use corelay_lab_bench::fibres::session::{Item, Session};
use corelay_lab_measure::host::Host;
use corelay_lab_measure::measure::rig::Rig;
use corelay_lab_measure::measure::stats::Interval;
use corelay_lab_measure::schema::{Mode, Run};
use corelay_lab_report::exit::Exit;
use corelay_lab_report::output;
use corelay_topology::Order;
use std::time::{Duration, Instant};

/// The number of waiting fibres over which their memory is measured.
const BLOCKED: usize = 100_000;

pub(super) fn run(args: &Args, host: &Host) -> Result<Exit, String> {
    let mut missed = print_costs(args)?;
    let order = Order::default();
    let mut rig = host.rig(&order, Area::calls_of_fibres().threads)?;
    missed |= print_calls(args, host, &mut rig)?;
    let points = fibre::points(host.machine.cpus, Duration::from_millis(args.slice));
    let runs = measure(args, host, &mut rig, &points)?;
    rig.save();
    let wrong = |run: &&Run| !run.correct && run.not_installed.is_none();
    if let Some(wrong) = runs.iter().flatten().find(wrong) {
        output::say(&format!("{}: {}\n", wrong.method, wrong.notes.join("; ")))?;
        return Ok(Exit::Wrong);
    }
    for (point, runs) in points.iter().zip(&runs) {
        args.at(&point.name())?;
        let (targets, untargeted) = point.judge(runs, args.blocks as usize);
        missed |= args.judged(&targets)?;
        untargeted.iter().try_for_each(print_untargeted)?;
        runs.iter().try_for_each(print_run)?;
    }
    Ok(match (missed, rig.is_interrupted()) {
        (_, true) => Exit::Interrupted,
        (true, false) => Exit::Wrong,
        (false, false) => Exit::Fine,
    })
}

/// Samples all points in turn, for up to twice as many rounds as `--blocks` asks for or until time
/// is up. Returns the runs of each point.
fn measure(
    args: &Args,
    host: &Host,
    rig: &mut Rig,
    points: &[Point],
) -> Result<Vec<Vec<Run>>, String> {
    let methods = fibre::methods()?;
    let mut items = Vec::new();
    for point in points {
        let placement = host.place(&Order::default(), point.spec.processors)?;
        items.extend(methods.iter().map(|&method| Item {
            method,
            spec: point.spec,
            size: point.size.to_owned(),
            placement: placement.cpus().to_vec(),
            notes: vec![],
        }));
    }
    let (start, limit) = (Instant::now(), Duration::from_secs(args.limit));
    let bar = output::progress(args.limit, limit);
    bar.set_message("measuring");
    let mut session = Session::new(items);
    let mut rounds = 0;
    // Twice as many rounds as blocks, because a round is near or far, or falls between the modes.
    while start.elapsed() < limit && !rig.is_interrupted() && rounds < 2 * args.blocks {
        session.round(rig, || bar.set_position(start.elapsed().as_secs()));
        rounds += 1;
    }
    bar.finish_and_clear();
    let mut runs = session.finish(rig).into_iter();
    let of_point = |_: &Point| runs.by_ref().take(methods.len()).collect();
    Ok(points.iter().map(of_point).collect())
}

/// Measures and prints calls of fibres to a trustee, within a quarter of the time limit. Returns
/// whether a target is missed.
fn print_calls(args: &Args, host: &Host, rig: &mut Rig) -> Result<bool, String> {
    let area = Area::calls_of_fibres();
    let placement = host.place(&Order::default(), area.threads)?;
    let limit = (args.limit / 4).max(1);
    let quarter = Args {
        limit,
        ..args.clone()
    };
    let runs = quarter.measure(rig, &area, placement.cpus())?;
    let judgements = reach::judge(&area.targets, &runs, args.blocks as usize);
    let missed = args.judged(&judgements)?;
    super::print_throughput(&runs)?;
    let is_wrong = |run: &&Run| !run.correct;
    if let Some(wrong) = runs.iter().find(is_wrong) {
        output::say(&format!("{}: {}\n", wrong.method, wrong.notes.join("; ")))?;
    }
    Ok(missed || runs.iter().any(|run| !run.correct))
}

/// Measures and prints the targets that are not ratios: memory, idle time, delays. Returns whether
/// one is missed.
fn print_costs(args: &Args) -> Result<bool, String> {
    let mut missed = false;
    let mut row = |what: &str, value: Option<f64>, most: f64, unit: &'static str| {
        let Some(value) = value else {
            return output::say(&format!("{what:44} cannot be measured here\n"));
        };
        let met = value <= most;
        missed |= !met;
        args.ledger.single(what, Bound::AtMost(most), value, unit);
        let verdict = if met { "pass" } else { "MISS" };
        output::say(&format!(
            "{what:44} <= {most:<7} {value:>12.4} {unit:8} {verdict}\n"
        ))
    };
    // Memory comes first, because memory that later measurements leave allocated would be counted.
    let bytes = fibre::bytes_of_blocked(BLOCKED).map_err(|why| why.to_string())?;
    row("a waiting fibre, mean of 100,000", bytes, 4_300.0, "bytes")?;
    let share = fibre::idle(Duration::from_secs(2));
    row("idle cluster: share of a CPU", share, 0.001, "")?;
    let longest = fibre::starved(200);
    row("first run, if the parent never yields", longest, 10.0, "ms")?;
    for (flavour, completes) in fibre::transfers()? {
        missed |= !completes;
        let what = format!("transfer, migrating, {}: completes", flavour.name());
        let value = f64::from(u8::from(completes));
        args.ledger.single(&what, Bound::AtLeast(1.0), value, "");
        let verdict = if completes { "pass" } else { "MISS" };
        let name = flavour.name();
        output::say(&format!(
            "transfer, migrating, {name}: completes  {verdict}\n"
        ))?;
    }
    Ok(missed)
}

/// Prints a ratio that has no target.
fn print_untargeted(judgement: &Judgement) -> Result<(), String> {
    let Some(Interval { low, ratio, high }) = judgement.ratio else {
        return Ok(());
    };
    let mode = match judgement.mode {
        Mode::Near => "near",
        _ => "far",
    };
    output::say(&format!(
        "{} {mode:5}          {:>24}  no target\n",
        judgement.what,
        format!("{ratio:.3} [{low:.3}, {high:.3}]"),
    ))
}

/// Prints a run's time per operation in each mode, in nanoseconds.
fn print_run(run: &Run) -> Result<(), String> {
    let figure = |mode| match run.by_mode.get(&mode) {
        Some(s) => {
            let (low, high) = (1e3 / s.q3_mops, 1e3 / s.q1_mops);
            format!("{:.1} [{low:.1}, {high:.1}] n={}", 1e3 / s.median_mops, s.n)
        }
        None => "not seen".to_owned(),
    };
    let (near, far) = (figure(Mode::Near), figure(Mode::Far));
    let missing = run.not_installed.as_deref();
    let missing = missing.map_or(String::new(), |why| format!("  not installed: {why}"));
    output::say(&format!(
        "  {:18} near {near:28} far {far:28} ns/op{missing}\n",
        run.method
    ))
}
