//! `corelay bench timestamp`, `rlu-list`, `rlu-hash`, `stm-transfer`, `stm-read` and `oplog-rmap`:
//! the workloads that a clock orders.

use super::common::{Listed, Opened, names, threads};
use super::history::HistoryArgs;
use crate::cli::list::{self, List, Numbers, number, secs};
use corelay_lab_bench::ordered::contest::{Contest, Entrant};
use corelay_lab_bench::ordered::database::Tape;
use corelay_lab_bench::ordered::method::{self, Entry, methods};
use corelay_lab_bench::ordered::spec::{Bench, Scale, Spec};
use corelay_lab_compare::COMMIT;
use corelay_lab_measure::host::Host;
use corelay_lab_measure::measure::memory::available_bytes;
use corelay_lab_measure::measure::rig::Rig;
use corelay_lab_measure::measure::session::Timing;
use corelay_lab_measure::schema::Run;
use corelay_lab_measure::workload::point::Point;
use corelay_lab_measure::workload::random::Choice;
use corelay_lab_report::exit::Exit;
use corelay_lab_report::output;
use corelay_lab_report::table;
use corelay_topology::{Order, Placement};
use std::path::PathBuf;
use std::time::Duration;

/// The most keys in a list, which is filled one key after the other.
const MAX_KEYS: u64 = 1 << 14;
/// The most lists, variables, pages or keys in all. A larger number is a typing error.
const MAX_OBJECTS: u64 = 1 << 20;

/// The flags that all of these benchmarks share, with those of `database`.
#[derive(Debug, clap::Args)]
pub(super) struct Common {
    /// All threads, the trustee of `trust` included; `cpus` is the number of usable CPUs (at least 2)
    #[arg(long, allow_negative_numbers = true, value_name = "LIST", default_value = "cpus", value_parser = threads)]
    threads: List,

    /// Factors for the boundary of Ordo clocks, such as 1/8,1/4,1/2,1,2,4,8; results with a factor
    /// below 1 are marked as no longer correct
    #[arg(long, allow_negative_numbers = true, value_name = "LIST", value_parser = scales)]
    boundary_scale: Option<Scales>,

    /// Length of a sample in seconds; fractions are allowed
    #[arg(long, allow_negative_numbers = true, value_name = "S", default_value = "0.1", value_parser = secs)]
    secs: f64,

    /// Samples of each contender
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 10,
          value_parser = number(1..=100_000))]
    samples: u64,

    /// CPUs that threads are pinned to, a trustee first: cores-first, fill-node, sockets, none, or CPUs
    /// such as 0,2-5
    #[arg(long, value_name = "ORDER", default_value_t)]
    pin: Order,

    /// Seed of the random choices
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 1,
          value_parser = number(0..=u64::MAX))]
    seed: u64,

    /// Write the results as JSON to a file; `-` prints them instead of the table
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Clone, Debug)]
pub(super) struct Methods(pub(super) Vec<Entry>);

/// The contenders of a command, and the extras of some.
pub(super) struct Plan<'a> {
    pub(super) methods: &'a Methods,
    pub(super) benches: &'a [Bench],
    /// Transactions that a client has outstanding, for methods that can.
    pub(super) windows: &'a [u64],
    /// The file for the history of the only contender, and the tape on which it is.
    pub(super) history: Option<(&'a HistoryArgs, &'a Tape)>,
}

impl<'a> Plan<'a> {
    /// A plan without extras.
    pub(super) fn of(methods: &'a Methods, benches: &'a [Bench]) -> Self {
        Self {
            methods,
            benches,
            windows: &[1],
            history: None,
        }
    }
}

#[derive(Clone, Debug)]
struct Scales(Vec<Scale>);

/// Draw time stamps in a loop, from shared counters and from each core's own clock
#[derive(Debug, clap::Args)]
pub(super) struct Timestamp {
    /// Methods to compare, or `all`
    #[arg(long, value_name = "LIST", default_value = "all", value_parser = stamps, help = help(TIMESTAMP))]
    method: Methods,

    #[command(flatten)]
    common: Common,
}

/// Look up, insert and remove keys of one sorted linked list
#[derive(Debug, clap::Args)]
pub(super) struct RluList {
    /// Methods to compare, or `all`
    #[arg(long, value_name = "LIST", default_value = "all", value_parser = lists, help = help(LIST))]
    method: Methods,

