//! `corelay bench cycle`, `yield`, `churn`, `locality` and `transfer`: the benchmarks of fibres.

use super::common::{Listed, Opened};
use crate::cli::list::{self, List, Numbers, number, secs};
use corelay_lab_bench::fibres::method::{METHODS, Method};
use corelay_lab_bench::fibres::session::{Item, Session};
use corelay_lab_bench::fibres::spec::{
    Bench, Flavour, Length, MAX_FIBRES, MAX_PROCESSORS, RING, Spec,
};
use corelay_lab_compare::COMMIT;
use corelay_lab_measure::host::Host;
use corelay_lab_measure::measure::memory::available_bytes;
use corelay_lab_measure::schema::Run;
use corelay_lab_report::exit::Exit;
use corelay_lab_report::output;
use corelay_lab_report::table;
use corelay_topology::Order;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// The flags that all five benchmarks share.
#[derive(Debug, clap::Args)]
struct Common {
    /// Runtimes whose fibres are measured, or `all`
    #[arg(long, value_name = "LIST", default_value = "all", value_parser = methods, help = method_help())]
    method: Methods,

    /// Processors; `cpus` is the number of usable CPUs
    #[arg(long, allow_negative_numbers = true, value_name = "LIST", default_value = "cpus", value_parser = threads)]
    threads: List,

    /// Samples of each contender
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 3,
          value_parser = number(1..=100_000))]
    samples: u64,

    /// CPUs that processors are pinned to: fill-node, cores-first, sockets, none, or CPUs such as 0,2-5
    #[arg(long, value_name = "ORDER", default_value_t = Order::FillNode)]
    pin: Order,

    /// Seed of the random choices
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 1,
          value_parser = number(0..=u64::MAX))]
    seed: u64,

    /// Write the results as JSON to a file; `-` prints them instead of the table
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// The flag of the benchmarks whose fibres can note their migrations.
#[derive(Clone, Copy, Debug, clap::Args)]
struct Chains {
    /// Count chains of migrations, each within 100 µs of the one before (corelay's fibres only; takes a little of each operation)
    #[arg(long)]
    chains: bool,
}

/// The length of a sample, for the benchmarks whose samples end after a time.
#[derive(Debug, clap::Args)]
struct Timed {
    /// Length of a sample in seconds; fractions are allowed
    #[arg(long, allow_negative_numbers = true, value_name = "S", default_value = "5", value_parser = secs)]
    secs: f64,
}

/// Rings of 5 fibres: each wakes the next, then waits to be woken
#[derive(Debug, clap::Args)]
pub(super) struct Cycle {
    /// Rings: `hi` is 100 for each processor, `lo` is 1 for each
    #[arg(long, value_name = "LIST", default_value = "hi", value_parser = counts)]
    fibres: Counts,

    #[command(flatten)]
    timed: Timed,

    #[command(flatten)]
    chains: Chains,

    #[command(flatten)]
    common: Common,
}

/// All fibres yield in a loop
#[derive(Debug, clap::Args)]
pub(super) struct Yield {
    /// Fibres: `hi` is 100 for each processor, `lo` is 1 for each
    #[arg(long, value_name = "LIST", default_value = "hi", value_parser = counts)]
    fibres: Counts,

    #[command(flatten)]
    timed: Timed,

    #[command(flatten)]
    chains: Chains,

    #[command(flatten)]
    common: Common,
}

/// Each fibre releases, then acquires, a counting semaphore chosen at random
#[derive(Debug, clap::Args)]
pub(super) struct Churn {
    /// Fibres: `hi` is 100 for each processor, `lo` is 2 for each
    #[arg(long, value_name = "LIST", default_value = "hi", value_parser = counts)]
    fibres: Counts,

    /// Semaphores [default: half as many as fibres]
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = number(1..=MAX_FIBRES as u64))]
    spots: Option<u64>,

    #[command(flatten)]
    timed: Timed,

    #[command(flatten)]
    common: Common,
}

/// Each fibre touches its array, then wakes the fibre that waits at a random spot and waits there itself
#[derive(Debug, clap::Args)]
pub(super) struct Locality {
    /// Fibres: `hi` is 100 for each processor
    #[arg(long, value_name = "LIST", default_value = "hi", value_parser = counts_but_lo)]
    fibres: Counts,

    /// Whether the woken fibre takes over the array of the fibre that woke it
    #[arg(long, value_name = "WHICH", default_value = "both")]
    share: Share,

    /// Spots at which fibres wait [default: one for each fibre, less one for each processor]
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = number(1..=MAX_FIBRES as u64))]
    spots: Option<u64>,

    /// Words of 64 bits in each array
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 2,
          value_parser = number(1..=1 << 30))]
    words: u64,

    /// Touches of the array in each pass
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 2,
          value_parser = number(0..=1 << 30))]
    touches: u64,

    #[command(flatten)]
    timed: Timed,

    #[command(flatten)]
    chains: Chains,

    #[command(flatten)]
    common: Common,
}

