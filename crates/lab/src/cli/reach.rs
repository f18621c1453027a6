//! `corelay reach`: measures and judges the project's speed targets.

mod cached;
mod course;
mod fibre;
mod ledger;
mod store;
mod structures;
mod txn;
mod whole;

use crate::cli::list::number;
use crate::reach::{self, Bound, Judgement};
use corelay_lab_compare::COMMIT;
use corelay_lab_measure::host::Host;
use corelay_lab_measure::measure::plan::Item;
use corelay_lab_measure::measure::rig::Rig;
use corelay_lab_measure::measure::session::{Session, Timing};
use corelay_lab_measure::measure::tracer;
use corelay_lab_measure::schema::{Mode, Run};
use corelay_lab_report::exit::Exit;
use corelay_lab_report::output;
use corelay_topology::Order;
use ledger::Ledger;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Measure the project's speed targets, and print pass or miss for each
///
/// All contenders are sampled in turn, in blocks, and each sample is tagged near or far. A target
/// is met if the worse end of its 95 % interval meets it. A mode that occurred in too few blocks
/// is printed as `not seen`. The exit code is 1 if a target is missed.
///
/// Without an area all are measured. Then a table of all targets and a picture of each area are
/// written into a folder.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Area whose targets are measured; all if none is named
    #[arg(value_enum)]
    area: Option<Area>,

    /// Minutes that all areas take together, about
    #[arg(long, allow_negative_numbers = true, value_name = "M", conflicts_with = "area",
          default_value_t = whole::MINUTES, value_parser = number(5..=1_440))]
    minutes: u64,

    /// Folder for the table and the pictures of all areas
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with = "area",
        default_value = "corelay-reach"
    )]
    out: PathBuf,

    /// Blocks that each mode needs for a judgement
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 30,
          value_parser = number(5..=10_000))]
    blocks: u64,

    /// Length of a sample in milliseconds
    #[arg(long, allow_negative_numbers = true, value_name = "MS", default_value_t = 20,
          value_parser = number(1..=10_000))]
    slice: u64,

    /// Longest time in seconds to measure until both modes have enough blocks
    #[arg(long, allow_negative_numbers = true, value_name = "S", default_value_t = 180,
          value_parser = number(1..=86_400), requires = "area")]
    limit: u64,

    /// The targets that were judged so far
    #[arg(skip)]
    ledger: Ledger,
}

#[derive(Clone, Copy, Debug, PartialEq, clap::ValueEnum)]
enum Area {
    /// Dedicated trustees against locks, atomics and channels
    Delegate,
    /// Flat teams: the policy `adaptive` against the best fixed policy on six loads
    Flat,
    /// Dedicated trustees against ffwd, remote core locking and the thesis's request lines
    Literature,
    /// Fibres: five benchmarks against Tokio, and the costs of a waiting fibre and an idle cluster
    Fibre,
    /// Structures ordered by a clock: time stamps, read-log-update, transactional memory, logs merged at read
    Txn,
    /// The transactional store: absolute figures of YCSB and TPC-C, near mode only, and aborts, against a C++ engine's;
    /// commits on disk against embedded stores', in the folder of temporary files, and recovery
    Store,
    /// The scalability course: the ladder's last rungs against its first, the pool against the system's allocator
    Course,
    /// Locks: `adaptive` against the best one for 1 to 64 threads; structures: behind a trustee, and those of other crates
    Structures,
    /// The cache server, beside memcached: rates, latencies, memory, hits, idle connections. Only if it is named
    Cached,
}

impl Area {
    /// The areas that are measured if none is named, in this order.
    const ALL: [Self; 8] = [
        Self::Delegate,
        Self::Flat,
        Self::Literature,
        Self::Fibre,
        Self::Txn,
        Self::Store,
        Self::Course,
        // The last one gets the time that the others leave over. Its sweep of the locks needs most.
        Self::Structures,
    ];