    /// Percentage of operations that update: half of them insert a key, half remove one
    #[arg(long, allow_negative_numbers = true, value_name = "LIST", default_value = "2,20,40", value_parser = percents)]
    updates: List,

    /// Keys in the list; they are drawn from twice as many
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 256,
          value_parser = number(1..=MAX_KEYS))]
    size: u64,

    #[command(flatten)]
    common: Common,
}

/// Look up, insert and remove keys of a hash table of sorted linked lists
#[derive(Debug, clap::Args)]
pub(super) struct RluHash {
    /// Methods to compare, or `all`
    #[arg(long, value_name = "LIST", default_value = "all", value_parser = lists, help = help(LIST))]
    method: Methods,

    /// Percentage of operations that update: half of them insert a key, half remove one
    #[arg(long, allow_negative_numbers = true, value_name = "LIST", default_value = "2,20,40", value_parser = percents)]
    updates: List,

    /// Lists in the table
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 1000,
          value_parser = number(1..=MAX_OBJECTS))]
    buckets: u64,

    /// Keys in each list; they are drawn from twice as many
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 10,
          value_parser = number(1..=MAX_KEYS))]
    size: u64,

    #[command(flatten)]
    common: Common,
}

/// Transactions that move 1 from one random variable to another
#[derive(Debug, clap::Args)]
pub(super) struct StmTransfer {
    /// Methods to compare, or `all`
    #[arg(long, value_name = "LIST", default_value = "all", value_parser = banks, help = help(TRANSFER))]
    method: Methods,

    /// Variables
    #[arg(long, alias = "variables", allow_negative_numbers = true, value_name = "LIST", default_value = "1024",
          value_parser = variables)]
    vars: List,

    #[command(flatten)]
    common: Common,
}

/// Transactions that add up random variables
#[derive(Debug, clap::Args)]
pub(super) struct StmRead {
    /// Methods to compare, or `all`
    #[arg(long, value_name = "LIST", default_value = "all", value_parser = banks, help = help(TRANSFER))]
    method: Methods,

    /// Variables
    #[arg(long, alias = "variables", allow_negative_numbers = true, value_name = "LIST", default_value = "1024",
          value_parser = variables)]
    vars: List,

    /// Variables that a transaction reads
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 16,
          value_parser = number(1..=1024))]
    reads: u64,

    /// Percentage of transactions that move 1 within a pair of variables instead of reading; with any,
    /// the readers read pairs
    #[arg(long, allow_negative_numbers = true, value_name = "LIST", default_value = "0", value_parser = percents)]
    updates: List,

    #[command(flatten)]
    common: Common,
}

/// Map and unmap random pages in a reverse map, and read the whole map now and then
#[derive(Debug, clap::Args)]
pub(super) struct OplogRmap {
    /// Methods to compare, or `all`
    #[arg(long, value_name = "LIST", default_value = "all", value_parser = rmaps, help = help(RMAP))]
    method: Methods,

    /// Updates that a thread makes for each read of the whole map
    #[arg(long, allow_negative_numbers = true, value_name = "LIST", default_value = "10^3,10^4,10^5,10^6",
          value_parser = reads_every)]
    reads_every: List,

    /// Pages
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 1024,
          value_parser = number(1..=MAX_OBJECTS))]
    pages: u64,

    #[command(flatten)]
    common: Common,
}

// One benchmark of each kind, at any size. All of a kind have the same methods.
pub(super) const TIMESTAMP: Bench = Bench::Timestamp;
pub(super) const LIST: Bench = Bench::List {
    size: 1,
    updates: 0,
};
pub(super) const TRANSFER: Bench = Bench::Transfer { variables: 2 };
pub(super) const RMAP: Bench = Bench::Rmap {
    pages: 1,
    reads_every: 1,
};

pub(super) fn listed(bench: Bench) -> Vec<Listed> {
    let listed = |entry: &Entry| Listed {
        name: entry.name(),
        what: entry.what,
        default: true,
        compared: false,
    };
    methods(bench).iter().map(listed).collect()
}

pub(super) fn help(bench: Bench) -> String {
    format!(
        "Methods to compare: {}; or `all`",
        names(methods(bench).iter().map(|entry| &entry.method))
    )
}

pub(super) fn read(bench: Bench, text: &str) -> Result<Methods, String> {
    let name_of = |entry: &Entry| entry.name().to_owned();
    list::named(text, methods(bench), name_of, |name| {
        method::entry(bench, name)
    })
    .map(Methods)
}

fn stamps(text: &str) -> Result<Methods, String> {
    read(TIMESTAMP, text)
}

