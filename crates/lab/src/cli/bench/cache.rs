//! `corelay bench cache`: a load for any server that speaks memcached's text protocol.

use super::common::{Listed, Opened};
use crate::cli::list::{Numbers, number, secs};
use corelay_lab_bench::cache::Failure;
use corelay_lab_bench::cache::address::Address;
use corelay_lab_bench::cache::options::{Options, Scan, Sizes};
use corelay_lab_bench::cache::process;
use corelay_lab_bench::cache::session::{Phase, Plan, Session, Target};
use corelay_lab_compare::COMMIT;
use corelay_lab_measure::host::Host;
use corelay_lab_measure::schema::Run;
use corelay_lab_report::exit::Exit;
use corelay_lab_report::output;
use corelay_lab_report::table;
use corelay_topology::{CpuSet, Order};
use std::path::PathBuf;
use std::time::Duration;

/// The most connections or requests in flight of a connection; more is a typing error.
const MAX_CONNECTIONS: u64 = 1 << 20;

/// Load on a cache server: any that speaks memcached's text protocol
///
/// Measures a server that runs (--server), or one that is started for it (--start), in blocks of a
/// short time. With --against, two servers take turns, block by block, and the ratios between them
/// have 95 % intervals. While one is measured, the other is idle. Every answer is checked: a value that
/// is not the one that this program gives the key makes the exit code 1.
///
/// By default the loop is closed: a connection sends its next requests when all answers to the last
/// are there, and latency counts from the write. With --load the loop is open: requests arrive at random
/// moments that are fixed beforehand, and latency counts from the moment at which a request was due.
/// Load threads then poll without sleeping.
///
/// Example: corelay bench cache --start 'memcached -t 1 -U 0' --warmup
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("target").args(["server", "start"])))]
pub(super) struct Args {
    /// Address of the server: host:port, or the path of a Unix socket (with a slash)
    #[arg(long, value_name = "ADDR", value_parser = Address::read)]
    server: Option<Address>,

    /// Command that starts the server; it gets `-p PORT` with a free port of 127.0.0.1 unless it has one, and
    /// is killed at the end
    #[arg(long, value_name = "COMMAND", value_parser = process::check)]
    start: Option<String>,

    /// Command that starts a second server, which takes turns with the first one
    #[arg(long, value_name = "COMMAND", value_parser = process::check)]
    against: Option<String>,

    /// CPUs of the servers that are started, such as 0 or 0,2-5 [default: 0, or the first that there is]
    #[arg(long, value_name = "CPUS", value_parser = cpus)]
    server_cpu: Option<CpuSet>,

    /// CPUs of the load threads, such as 1 or 1,3; or `none` [default: those that the servers do not have if
    /// servers are started, else none]
    #[arg(long, value_name = "CPUS", value_parser = pinning)]
    pin: Option<Order>,

    /// Load threads
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 1,
          value_parser = number(1..=1024))]
    threads: u64,

    /// Connections over all load threads
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 64,
          value_parser = number(1..=MAX_CONNECTIONS))]
    connections: u64,

    /// Requests that a connection sends in one write
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 1,
          value_parser = number(1..=65_536))]
    pipeline: u64,

    /// Share of the requests that are gets: 1 is gets only, 0 sets only
    #[arg(long, allow_negative_numbers = true, value_name = "SHARE", default_value = "0.9", value_parser = share)]
    get_ratio: f64,

    /// Number of different keys
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 1_000_000,
          value_parser = number(1..=1 << 32))]
    keys: u64,

    /// Bytes of a key
    #[arg(long, allow_negative_numbers = true, value_name = "B", default_value_t = 12,
          value_parser = number(1..=250))]
    key_size: u64,

    /// Bytes of a value, or LOW..HIGH, of which each length is as likely; a key keeps its length
    #[arg(long, allow_negative_numbers = true, value_name = "B", default_value_t = Sizes::of(32),
          value_parser = sizes)]
    value_size: Sizes,

    /// Skew of Zipf's law by which keys are chosen; 0 for equal chances
    #[arg(long, allow_negative_numbers = true, value_name = "S", default_value = "0.99", value_parser = skew)]
    zipf: f64,

    /// Requests per second that arrive over all connections, whether or not earlier ones are answered (an
    /// open loop)
    #[arg(long, allow_negative_numbers = true, value_name = "OPS", value_parser = number(1..=1_000_000_000))]
    load: Option<u64>,

    /// Seconds under load for each server; fractions are allowed
    #[arg(long, allow_negative_numbers = true, value_name = "S", default_value = "10", value_parser = secs)]
    secs: f64,

    /// Seconds of a block
    #[arg(long, allow_negative_numbers = true, value_name = "S", default_value = "0.5", value_parser = secs)]
    block: f64,

    /// Set each key once before anything is measured
    #[arg(long)]
    warmup: bool,

    /// Set each key that a get has missed, as a program with a store behind the cache does
    #[arg(long)]
    miss_set: bool,

    /// Requests of a load thread between two bursts of gets for keys that are asked for once
    #[arg(long, allow_negative_numbers = true, value_name = "N", requires = "scan_length",
          value_parser = number(1..=1 << 40))]
    scan_every: Option<u64>,

    /// Keys of such a burst
    #[arg(long, allow_negative_numbers = true, value_name = "N", requires = "scan_every",
          value_parser = number(1..=1 << 32))]
    scan_length: Option<u64>,

    /// Share of the requests for one hot key, beside what Zipf's law gives it
    #[arg(long, allow_negative_numbers = true, value_name = "SHARE", default_value = "0", value_parser = share)]
    hot: f64,

    /// Further connections, over which nothing is sent
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 0,
          value_parser = number(0..=MAX_CONNECTIONS))]
    idle_connections: u64,

    /// Let load threads poll without sleeping, also in a closed loop
    #[arg(long)]
    spin: bool,

    /// Seed of the random choices
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 1,
          value_parser = number(0..=u64::MAX))]
    seed: u64,

    /// Write the results as JSON to a file; `-` prints them instead of the table
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

