//! `corelay reach structures`: measures the locks' targets at all points of a sweep.

use super::{Args, print_judgements, print_throughput};
use crate::reach::structures::{self, Point};
use corelay_lab_measure::host::Host;
use corelay_lab_measure::measure::plan::Item;
use corelay_lab_measure::measure::rig::Rig;
use corelay_lab_measure::measure::session::{Session, Timing};
use corelay_lab_measure::schema::{Mode, Run};
use corelay_lab_measure::workload::point;
use corelay_lab_measure::workload::slow::Slow;
use corelay_lab_report::exit::Exit;
use corelay_lab_report::output;
use corelay_topology::Order;
use std::time::{Duration, Instant};

pub(super) fn run(args: &Args, host: &Host) -> Result<Exit, String> {
    let order = Order::default();
    let mut rig = host.rig(&order, structures::most_threads())?;
    if let Some(why) = rig.no_probe() {
        output::say(&format!("no target can be measured here: {why}\n"))?;
        return Ok(Exit::Fine);
    }
    let measured = measure(args, host, &mut rig)?;
    rig.save();
    let mut runs = measured.iter().flat_map(|(_, runs)| runs);
    if let Some(wrong) = runs.find(|run| !run.correct) {
        output::say(&format!("{}: {}\n", wrong.method, wrong.notes.join("; ")))?;
        return Ok(Exit::Wrong);
    }
    let blocks = args.blocks as usize;
    let mut missed = false;
    for (point, runs) in &measured {
        output::say(&format!("{point}\n"))?;
        missed |= print_judgements(&structures::judge_point(*point, runs, blocks))?;
        print_throughput(runs)?;
    }
    for (point, judgements) in structures::judge_crowds(&measured, blocks) {
        output::say(&format!("{point}\n"))?;
        missed |= print_judgements(&judgements)?;
    }
    Ok(match (missed, rig.is_interrupted()) {
        (_, true) => Exit::Interrupted,
        (true, false) => Exit::Wrong,
        (false, false) => Exit::Fine,
    })
}

/// Samples all methods at all points in turn, until both modes have enough blocks or time is up.
/// Returns the runs of each point.
fn measure(args: &Args, host: &Host, rig: &mut Rig) -> Result<Vec<(Point, Vec<Run>)>, String> {
    let methods = structures::methods()?;
    let points = structures::points();
    let mut sessions = Vec::new();
    for (workload, points) in &points {
        let mut session = Session::<Slow>::of(*workload);
        for at in points {
            for &method in &methods {
                let item = Item {
                    method,
                    point: placed(host, *at)?,
                    notes: vec![],
                };
                session.add(item, &rig.setup_limit(None))?;
            }
        }
        sessions.push(session);
    }
    let timing = Timing::of(Duration::from_millis(args.slice));
    let (start, limit) = (Instant::now(), Duration::from_secs(args.limit));
    let bar = output::progress(args.limit, limit);
    bar.set_message("measuring");
    let enough = |sessions: &[Session<Slow>], rig: &Rig, mode| {
        let seen = |session: &Session<Slow>| session.blocks(rig, mode) >= args.blocks as usize;
        sessions.iter().all(seen)
    };
    let is_complete = |sessions: &[Session<Slow>], rig: &Rig| {
        [Mode::Near, Mode::Far]
            .into_iter()
            .all(|mode| enough(sessions, rig, mode))
    };
    while start.elapsed() < limit && !rig.is_interrupted() && !is_complete(&sessions, rig) {
        for session in &mut sessions {
            session.round(rig, timing, Some(start + limit), || {});
            bar.set_position(start.elapsed().as_secs());
        }
    }
    bar.finish_and_clear();
    let mut measured = Vec::new();
    for (session, (_, points)) in sessions.into_iter().zip(points) {
        let mut runs = session.finish(rig, timing).into_iter();
        for at in points {
            measured.push((at, runs.by_ref().take(methods.len()).collect()));
        }
    }
    Ok(measured)
}

fn placed(host: &Host, at: Point) -> Result<point::Point, String> {
    let placement = host.place(&Order::default(), at.threads)?;
    Ok(point::Point {
        servers: 0,
        vars: at.vars,
        placement: placement.cpus().into(),
        ..point::Point::small(at.threads)
    })
}