fn lists(text: &str) -> Result<Methods, String> {
    read(LIST, text)
}

fn banks(text: &str) -> Result<Methods, String> {
    read(TRANSFER, text)
}

fn rmaps(text: &str) -> Result<Methods, String> {
    read(RMAP, text)
}

fn scales(text: &str) -> Result<Scales, String> {
    let mut scales: Vec<Scale> = Vec::new();
    for scale in text.split(',') {
        let scale = scale.trim().parse()?;
        if !scales.contains(&scale) {
            scales.push(scale);
        }
    }
    Ok(Scales(scales))
}

fn within(text: &str, least: u64, most: u64) -> Result<List, String> {
    let (bounds, word) = (least..=most, None);
    Numbers { bounds, word }.list(text)
}

fn percents(text: &str) -> Result<List, String> {
    within(text, 0, 100)
}

fn variables(text: &str) -> Result<List, String> {
    within(text, 1, MAX_OBJECTS)
}

fn reads_every(text: &str) -> Result<List, String> {
    within(text, 1, 1 << 40)
}

pub(super) fn timestamp(args: &Timestamp) -> Result<Exit, String> {
    args.common.run(&args.method, &[TIMESTAMP])
}

pub(super) fn rlu_list(args: &RluList) -> Result<Exit, String> {
    let bench = |&updates: &u64| Bench::List {
        size: args.size as usize,
        updates: updates as u32,
    };
    let benches: Vec<Bench> = args.updates.0.iter().map(bench).collect();
    args.common.run(&args.method, &benches)
}

pub(super) fn rlu_hash(args: &RluHash) -> Result<Exit, String> {
    let (buckets, size) = (args.buckets, args.size);
    if buckets * size > MAX_OBJECTS {
        return Err(format!(
            "--buckets {buckets} --size {size}: these are {} keys in all; at most {MAX_OBJECTS} are allowed",
            buckets * size
        ));
    }
    let bench = |&updates: &u64| Bench::Hash {
        buckets: buckets as usize,
        size: size as usize,
        updates: updates as u32,
    };
    let benches: Vec<Bench> = args.updates.0.iter().map(bench).collect();
    args.common.run(&args.method, &benches)
}

pub(super) fn stm_transfer(args: &StmTransfer) -> Result<Exit, String> {
    let bench = |&variables: &u64| Bench::Transfer {
        variables: variables as usize,
    };
    let benches: Vec<Bench> = args.vars.0.iter().map(bench).collect();
    args.common.run(&args.method, &benches)
}

pub(super) fn stm_read(args: &StmRead) -> Result<Exit, String> {
    let bench = |variables: u64, updates: u64| Bench::Read {
        variables: variables as usize,
        reads: args.reads as usize,
        updates: updates as u32,
    };
    let of = |&variables: &u64| args.updates.0.iter().map(move |&u| bench(variables, u));
    let benches: Vec<Bench> = args.vars.0.iter().flat_map(of).collect();
    args.common.run(&args.method, &benches)
}

pub(super) fn oplog_rmap(args: &OplogRmap) -> Result<Exit, String> {
    let bench = |&reads_every: &u64| Bench::Rmap {
        pages: args.pages as usize,
        reads_every,
    };
    let benches: Vec<Bench> = args.reads_every.0.iter().map(bench).collect();
    args.common.run(&args.method, &benches)
}

/// Checks that all contenders fit into memory together.
fn check_memory(entrants: &[Entrant]) -> Result<(), String> {
    let bytes = entrants.iter().map(|entrant| entrant.spec.bench.bytes());
    let bytes = bytes.fold(0, u64::saturating_add);
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    match available_bytes() {
        Some(available) if bytes > available / 10 * 9 => Err(format!(
            "{} contenders would take {:.1} GiB together, and {:.1} GiB are available; give smaller \
             tables (--rows, --warehouses), or fewer mixes, methods or numbers of threads",
            entrants.len(),
            gib(bytes),
            gib(available),
        )),
        _ => Ok(()),
    }
}

impl Common {
    pub(super) fn run(&self, methods: &Methods, benches: &[Bench]) -> Result<Exit, String> {
        self.run_plan(&Plan::of(methods, benches))
    }

