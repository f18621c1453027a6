//! `corelay reach store`: measures the targets of the transactional store.

use super::Args;
use super::txn::{measure, print_run, print_untargeted};
use crate::reach::store::{Aborts, aborts, kept_points, points};
use crate::reach::{Bound, Judgement};
use corelay_lab_bench::ordered::kept::check_folder;
use corelay_lab_measure::host::Host;
use corelay_lab_measure::measure::rig::Rig;
use corelay_lab_measure::schema::{Mode, Run};
use corelay_lab_report::exit::Exit;
use corelay_lab_report::output;
use corelay_topology::Order;
use std::time::Duration;

/// The shortest sample of what is kept on disk, where a commit takes about a millisecond.
const KEPT_SLICE: Duration = Duration::from_millis(200);

pub(super) fn run(args: &Args, host: &Host) -> Result<Exit, String> {
    let points = points()?;
    let mut rig = host.rig(&Order::default(), 2)?;
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
    let mut missed = false;
    for (point, runs) in points.iter().zip(&runs) {
        args.at(&point.name())?;
        let (judgements, _) = point.judge(runs, args.blocks as usize);
        // The figures of the peers are of the mode near.
        let (near, far): (Vec<Judgement>, Vec<Judgement>) = judgements
            .into_iter()
            .partition(|judgement| judgement.mode == Mode::Near);
        missed |= args.judged(&near)?;
        far.iter()
            .try_for_each(|ratio| print_untargeted(ratio.what, ratio))?;
        for aborts in aborts(point) {
            missed |= print_aborts(args, &aborts, runs)?;
        }
        runs.iter().try_for_each(print_run)?;
    }
    output::say(
        "Mops are million transactions per second. stm-transfer is a yardstick: where it is slower \
         than usual, so is all else.\n",
    )?;
    if !rig.is_interrupted() {
        match kept(args, host, &mut rig)? {
            Some(one) => missed |= one,
            None => return Ok(Exit::Wrong),
        }
    }
    Ok(match (missed, rig.is_interrupted()) {
        (_, true) => Exit::Interrupted,
        (true, false) => Exit::Wrong,
        (false, false) => Exit::Fine,
    })
}

/// Measures what is kept on disk. Returns whether a target is missed; `None` if a result is wrong.
fn kept(args: &Args, host: &Host, rig: &mut Rig) -> Result<Option<bool>, String> {
    let dir = std::env::temp_dir();
    if let Err(why) = check_folder(&dir) {
        output::say(&format!(
            "what is kept on disk is not measured in {}: {why}; TMPDIR names another folder\n",
            dir.display()
        ))?;
        return Ok(Some(false));
    }
    // The leak is one path.
    let points = kept_points(Box::leak(dir.into_boxed_path()))?;
    let slice = KEPT_SLICE.max(Duration::from_millis(args.slice));
    let runs = measure(args, host, rig, &points, slice)?;
    if let Some(wrong) = runs.iter().flatten().find(|run| !run.correct) {
        output::say(&format!("{}: {}\n", wrong.method, wrong.notes.join("; ")))?;
        return Ok(None);
    }
    let mut missed = false;
    for (point, runs) in points.iter().zip(&runs) {
        args.at(&point.name())?;
        let (targets, untargeted) = point.judge(runs, args.blocks as usize);
        missed |= args.judged(&targets)?;
        untargeted
            .iter()
            .try_for_each(|ratio| print_untargeted(ratio.what, ratio))?;
        runs.iter().try_for_each(print_kept)?;
    }
    Ok(Some(missed))
}

/// Prints a run's rate by mode, and the latencies of both.
fn print_kept(run: &Run) -> Result<(), String> {
    // Transactions, or kilobytes of a log.
    let (unit, per_mops) = match run.workload.as_str() {
        "recover" => ("MB/s", 1e3),
        _ => ("/s", 1e6),
    };
    let figure = |mode| match run.by_mode.get(&mode) {
        Some(s) => {
            let [middle, low, high] =
                [s.median_mops, s.q1_mops, s.q3_mops].map(|mops| mops * per_mops);
            format!("{middle:.0} [{low:.0}, {high:.0}] n={}", s.n)
        }
        None => "not seen".to_owned(),
    };
    let (near, far) = (figure(Mode::Near), figure(Mode::Far));
    let latency = run.latency_ns.unwrap_or_default();
    let [p50, p99] = [latency.p50, latency.p99].map(|ns| ns as f64 / 1e3);
    output::say(&format!(
        "  {:16} near {near:32} far {far:32} {unit:4}  p50 {p50:.0} p99 {p99:.0} µs\n",
        run.method
    ))
}

/// Prints the share of aborted attempts. Returns whether it is larger than the peer's.
fn print_aborts(args: &Args, aborts: &Aborts, runs: &[Run]) -> Result<bool, String> {
    let Some(share) = aborts.share(runs) else {
        return Ok(false);
    };
    // In both modes together.
    let is_met = share <= aborts.most;
    let bound = Bound::AtMost(aborts.most);
    args.ledger.single(aborts.what, bound, share, "");
    let verdict = if is_met { "pass" } else { "MISS" };
    output::say(&format!(
        "{:28} all   <= {:<5}  {share:>21.3}  {verdict}\n",
        aborts.what, aborts.most
    ))?;
    Ok(!is_met)
}