pub(super) fn listed() -> Vec<Listed> {
    vec![Listed {
        name: "memcached",
        what: "any server that speaks memcached's text protocol, by --server or --start",
        default: true,
        compared: false,
    }]
}

/// Parses a share, 0 to 1.
fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("a share lies within 0 and 1".to_owned()),
    }
}

/// Parses `--zipf`.
fn skew(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(skew) if (0.0..=16.0).contains(&skew) => Ok(skew),
        _ => Err("a skew lies within 0 and 16".to_owned()),
    }
}

/// Parses `--value-size`.
fn sizes(text: &str) -> Result<Sizes, String> {
    let size = |text: &str| {
        let (bounds, word) = (0..=64 << 20, None);
        let list = Numbers { bounds, word }.list(text.trim())?;
        match list.0[..] {
            [size] => Ok(size as usize),
            _ => Err(format!("`{text}` is not one number")),
        }
    };
    match text.split_once("..") {
        None => size(text).map(Sizes::of),
        Some((low, high)) => Sizes::between(size(low)?, size(high)?).ok_or_else(|| {
            format!("the range `{text}` is reversed; write the smaller number first")
        }),
    }
}

/// Parses `--server-cpu`.
fn cpus(text: &str) -> Result<CpuSet, String> {
    match text.parse::<Order>() {
        Ok(Order::Explicit(cpus)) => Ok(cpus.into_iter().collect()),
        Ok(_) => Err(format!(
            "`{text}` is not a list of CPUs, such as 0 or 0,2-5"
        )),
        Err(error) => Err(error.to_string()),
    }
}

/// Parses `--pin`.
fn pinning(text: &str) -> Result<Order, String> {
    match text.parse::<Order>() {
        Ok(order @ (Order::None | Order::Explicit(_))) => Ok(order),
        Ok(_) => Err(format!(
            "`{text}` is neither a list of CPUs, such as 1 or 1,3, nor `none`"
        )),
        Err(error) => Err(error.to_string()),
    }
}

pub(super) fn run(args: &Args) -> Result<Exit, String> {
    if args.server.is_none() && args.start.is_none() {
        return Err(
            "bench cache needs a server: --server ADDR if it runs, --start COMMAND to start it"
                .to_owned(),
        );
    }
    let options = args.options();
    options.check()?;
    if args.block > args.secs {
        return Err(format!(
            "--block {} is longer than --secs {}; give a shorter block",
            args.block, args.secs
        ));
    }
    let targets = args.targets();
    let starts = targets.iter().any(|t| matches!(t, Target::Command(_)));
    if !starts && args.server_cpu.is_some() && args.pin.is_none() {
        return Err(
            "--server-cpu without --start or --against pins nothing; with --pin it names the CPU between \
             which and the load the round trip is probed"
                .to_owned(),
        );
    }
    let host = Host::look(COMMIT);
    let placed = args.place(&host, starts)?;
    let mut opened = Opened::open(&host, &placed.order, placed.members, args.json.as_ref())?;
    let plan = Plan {
        targets,
        server_cpus: placed.server_cpus,
        options,
        block: Duration::from_secs_f64(args.block),
        first_member: placed.first_member,
    };
    match args.measure(plan, &mut opened) {
        Ok(runs) => {
            let wrong = super::common::has_wrong(&runs);
            opened.deliver(&host, runs, wrong, table::cache::of)
        }
        Err(Failure::Input(sentence)) => Err(sentence),
        Err(Failure::Server(sentence)) => {
            eprintln!("error: {sentence}");
            Ok(Exit::Wrong)
        }
    }
}