    /// The name on the command line.
    fn name(self) -> &'static str {
        match self {
            Self::Delegate => "delegate",
            Self::Flat => "flat",
            Self::Literature => "literature",
            Self::Fibre => "fibre",
            Self::Txn => "txn",
            Self::Store => "store",
            Self::Course => "course",
            Self::Structures => "structures",
            Self::Cached => "cached",
        }
    }

    /// Seconds of the area in a run of all areas that takes [`whole::MINUTES`].
    fn seconds(self) -> u64 {
        match self {
            Self::Delegate | Self::Flat => 270,
            Self::Literature => 210,
            Self::Structures => 540,
            Self::Fibre | Self::Txn | Self::Store => 330,
            // The whole course comes besides, which takes about as long.
            Self::Course => 120,
            // Measured by itself only.
            Self::Cached => 0,
        }
    }

    /// The area's share of a run of so many minutes.
    fn share(self, minutes: u64) -> Duration {
        Duration::from_secs(self.seconds() * minutes / whole::MINUTES)
    }

    /// The `--limit` with which the area takes `time`, in seconds.
    fn limit(self, time: Duration) -> u64 {
        // Some areas measure several parts, each as long as the limit.
        let quarters = match self {
            Self::Fibre => 5,
            Self::Store => 8,
            Self::Structures => 4 * structures::parts(),
            _ => 4,
        };
        (time.as_secs() * 4 / quarters).max(1)
    }
}

pub(crate) fn run(args: Args) -> Result<Exit, String> {
    let host = Host::look(COMMIT);
    match args.area {
        Some(area) => args.area(area, &host),
        None => whole::run(&args, &host),
    }
}

/// Measures the methods of an area in turn, and judges its targets.
fn measured(args: &Args, host: &Host, which: Area, area: &reach::Area) -> Result<Exit, String> {
    let order = Order::default();
    let mut rig = host.rig(&order, area.threads)?;
    if let Some(why) = rig.no_probe() {
        output::say(&format!("no target can be measured here: {why}\n"))?;
        return Ok(Exit::Fine);
    }
    let placement = host.place(&order, area.threads)?;
    let runs = args.measure(&mut rig, area, placement.cpus())?;
    rig.save();
    if let Some(wrong) = runs.iter().find(|run| !run.correct) {
        output::say(&format!("{}: {}\n", wrong.method, wrong.notes.join("; ")))?;
        return Ok(Exit::Wrong);
    }
    let mut missed = args.judged(&reach::judge(&area.targets, &runs, args.blocks as usize))?;
    missed |= match which {
        Area::Delegate => print_idle(args)?,
        Area::Literature => print_tracer(args)?,
        _ => false,
    };
    print_throughput(&runs)?;
    Ok(match (missed, rig.is_interrupted()) {
        (_, true) => Exit::Interrupted,
        (true, false) => Exit::Wrong,
        (false, false) => Exit::Fine,
    })
}

impl Args {
    /// Measures and judges an area.
    fn area(&self, area: Area, host: &Host) -> Result<Exit, String> {
        let simple = match area {
            Area::Delegate => reach::Area::delegate(),
            Area::Flat => reach::Area::flat(host.machine.cpus),
            Area::Literature => reach::Area::literature(),
            Area::Fibre => return fibre::run(self, host),
            Area::Txn => return txn::run(self, host),
            Area::Store => return store::run(self, host),
            Area::Course => return course::run(self, host),
            Area::Structures => return structures::run(self, host),
            Area::Cached => return cached::run(self, host),
        };
        measured(self, host, area, &simple)
    }

    /// Prints the point at which the next targets were measured.
    fn at(&self, point: &str) -> Result<(), String> {
        self.ledger.at(point);
        output::say(&format!("{point}\n"))
    }

