//! `corelay reach cached`: measures the targets of the cache server beside memcached.

use super::Args;
use crate::reach::cached::{IDLE_BYTES, IDLE_CONNECTIONS, IDLE_SHARE, ITEM_BYTES, Point, points};
use crate::reach::{Bound, Judgement};
use corelay_lab_bench::cache::Failure;
use corelay_lab_bench::cache::options::{Options, Sizes};
use corelay_lab_bench::cache::session::{Plan, Session, Target};
use corelay_lab_measure::host::Host;
use corelay_lab_measure::measure::rig::Rig;
use corelay_lab_measure::measure::stats::Interval;
use corelay_lab_measure::schema::cache::CacheRun;
use corelay_lab_measure::schema::{Mode, Run};
use corelay_lab_report::exit::Exit;
use corelay_lab_report::output;
use corelay_topology::{CpuSet, Order};
use std::process::Command;
use std::time::{Duration, Instant};

/// The length of a block.
const BLOCK: Duration = Duration::from_millis(250);

/// The commands of the two servers, without the flags of a point.
struct Servers {
    cached: String,
    memcached: String,
}

impl Servers {
    /// Finds both programs.
    fn find() -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let cached = program.with_file_name("corelay-cached");
        if !cached.exists() {
            return Err(format!(
                "{} is not there; build it: cargo build --release -p corelay-cached",
                cached.display()
            ));
        }
        let memcached = Command::new("memcached").arg("-V").output();
        memcached.map_err(|error| format!("memcached cannot be started: {error}"))?;
        Ok(Self {
            cached: format!("'{}'", cached.display()),
            // It refuses to be root's unless it is told so.
            memcached: "memcached -u root -U 0".to_owned(),
        })
    }

    fn targets(&self, flags: &str) -> Vec<Target> {
        [&self.cached, &self.memcached]
            .map(|command| Target::Command(format!("{command} {flags}")))
            .into()
    }
}

fn sentence(failure: Failure) -> String {
    match failure {
        Failure::Input(why) | Failure::Server(why) => why,
    }
}

pub(super) fn run(args: &Args, host: &Host) -> Result<Exit, String> {
    let servers = Servers::find()?;
    let cpus: Vec<usize> = host.topology.cpus().iter().map(|cpu| cpu.id).collect();
    let [server, load, ..] = cpus[..] else {
        output::say("no target can be measured here: server and load need a CPU each\n")?;
        return Ok(Exit::Fine);
    };
    let order = Order::Explicit(vec![server, load]);
    let mut rig = host.rig(&order, 2)?;
    if let Some(why) = rig.no_probe() {
        output::say(&format!("no target can be measured here: {why}\n"))?;
        return Ok(Exit::Fine);
    }
    let mut missed = false;
    let mut half_load = None;
    for point in points() {
        if rig.is_interrupted() {
            return Ok(Exit::Interrupted);
        }
        args.at(point.name)?;
        let (all, one) = (cpus.iter().copied().collect(), CpuSet::from_iter([server]));
        let mut options = point.options.clone();
        if point.is_at_half_load {
            options.load = half_load;
        }
        let plan = Plan {
            targets: servers.targets(point.flags),
            server_cpus: if point.is_crowded { all } else { one },
            options,
            block: BLOCK,
            first_member: 1,
        };
        let runs = measure(args, &mut rig, plan, point.is_filled).map_err(sentence)?;
        if let Some(wrong) = runs.iter().find(|run| !run.correct) {
            output::say(&format!("{}: {}\n", wrong.method, wrong.notes.join("; ")))?;
            return Ok(Exit::Wrong);
        }
        missed |= args.judged(&judge(&point, &runs, args.blocks as usize))?;
        runs.iter().try_for_each(print_run)?;
        if point.name == "90/10" {
            let rates = runs[1].by_mode.values().map(|summary| summary.median_mops);
            half_load = rates.reduce(f64::max).map(|mops| mops * 1e6 / 2.0);
        }
    }
    if !rig.is_interrupted() {
        missed |= singles(args, &rig, &servers, server).map_err(sentence)?;
    }
    rig.save();
    Ok(match (missed, rig.is_interrupted()) {
        (_, true) => Exit::Interrupted,
        (true, false) => Exit::Wrong,
        (false, false) => Exit::Fine,
    })
}

/// Measures both servers in turn, until both modes have enough blocks or time is up.
fn measure(args: &Args, rig: &mut Rig, plan: Plan, fills: bool) -> Result<Vec<Run>, Failure> {
    let bar = output::progress(args.limit, Duration::from_secs(args.limit));
    let mut session = Session::open(plan)?;
    if fills {
        bar.set_message("filling");
        session.fill(rig, || {})?;
    }
    bar.set_message("measuring");
    let (start, limit) = (Instant::now(), Duration::from_secs(args.limit));
    let enough = |session: &Session, rig: &Rig| {
        let seen = |&mode: &Mode| session.blocks(rig, mode) >= args.blocks as usize;
        [Mode::Near, Mode::Far].iter().all(seen)
    };
    while start.elapsed() < limit && !rig.is_interrupted() && !enough(&session, rig) {
        session.round(rig, || {})?;
        bar.set_position(start.elapsed().as_secs());
    }
    bar.finish_and_clear();
    Ok(session.finish(rig))
}

