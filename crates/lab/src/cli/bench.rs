//! `corelay bench`: one workload with every knob.

use crate::cli::host::Host;
use crate::cli::list::{List, Numbers, number};
use crate::cli::output::{self, Target};
use crate::cli::{Exit, table};
use crate::measure::memory::available_bytes;
use crate::measure::plan::{self, Item};
use crate::measure::rig::Rig;
use crate::measure::session::{Session, Timing};
use crate::method::{METHODS, Method};
use crate::schema::Run;
use crate::workload::fetch_add::{MAX_VARS, Point};
use crate::workload::random::Choice;
use corelay_topology::Order;
use std::path::PathBuf;
use std::time::Duration;

/// Threads that `--threads` can name: beyond that it is a slip of the fingers.
const MAX_THREADS: u64 = 1024;

/// Measure one workload with every knob
///
/// Lists are written `1,2,4`, `1..8` (both ends belong to it) or `2^0..2^20` (every power).
/// One sample of each contender is taken in turn, then again one of each, so that all meet
/// the machine in the same moods.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What the threads do: `fetch-add` adds one to 64-byte variables chosen at random
    #[arg(value_enum)]
    workload: Workload,

    /// Methods to compare, or `all`
    #[arg(long, value_name = "LIST", default_value = "all", value_parser = methods, help = method_help())]
    method: Methods,

    /// All threads, servers and actors included; `cpus` is the number of usable CPUs (at least 2)
    #[arg(long, allow_negative_numbers = true, value_name = "LIST", default_value = "cpus", value_parser = threads)]
    threads: List,

    /// Trustees of dedicated delegation, among the threads; other methods ignore it
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 1,
          value_parser = number(1..=MAX_THREADS - 1))]
    servers: u64,

    /// Shared variables
    #[arg(long, allow_negative_numbers = true, value_name = "LIST", default_value = "1,64,2^10", value_parser = vars)]
    vars: List,

    /// Requests in flight per client and trustee; other methods have their own
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 256,
          value_parser = number(1..=65_536))]
    window: u64,

    /// Length of a sample in seconds; fractions are allowed
    #[arg(long, allow_negative_numbers = true, value_name = "S", default_value = "0.1", value_parser = secs)]
    secs: f64,

    /// Samples of each contender
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 10,
          value_parser = number(1..=100_000))]
    samples: u64,

    /// Where threads are pinned, servers first: cores-first, fill-node, sockets, none, or CPUs such as 0,2-5
    #[arg(long, value_name = "ORDER", default_value_t)]
    pin: Order,

    /// How variables are chosen: `uniform`, or `zipf:θ` such as `zipf:0.99`
    #[arg(long, value_name = "DIST", default_value_t)]
    dist: Choice,

    /// Seed of the random choices
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "N",
        default_value_t = 1,
        value_parser = number(0..=u64::MAX)
    )]
    seed: u64,

    /// Write the results as JSON to a file; `-` is standard output, instead of the table
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Workload {
    FetchAdd,
}

#[derive(Clone, Debug)]
struct Methods(Vec<Method>);

fn method_help() -> String {
    format!("Methods to compare, of {}; or `all`", names())
}

fn names() -> String {
    METHODS
        .iter()
        .map(Method::name)
        .collect::<Vec<_>>()
        .join(", ")
}

fn methods(text: &str) -> Result<Methods, String> {
    if text == "all" {
        return Ok(Methods(METHODS.to_vec()));
    }
    let mut methods: Vec<Method> = Vec::new();
    for name in text.split(',').map(str::trim) {
        let unknown = || {
            let what = match name {
                "" => "a name is missing".to_owned(),
                _ => format!("there is no method `{name}`"),
            };
            format!("{what}; there are {} (or all)", names())
        };
        let method = Method::named(name).ok_or_else(unknown)?;
        if methods.iter().all(|m| m.name() != method.name()) {
            methods.push(method);
        }
    }
    Ok(Methods(methods))
}

fn threads(text: &str) -> Result<List, String> {
    let cpus = std::thread::available_parallelism().map_or(2, |n| n.get().max(2) as u64);
    let word = Some(("cpus", cpus.min(MAX_THREADS)));
    Numbers {
        bounds: 1..=MAX_THREADS,
        word,
    }
    .list(text)
}

fn vars(text: &str) -> Result<List, String> {
    Numbers {
        bounds: 1..=MAX_VARS,
        word: None,
    }
    .list(text)
}

