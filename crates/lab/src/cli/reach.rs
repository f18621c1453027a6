//! `corelay reach`: the project's own targets.

use crate::cli::host::Host;
use crate::cli::list::number;
use crate::cli::{Exit, output};
use crate::measure::plan::Item;
use crate::measure::session::{Session, Timing};
use crate::reach;
use crate::schema::Mode;
use crate::workload::point::Point;
use crate::workload::random::Choice;
use corelay_topology::Order;
use std::time::{Duration, Instant};

/// Measure the project's targets: value, target, mode, pass or miss
///
/// Contenders are interleaved in blocks, each sample tagged near or far; a target is met
/// where the worse end of its 95 % interval meets it. A mode that was not seen in enough
/// blocks is printed `not seen`. Exit code 1 where a target is missed.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The area
    #[arg(value_enum)]
    area: Area,

    /// Blocks of each mode that are asked for
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 30,
          value_parser = number(5..=10_000))]
    blocks: u64,

    /// Length of a sample in milliseconds
    #[arg(long, allow_negative_numbers = true, value_name = "MS", default_value_t = 20,
          value_parser = number(1..=10_000))]
    slice: u64,

    /// Longest time in seconds to wait for both modes to occur
    #[arg(long, allow_negative_numbers = true, value_name = "S", default_value_t = 180,
          value_parser = number(1..=86_400))]
    limit: u64,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Area {
    Delegate,
}

pub(crate) fn run(args: Args) -> Result<Exit, String> {
    let Area::Delegate = args.area;
    let host = Host::look();
    let order = Order::default();
    let mut rig = host.rig(&order, 2)?;
    if let Some(why) = rig.no_probe() {
        output::say(&format!("no target can be measured here: {why}\n"))?;
        return Ok(Exit::Fine);
    }
    let placement = host.place(&order, 2)?;
    let mut session = Session::new();
    for method in reach::METHODS {
        let point = Point {
            threads: 2,
            servers: 1,
            vars: 1,
            window: 256,
            load: None,
            choice: Choice::Uniform,
            seed: 1,
            placement: placement.cpus().into(),
        };
        session.add(
            Item {
                method,
                point,
                notes: vec![],
            },
            &rig.patience(None),
        )?;
    }
    let timing = Timing::of(Duration::from_millis(args.slice));
    let (start, limit) = (Instant::now(), Duration::from_secs(args.limit));
    let bar = output::progress(args.limit, limit);
    bar.set_message("measuring");
    session.warm_up(&rig, Duration::from_millis(50), || {});
    let enough = |session: &Session, rig: &_| {
        [Mode::Near, Mode::Far]
            .iter()
            .all(|&m| session.blocks(rig, m) >= args.blocks as usize)
    };
    while start.elapsed() < limit && !rig.is_interrupted() && !enough(&session, &rig) {
        session.round(&mut rig, timing, Some(start + limit), || {});
        bar.set_position(start.elapsed().as_secs());
    }
    bar.finish_and_clear();
    let runs = session.finish(&rig, timing);
    rig.save();
    if let Some(wrong) = runs.iter().find(|run| !run.correct) {
        output::say(&format!("{}: {}\n", wrong.method, wrong.notes.join("; ")))?;
        return Ok(Exit::Wrong);
    }
    let outcomes = reach::judge(&reach::targets(), &runs, args.blocks as usize);
    let mut missed = false;
    for outcome in &outcomes {
        missed |= outcome.is_met() == Some(false);
        output::say(&format!("{outcome}\n"))?;
    }
    if let Some(share) = reach::idle(Duration::from_secs(2)) {
        let met = share <= 0.001;
        missed |= !met;
        let verdict = if met { "pass" } else { "MISS" };
        let what = "idle trustee: share of a CPU";
        output::say(&format!(
            "{what:34} {:5} <= 0.001  {share:>24.5}  over 2 s      {verdict}\n",
            ""
        ))?;
    }
    for run in &runs {
        let figure = |mode| match run.by_mode.get(&mode) {
            Some(s) => format!(
                "{:.2} [{:.2}, {:.2}] n={}",
                s.median_mops, s.q1_mops, s.q3_mops, s.n
            ),
            None => "not seen".to_owned(),
        };
        let (near, far) = (figure(Mode::Near), figure(Mode::Far));
        output::say(&format!(
            "  {:18} near {near:34} far {far} Mops\n",
            run.method
        ))?;
    }
    Ok(match (missed, rig.is_interrupted()) {
        (_, true) => Exit::Interrupted,
        (true, false) => Exit::Wrong,
        (false, false) => Exit::Fine,
    })
}