fn judge(point: &Point, runs: &[Run], enough: usize) -> Vec<Judgement> {
    let against = runs.first().and_then(|run| run.cache.as_ref());
    let ratios = against.map_or(&[][..], |cache| &cache.against);
    let mut judgements = Vec::new();
    for &(figure, what, bound) in &point.targets {
        for mode in [Mode::Near, Mode::Far] {
            let found = ratios
                .iter()
                .find(|ratio| ratio.figure == figure && ratio.mode == mode);
            let blocks = found.map_or(0, |ratio| ratio.blocks);
            let interval = found.map(|ratio| Interval {
                low: ratio.low,
                ratio: ratio.ratio,
                high: ratio.high,
            });
            judgements.push(Judgement {
                what,
                mode,
                bound,
                ratio: interval.filter(|_| blocks >= enough),
                blocks,
                best: None,
            });
        }
    }
    judgements
}

/// Prints a server's rate by mode, its latencies, and the requests for each second of its CPU time.
fn print_run(run: &Run) -> Result<(), String> {
    let figure = |mode| match run.by_mode.get(&mode) {
        Some(s) => {
            let [middle, low, high] = [s.median_mops, s.q1_mops, s.q3_mops].map(|mops| mops * 1e3);
            format!("{middle:.0} [{low:.0}, {high:.0}] n={}", s.n)
        }
        None => "not seen".to_owned(),
    };
    let (near, far) = (figure(Mode::Near), figure(Mode::Far));
    let cache = run.cache.as_ref();
    let latency = cache.and_then(|cache| cache.latency_ns).unwrap_or_default();
    let [p50, p99, p999] = [latency.p50, latency.p99, latency.p999].map(|ns| ns as f64 / 1e3);
    let blocks = run.samples.iter().filter_map(|sample| sample.cache);
    let (operations, cpu_s) = blocks.fold((0, 0.0), |(operations, cpu_s), block| {
        let cpu = block.server_cpu_s.unwrap_or_default();
        (operations + block.counts.operations(), cpu_s + cpu)
    });
    let hits = cache.and_then(|cache: &CacheRun| cache.counts.hit_ratio());
    let hits = hits.map_or(String::new(), |hits| {
        format!(", hits {:.1} %", hits * 100.0)
    });
    let name = match run.method.starts_with("memcached") {
        true => "memcached",
        false => "corelay-cached",
    };
    output::say(&format!(
        "  {name:14} near {near:26} far {far:26} k/s, {:.0} k per CPU s, p50 {p50:.0} p99 {p99:.0} p99.9 \
         {p999:.0} µs{hits}\n",
        operations as f64 / cpu_s / 1e3,
    ))
}

/// Measures what is not a ratio. Returns whether a target is missed.
fn singles(args: &Args, rig: &Rig, servers: &Servers, cpu: usize) -> Result<bool, Failure> {
    let measured = |flags: &str, most: &str| -> Result<[[f64; 3]; 2], Failure> {
        let [ours, theirs] = [&servers.cached, &servers.memcached]
            .map(|command| one(rig, &format!("{command} {flags}"), most, cpu));
        Ok([ours?, theirs?])
    };
    let [ours, theirs] = measured("-t 1 -m 1024", "-c 20000")?;
    let mut missed = false;
    for (n, (what, most, unit)) in [
        (
            "resident bytes of an item of 12 + 100 bytes",
            ITEM_BYTES,
            "bytes",
        ),
        (
            "resident bytes with 10,000 idle connections",
            IDLE_BYTES,
            "bytes",
        ),
        ("idle server: share of a CPU", IDLE_SHARE, ""),
    ]
    .into_iter()
    .enumerate()
    {
        let (value, theirs) = (ours[n], theirs[n]);
        args.at(what).map_err(Failure::Server)?;
        args.ledger.single(what, Bound::AtMost(most), value, unit);
        let is_met = value <= most;
        let verdict = if is_met { "pass" } else { "MISS" };
        let line = format!("  {value:.6} of at most {most}  {verdict}; memcached {theirs:.6}\n");
        output::say(&line).map_err(Failure::Server)?;
        missed |= !is_met;
    }
    Ok(missed)
}

/// Measures one server: resident bytes of an item, resident bytes with idle connections, and the share of a
/// CPU that it takes while nothing happens.
fn one(rig: &Rig, command: &str, most: &str, cpu: usize) -> Result<[f64; 3], Failure> {
    const WHILE: Duration = Duration::from_secs(10);
    let open = |command: &str, keys, idle_connections| {
        Session::open(Plan {
            targets: vec![Target::Command(command.to_owned())],
            server_cpus: CpuSet::from_iter([cpu]),
            options: Options {
                keys,
                value_size: Sizes::of(100),
                idle_connections,
                ..Options::default()
            },
            block: BLOCK,
            first_member: 1,
        })
    };
    let bytes = |session: &Session| session.resident_bytes()[0].unwrap_or(0) as f64;
    let filled = |keys| {
        let mut session = open(command, keys, 0)?;
        session.fill(rig, || {})?;
        Ok(bytes(&session))
    };
    let (few, many) = (1_000, 1_001_000);
    let per_item = (filled(many)? - filled(few)?) / (many - few) as f64;
    let session = open(&format!("{command} {most}"), few, IDLE_CONNECTIONS)?;
    let idle = bytes(&session);
    // Whatever the connections cost is over.
    std::thread::sleep(Duration::from_secs(1));
    let cpu_s = || session.cpu_s()[0].unwrap_or(0.0);
    let before = cpu_s();
    std::thread::sleep(WHILE);
    Ok([per_item, idle, (cpu_s() - before) / WHILE.as_secs_f64()])
}