/// The CPUs of servers and load threads.
struct Placed {
    server_cpus: CpuSet,
    /// The CPUs of the crew: the server's first one if it is known, so that the probe watches the round trip
    /// between it and the load; then those of the load threads.
    order: Order,
    members: usize,
    first_member: usize,
}

impl Args {
    fn options(&self) -> Options {
        Options {
            connections: self.connections as usize,
            pipeline: self.pipeline as usize,
            get_ratio: self.get_ratio,
            keys: self.keys,
            key_size: self.key_size as usize,
            value_size: self.value_size,
            zipf: self.zipf,
            load: self.load.map(|load| load as f64),
            miss_set: self.miss_set,
            scan: self
                .scan_every
                .zip(self.scan_length)
                .map(|(every, length)| Scan { every, length }),
            hot: self.hot,
            idle_connections: self.idle_connections as usize,
            threads: self.threads as usize,
            spin: self.spin,
            seed: self.seed,
        }
    }

    fn targets(&self) -> Vec<Target> {
        let server = self.server.clone().map(Target::Running);
        let started = [&self.start, &self.against].into_iter().flatten();
        let started = started.cloned().map(Target::Command);
        server.into_iter().chain(started).collect()
    }

    fn place(&self, host: &Host, starts: bool) -> Result<Placed, String> {
        let all: Vec<usize> = host.topology.cpus().iter().map(|cpu| cpu.id).collect();
        let server_cpus = match (&self.server_cpu, all.contains(&0)) {
            (Some(cpus), _) => cpus.clone(),
            (None, true) => CpuSet::from_iter([0]),
            (None, false) => all.first().copied().into_iter().collect(),
        };
        if let Some(cpu) = server_cpus.iter().find(|cpu| !all.contains(cpu)) {
            let usable: CpuSet = all.iter().copied().collect();
            return Err(format!(
                "--server-cpu: this process may not use CPU {cpu}, only {usable}"
            ));
        }
        let is_known = starts || self.server_cpu.is_some();
        let threads = self.threads as usize;
        let others = || -> Vec<usize> {
            let free = all
                .iter()
                .copied()
                .filter(|cpu| !server_cpus.contains(*cpu));
            let free: Vec<usize> = free.collect();
            if free.is_empty() { all.clone() } else { free }
        };
        let load = match &self.pin {
            Some(Order::Explicit(cpus)) => Some(cpus.clone()),
            Some(_) => None,
            None => starts.then(others),
        };
        let server = server_cpus.first().filter(|_| is_known);
        let (order, first_member) = match (load, server) {
            (None, _) => (Order::None, 0),
            (Some(load), server) => {
                let load = load.iter().copied().cycle().take(threads);
                let order = server.into_iter().chain(load).collect();
                (Order::Explicit(order), usize::from(server.is_some()))
            }
        };
        Ok(Placed {
            server_cpus,
            order,
            members: first_member + threads,
            first_member,
        })
    }

    fn measure(&self, plan: Plan, opened: &mut Opened) -> Result<Vec<Run>, Failure> {
        let rounds = (self.secs / self.block).round().max(1.0) as u64;
        let servers = plan.targets.len() as u64;
        let fills = if self.warmup { servers } else { 0 };
        let expected = Duration::from_secs_f64(self.secs * servers as f64 + fills as f64);
        let bar = output::progress(rounds * servers + fills, expected);
        bar.set_message("connecting");
        let mut session = Session::open(plan)?;
        let rig = &mut opened.rig;
        let mut phase = Phase::Done;
        if self.warmup {
            bar.set_message("filling");
            phase = session.fill(rig, || bar.inc(1))?;
        }
        bar.set_message("measuring");
        for _ in 0..rounds {
            if phase == Phase::Interrupted {
                break;
            }
            phase = session.round(rig, || bar.inc(1))?;
        }
        bar.finish_and_clear();
        Ok(session.finish(rig))
    }
}
