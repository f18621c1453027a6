//! `corelay reach course`: measures the ladder's targets and the duration of the whole course.

use super::{Args, print_throughput};
use crate::reach::course::{MAX_SECONDS, TARGETS, points};
use crate::reach::{self, Bound};
use corelay_lab_course::list::climb::Climb;
use corelay_lab_measure::host::Host;
use corelay_lab_measure::measure::rig::Rig;
use corelay_lab_measure::schema::{Mode, Run};
use corelay_lab_report::exit::Exit;
use corelay_lab_report::output;
use corelay_topology::Order;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

pub(super) fn run(args: &Args, host: &Host) -> Result<Exit, String> {
    let order = Order::default();
    let mut rig = host.rig(&order, 2)?;
    if let Some(why) = rig.no_probe() {
        output::say(&format!("no target can be measured here: {why}\n"))?;
        return Ok(Exit::Fine);
    }
    let runs = measure(args, host, &mut rig)?;
    rig.save();
    if let Some(wrong) = runs.iter().find(|run| !run.correct) {
        output::say(&format!("{}: {}\n", wrong.method, wrong.notes.join("; ")))?;
        return Ok(Exit::Wrong);
    }
    let mut missed = args.judged(&reach::judge(TARGETS, &runs, args.blocks as usize))?;
    print_throughput(&runs)?;
    if !rig.is_interrupted() {
        missed |= print_duration(args)?;
    }
    Ok(match (missed, rig.is_interrupted()) {
        (_, true) => Exit::Interrupted,
        (true, false) => Exit::Wrong,
        (false, false) => Exit::Fine,
    })
}

/// Runs the points in turn, until both modes have enough blocks or time is up.
fn measure(args: &Args, host: &Host, rig: &mut Rig) -> Result<Vec<Run>, String> {
    let placement = host.place(&Order::default(), 2)?;
    let (names, points): (Vec<_>, Vec<_>) = points().into_iter().unzip();
    let mut climb = Climb::new(points, placement.cpus());
    let (start, limit) = (Instant::now(), Duration::from_secs(args.limit));
    let bar = output::progress(args.limit, limit);
    let enough = |climb: &Climb, rig: &Rig| {
        let seen = |&mode: &Mode| climb.blocks(rig, mode) >= args.blocks as usize;
        [Mode::Near, Mode::Far].iter().all(seen)
    };
    climb.warm_up(rig);
    while start.elapsed() < limit && !rig.is_interrupted() && !enough(&climb, rig) {
        climb.round(rig, |name| {
            bar.set_message(name.to_owned());
            bar.set_position(start.elapsed().as_secs());
        });
    }
    bar.finish_and_clear();
    let named = climb
        .finish(rig)
        .into_iter()
        .zip(names)
        .map(|(climbed, name)| Run {
            method: name.to_owned(),
            ..climbed.run
        });
    Ok(named.collect())
}

/// Runs the whole course and prints its duration. Returns whether the target is missed.
fn print_duration(args: &Args) -> Result<bool, String> {
    let refused = |error: std::io::Error| format!("the course cannot be run: {error}");
    let folder = tempfile::tempdir().map_err(refused)?;
    let program = std::env::current_exe().map_err(refused)?;
    let since = Instant::now();
    let status = Command::new(program)
        .args(["lab", "--yes", "--report"])
        .arg(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .map_err(refused)?;
    let seconds = since.elapsed().as_secs_f64();
    let bound = Bound::AtMost(MAX_SECONDS);
    args.ledger.single("the whole course", bound, seconds, "s");
    let met = status.success() && seconds <= MAX_SECONDS;
    let verdict = if met { "pass" } else { "MISS" };
    output::say(&format!(
        "the whole course, seconds: {seconds:.1} of {MAX_SECONDS}, {}  {verdict}\n",
        if status.success() {
            "all right"
        } else {
            "with errors"
        }
    ))?;
    Ok(!met)
}