fn secs(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(secs) if secs > 0.0 && secs <= 3600.0 => Ok(secs),
        _ => Err("a sample takes a number of seconds above 0, at most 3600".to_owned()),
    }
}

pub(crate) fn run(args: Args) -> Result<Exit, String> {
    let Workload::FetchAdd = args.workload;
    args.check_threads()?;
    let host = Host::look();
    let items = args.items(&host)?;
    let available = available_bytes();
    items
        .iter()
        .try_for_each(|item| item.check_memory(available))?;
    let waves = plan::waves(items, available);
    let target = match &args.json {
        Some(path) => Some(Target::open(path).map_err(|e| unwritable(path, &e))?),
        None => None,
    };
    let most = args.threads.0.iter().max().map_or(1, |&n| n as usize);
    let mut rig = host.rig(&args.pin, most)?;
    let runs = args.measure(&mut rig, waves)?;
    rig.save();

    let wrong = runs.iter().any(|run| !run.correct);
    let results = host.results(&rig, runs);
    if !matches!(target, Some(Target::Stdout)) {
        output::say(&table::of(&results))?;
    }
    if let Some((target, path)) = target.zip(args.json.as_ref()) {
        let mut json = serde_json::to_string_pretty(&results).map_err(|e| e.to_string())?;
        json.push('\n');
        target
            .write(json.as_bytes())
            .map_err(|e| unwritable(path, &e))?;
    }
    Ok(match (wrong, rig.is_interrupted()) {
        (true, _) => Exit::Wrong,
        (false, true) => Exit::Interrupted,
        (false, false) => Exit::Fine,
    })
}

fn unwritable(path: &std::path::Path, error: &std::io::Error) -> String {
    format!("--json {}: it cannot be written: {error}", path.display())
}

impl Args {
    /// Every point has a client for every method.
    fn check_threads(&self) -> Result<(), String> {
        let servers = self.servers as usize;
        for &threads in &self.threads.0 {
            for method in &self.method.0 {
                if threads as usize >= method.least_threads(servers) {
                    continue;
                }
                let name = method.name();
                return Err(if method.is_dedicated() {
                    format!(
                        "--threads {threads} leaves no client for {name} beside --servers {servers}; \
                         it must be more than the servers"
                    )
                } else {
                    format!(
                        "--threads {threads} leaves no client for {name} beside its actor; it takes 2"
                    )
                });
            }
        }
        Ok(())
    }

    fn items(&self, host: &Host) -> Result<Vec<Item>, String> {
        let mut items = Vec::new();
        for &threads in &self.threads.0 {
            let placement = host.place(&self.pin, threads as usize)?;
            for &vars in &self.vars.0 {
                let point = Point {
                    threads: threads as usize,
                    servers: self.servers as usize,
                    vars,
                    window: self.window as usize,
                    choice: self.dist,
                    seed: self.seed,
                    placement: placement.cpus().into(),
                };
                items.extend(self.method.0.iter().map(|&method| Item {
                    method,
                    point: point.clone(),
                    notes: placement.notes().to_vec(),
                }));
            }
        }
        Ok(items)
    }

    fn measure(&self, rig: &mut Rig, waves: Vec<Vec<Item>>) -> Result<Vec<Run>, String> {
        let timing = Timing::of(Duration::from_secs_f64(self.secs));
        let slices = waves.iter().map(Vec::len).sum::<usize>() as u64 * (self.samples + 1);
        let expected = timing.whole().mul_f64(slices as f64);
        let bar = output::progress(slices, expected);
        let mut runs = Vec::new();
        for wave in waves {
            bar.set_message("setting up");
            let mut session = Session::new();
            for item in wave {
                if let Err(sentence) = session.add(item, &rig.patience(None))
                    && !rig.is_interrupted()
                {
                    return Err(sentence);
                }
            }
            bar.set_message("warming up");
            session.warm_up(rig, timing.sample.min(Duration::from_millis(100)), || {
                bar.inc(1)
            });
            bar.set_message("measuring");
            for _ in 0..self.samples {
                if !session.round(rig, timing, None, || bar.inc(1)) {
                    break;
                }
            }
            runs.extend(session.finish(rig, timing));
            if rig.is_interrupted() {
                break;
            }
        }
        bar.finish_and_clear();
        Ok(runs)
    }
}