    /// Prints a line for each judgement. Returns whether a target is missed.
    fn judged(&self, judgements: &[Judgement]) -> Result<bool, String> {
        self.ledger.judged(judgements);
        let width = judgements.iter().map(|j| j.what.len()).max().unwrap_or(0);
        for judgement in judgements {
            output::say(&format!("{judgement:width$}\n"))?;
        }
        Ok(judgements.iter().any(|j| j.is_met() == Some(false)))
    }

    /// Samples the methods of `area` in turn, until both modes have enough blocks or time is up.
    fn measure(
        &self,
        rig: &mut Rig,
        area: &reach::Area,
        placement: &[Option<usize>],
    ) -> Result<Vec<Run>, String> {
        let mut session = Session::new();
        for &method in &area.methods {
            let item = Item {
                method,
                point: area.point(placement.into()),
                notes: vec![],
            };
            session.add(item, &rig.setup_limit(None))?;
        }
        let timing = Timing::of(Duration::from_millis(self.slice));
        let (start, limit) = (Instant::now(), Duration::from_secs(self.limit));
        let bar = output::progress(self.limit, limit);
        bar.set_message("measuring");
        session.warm_up(rig, Duration::from_millis(50), || {});
        let enough = |session: &Session, rig: &_| {
            [Mode::Near, Mode::Far]
                .iter()
                .all(|&m| session.blocks(rig, m) >= self.blocks as usize)
        };
        while start.elapsed() < limit && !rig.is_interrupted() && !enough(&session, rig) {
            session.round(rig, timing, Some(start + limit), || {});
            bar.set_position(start.elapsed().as_secs());
        }
        bar.finish_and_clear();
        Ok(session.finish(rig, timing))
    }
}

/// Measures and prints the CPU time of an idle trustee. Returns whether the target is missed.
fn print_idle(args: &Args) -> Result<bool, String> {
    let Some(share) = reach::idle(Duration::from_secs(2)) else {
        return Ok(false);
    };
    args.ledger.single(
        "idle trustee: share of a CPU",
        Bound::AtMost(0.001),
        share,
        "",
    );
    let met = share <= 0.001;
    let verdict = if met { "pass" } else { "MISS" };
    output::say(&format!(
        "{:38} {:5} <= 0.001  {share:>24.5}  over 2 s      {verdict}\n",
        "idle trustee: share of a CPU", ""
    ))?;
    Ok(!met)
}

/// Measures and prints the cost of an event of the tracer. Returns whether the target is missed.
fn print_tracer(args: &Args) -> Result<bool, String> {
    // While this command is itself traced, the tracer cannot be measured.
    let Ok(cost) = tracer::cost() else {
        output::say("tracer: not measured while a trace is recorded\n")?;
        return Ok(false);
    };
    let (beyond, met) = (cost.beyond_tick_ns(), cost.beyond_tick_ns() <= 5.0);
    let what = "tracer: an event, without its tick";
    args.ledger.single(what, Bound::AtMost(5.0), beyond, "ns");
    let verdict = if met { "pass" } else { "MISS" };
    output::say(&format!(
        "{:35} {:5}    <= 5  {beyond:>24.2}  ns             {verdict}  reading the tick: {:.1} ns, \
         an event while off: {:.2} ns\n",
        "tracer: an event, without its tick", "", cost.tick_ns, cost.off_ns
    ))?;
    Ok(!met)
}

/// Prints the throughput of each run by mode, in the order of `runs`.
fn print_throughput(runs: &[Run]) -> Result<(), String> {
    let width = runs.iter().map(|run| run.method.len()).max().unwrap_or(0);
    for run in runs {
        let figure = |mode| match run.by_mode.get(&mode) {
            Some(s) => format!(
                "{:.2} [{:.2}, {:.2}] n={}",
                s.median_mops, s.q1_mops, s.q3_mops, s.n
            ),
            None => "not seen".to_owned(),
        };
        let (near, far) = (figure(Mode::Near), figure(Mode::Far));
        output::say(&format!(
            "  {:width$} near {near:34} far {far} Mops\n",
            run.method
        ))?;
    }
    Ok(())
}