/// A leader spins until all other fibres have seen it, then another fibre leads
///
/// If a leader makes no progress for 5 seconds, the run did not complete, and the exit code is 1.
#[derive(Debug, clap::Args)]
pub(super) struct Transfer {
    /// Fibres: the leader and those that wait for it
    #[arg(long, value_name = "LIST", default_value = "8", value_parser = numbers)]
    fibres: Counts,

    /// Whether fibres that have seen the leader wait on a semaphore (park), or yield
    #[arg(long, value_name = "WHICH", default_value = "both")]
    flavour: Flavours,

    /// Leaders in a sample
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 500,
          value_parser = number(1..=1 << 40))]
    iterations: u64,

    /// Ignored with a note: a sample ends after --iterations leaders
    #[arg(long, allow_negative_numbers = true, value_name = "S", value_parser = secs)]
    secs: Option<f64>,

    #[command(flatten)]
    common: Common,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Share {
    On,
    Off,
    Both,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Flavours {
    Park,
    Yield,
    Both,
}

#[derive(Clone, Debug)]
struct Methods(Vec<Method>);

fn method_help() -> String {
    let names: Vec<&str> = METHODS.iter().map(|method| method.name()).collect();
    format!(
        "Runtimes whose fibres are measured: {}; or `all`",
        names.join(", ")
    )
}

pub(super) fn listed() -> Vec<Listed> {
    let listed = |method: &Method| Listed {
        name: method.name(),
        what: method.what(),
        default: true,
        compared: false,
    };
    METHODS.iter().map(listed).collect()
}

fn methods(text: &str) -> Result<Methods, String> {
    let name_of = |method: &Method| method.name().to_owned();
    list::named(text, &METHODS, name_of, Method::named).map(Methods)
}

fn threads(text: &str) -> Result<List, String> {
    let cpus = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let word = Some(("cpus", cpus.min(MAX_PROCESSORS as u64)));
    let bounds = 1..=MAX_PROCESSORS as u64;
    Numbers { bounds, word }.list(text)
}

/// A number of fibres, as `--fibres` gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Count {
    /// 100 fibres for each processor.
    Hi,
    /// A few fibres for each processor; the benchmark says how many.
    Lo,
    /// A fixed number of fibres.
    Of(usize),
}

#[derive(Clone, Debug)]
struct Counts(Vec<Count>);

/// Parses a list of `words` and numbers for `--fibres`.
fn read_counts(text: &str, words: &[(&str, Count)]) -> Result<Counts, String> {
    let mut counts = Vec::new();
    for item in text.split(',').map(str::trim) {
        if let Some((_, count)) = words.iter().find(|(word, _)| *word == item) {
            counts.push(*count);
            continue;
        }
        let (bounds, word) = (1..=MAX_FIBRES as u64, None);
        let List(numbers) = Numbers { bounds, word }.list(item)?;
        counts.extend(numbers.into_iter().map(|n| Count::Of(n as usize)));
    }
    let mut seen = Vec::new();
    counts.retain(|count| !seen.contains(count) && (seen.push(*count), true).1);
    Ok(Counts(counts))
}

fn counts(text: &str) -> Result<Counts, String> {
    read_counts(text, &[("hi", Count::Hi), ("lo", Count::Lo)])
}

fn counts_but_lo(text: &str) -> Result<Counts, String> {
    read_counts(text, &[("hi", Count::Hi)])
}

fn numbers(text: &str) -> Result<Counts, String> {
    read_counts(text, &[])
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hi => f.write_str("hi"),
            Self::Lo => f.write_str("lo"),
            Self::Of(fibres) => write!(f, "{fibres}"),
        }
    }
}

impl Count {
    /// Returns the number of fibres on `processors` processors. [`Count::Lo`] means `lo` for each.
    fn resolve(self, processors: usize, lo: usize) -> usize {
        match self {
            Self::Hi => 100 * processors,
            Self::Lo => lo * processors,
            Self::Of(fibres) => fibres,
        }
    }
}

impl Timed {
    fn length(&self) -> Length {
        Length::Time(Duration::from_secs_f64(self.secs))
    }
}

pub(super) fn cycle(args: &Cycle) -> Result<Exit, String> {
    let benches = |_, _| vec![Bench::Cycle { ring: RING }];
    let length = args.timed.length();
    args.common
        .run(&args.fibres, 1, length, benches, None, args.chains.chains)
}