    pub(super) fn run_plan(&self, plan: &Plan<'_>) -> Result<Exit, String> {
        plan.benches.iter().try_for_each(|bench| bench.check())?;
        self.check(&plan.methods.0)?;
        let host = Host::look(COMMIT);
        let entrants = self.entrants(&host, plan)?;
        check_memory(&entrants)?;
        let history = match plan.history {
            Some((args, tape)) => args
                .open(entrants.len(), self.json.as_deref())?
                .map(|file| (file, tape)),
            None => None,
        };
        let most = self.threads.0.iter().max().map_or(1, |&n| n as usize);
        let mut opened = Opened::open(&host, &self.pin, most, self.json.as_ref())?;
        let mut runs = self.measure(&mut opened.rig, entrants)?;
        if let Some((file, tape)) = history {
            file.deliver(tape, &mut runs)?;
        }
        // A wrong run with a boundary that is too small is a result, not a failure.
        let wrong = |run: &Run| !run.correct && !run.is_no_longer_correct();
        let wrong = runs.iter().any(wrong);
        opened.deliver(&host, runs, wrong, table::ordered::of)
    }

    fn check(&self, methods: &[Entry]) -> Result<(), String> {
        for &threads in &self.threads.0 {
            let too_few = |entry: &&Entry| (threads as usize) < entry.method.least_threads(1);
            if let Some(entry) = methods.iter().find(too_few) {
                return Err(format!(
                    "--threads {threads} leaves no client for {} beside its trustee; give at least 2",
                    entry.name()
                ));
            }
        }
        if self.boundary_scale.is_some() && !methods.iter().any(|entry| entry.has_boundary) {
            return Err(format!(
                "--boundary-scale scales the boundary of Ordo clocks, and none of {} uses one; name a \
                 method that does, or leave out --boundary-scale",
                names(methods.iter().map(|entry| &entry.method))
            ));
        }
        Ok(())
    }

    /// Returns all contenders: a method with a boundary once for each scale, one with a window once for
    /// each window, the others once.
    fn entrants(&self, host: &Host, plan: &Plan<'_>) -> Result<Vec<Entrant>, String> {
        let scales = self.boundary_scale.as_ref();
        let scales = scales.map_or(&[Scale::ONE][..], |scales| &scales.0);
        let mut entrants = Vec::new();
        for &threads in &self.threads.0 {
            let placement = host.place(&self.pin, threads as usize)?;
            for &bench in plan.benches {
                for &Entry {
                    method,
                    has_boundary,
                    ..
                } in &plan.methods.0
                {
                    let scales = match has_boundary {
                        true => scales,
                        false => &[Scale::ONE],
                    };
                    // One request at a time, unless the method has the window that is asked for.
                    let windows = plan.windows.iter();
                    let mut windows: Vec<usize> = windows
                        .map(|&asked| method.window(asked as usize))
                        .collect();
                    windows.dedup();
                    let each = |&window| scales.iter().map(move |&scale| (window, scale));
                    entrants.extend(
                        windows
                            .iter()
                            .flat_map(each)
                            .map(|(window, scale)| Entrant {
                                spec: Spec { bench, scale },
                                method,
                                point: self.point(threads as usize, window, &placement),
                                notes: placement.notes().to_vec(),
                            }),
                    );
                }
            }
        }
        Ok(entrants)
    }

    fn point(&self, threads: usize, window: usize, placement: &Placement) -> Point {
        Point {
            threads,
            servers: 1,
            // The whole structure counts as one object.
            vars: 1,
            window,
            load: None,
            lines: Default::default(),
            fibres: 0,
            choice: Choice::Uniform,
            seed: self.seed,
            placement: placement.cpus().into(),
        }
    }

    fn measure(&self, rig: &mut Rig, entrants: Vec<Entrant>) -> Result<Vec<Run>, String> {
        let timing = Timing::of(Duration::from_secs_f64(self.secs));
        let slices = entrants.len() as u64 * (self.samples + 1);
        let bar = output::progress(slices, timing.whole().mul_f64(slices as f64));
        bar.set_message("setting up");
        let mut contest = Contest::default();
        for entrant in entrants {
            if let Err(sentence) = contest.add(entrant, &rig.setup_limit(None))
                && !rig.is_interrupted()
            {
                return Err(sentence);
            }
        }
        bar.set_message("warming up");
        let warm = timing.sample.min(Duration::from_millis(100));
        contest.warm_up(rig, warm, || bar.inc(1));
        bar.set_message("measuring");
        for _ in 0..self.samples {
            if !contest.round(rig, timing, None, || bar.inc(1)) {
                break;
            }
        }
        bar.finish_and_clear();
        Ok(contest.finish(rig, timing))
    }
}