pub(super) fn yield_(args: &Yield) -> Result<Exit, String> {
    let benches = |_, _| vec![Bench::Yield];
    let length = args.timed.length();
    args.common
        .run(&args.fibres, 1, length, benches, None, args.chains.chains)
}

pub(super) fn churn(args: &Churn) -> Result<Exit, String> {
    let benches = |processors, fibres: usize| {
        // Half, but few enough that a fibre is left for each processor. The spec's check decides.
        let usual = (fibres / 2).min(fibres.saturating_sub(processors)).max(1);
        let spots = args.spots.map_or(usual, |spots| spots as usize);
        vec![Bench::Churn { spots }]
    };
    let length = args.timed.length();
    args.common
        .run(&args.fibres, 2, length, benches, None, false)
}

pub(super) fn locality(args: &Locality) -> Result<Exit, String> {
    let shares: &[bool] = match args.share {
        Share::On => &[true],
        Share::Off => &[false],
        Share::Both => &[true, false],
    };
    let benches = |processors, fibres: usize| {
        let usual = fibres.saturating_sub(processors).max(1);
        let bench = |&share| Bench::Locality {
            spots: args.spots.map_or(usual, |spots| spots as usize),
            words: args.words as usize,
            touches: args.touches as usize,
            share,
        };
        shares.iter().map(bench).collect()
    };
    let length = args.timed.length();
    args.common
        .run(&args.fibres, 1, length, benches, None, args.chains.chains)
}

pub(super) fn transfer(args: &Transfer) -> Result<Exit, String> {
    let flavours: &[Flavour] = match args.flavour {
        Flavours::Park => &[Flavour::Park],
        Flavours::Yield => &[Flavour::Yield],
        Flavours::Both => &[Flavour::Park, Flavour::Yield],
    };
    let benches = |_, _| {
        let bench = |&flavour| Bench::Transfer { flavour };
        flavours.iter().map(bench).collect()
    };
    let length = Length::Iterations(args.iterations);
    let note = args.secs.map(|_| {
        "--secs is ignored: a sample of transfer ends after --iterations leaders".to_owned()
    });
    args.common
        .run(&args.fibres, 1, length, benches, note, false)
}

impl Common {
    fn run(
        &self,
        counts: &Counts,
        lo: usize,
        length: Length,
        benches: impl Fn(usize, usize) -> Vec<Bench>,
        note: Option<String>,
        chains: bool,
    ) -> Result<Exit, String> {
        let mut specs = Vec::new();
        for &processors in &self.threads.0 {
            let processors = processors as usize;
            for count in &counts.0 {
                let fibres = count.resolve(processors, lo);
                let spec = |bench| Spec {
                    bench,
                    processors,
                    fibres,
                    length,
                    seed: self.seed,
                    chains,
                };
                let specs_of = benches(processors, fibres).into_iter().map(spec);
                specs.extend(specs_of.map(|spec| (spec, count.to_string())));
            }
        }
        let available = available_bytes();
        for (spec, _) in &specs {
            spec.check()?;
            spec.check_memory(available)?;
        }
        let host = Host::look(COMMIT);
        let mut items = Vec::new();
        for (spec, size) in specs {
            let placement = host.place(&self.pin, spec.processors)?;
            let notes = placement.notes().iter().cloned().chain(note.clone());
            let item = |&method: &Method| Item {
                method,
                spec,
                size: size.clone(),
                placement: placement.cpus().to_vec(),
                notes: notes.clone().collect(),
            };
            items.extend(self.method.0.iter().map(item));
        }
        self.measure(&host, items, length)
    }

    fn measure(&self, host: &Host, items: Vec<Item>, length: Length) -> Result<Exit, String> {
        // Only the rig's probe is used. Clusters and other runtimes bring their own threads.
        let mut bench = Opened::open(host, &self.pin, 1, self.json.as_ref())?;
        let rig = &mut bench.rig;
        let samples = items.len() as u64 * self.samples;
        let bar = output::progress(samples, expected(length).mul_f64(samples as f64));
        bar.set_message("preparing");
        let mut session = Session::new(items);
        bar.set_message("measuring");
        for _ in 0..self.samples {
            if !session.round(rig, || bar.inc(1)) {
                break;
            }
        }
        bar.finish_and_clear();
        let runs = session.finish(rig);
        let is_wrong = |run: &Run| !run.correct || !table::fibres::completed(run);
        let wrong = runs.iter().any(is_wrong);
        bench.deliver(host, runs, wrong, table::fibres::of)
    }
}

/// Returns the expected length of a sample, for the progress bar. It is a guess if the sample ends
/// after a number of operations.
fn expected(length: Length) -> Duration {
    match length {
        Length::Time(time) => time,
        Length::Iterations(_) => Duration::from_secs(1),
    }
}
