//! The parts that the commands of `corelay bench` share: flags, measuring, output.

use crate::cli::list::{List, Numbers, number, secs};
use corelay_lab_measure::host::Host;
use corelay_lab_measure::measure::memory::available_bytes;
use corelay_lab_measure::measure::plan::{self, Item};
use corelay_lab_measure::measure::rig::Rig;
use corelay_lab_measure::measure::session::{Session, Timing};
use corelay_lab_measure::method::{Kind, Method};
use corelay_lab_measure::schema::{Results, Run};
use corelay_lab_measure::workload::operation::Workload;
use corelay_lab_measure::workload::point::{MAX_VARS, Point};
use corelay_lab_measure::workload::random::Choice;
use corelay_lab_report::exit::{self, Exit};
use corelay_lab_report::output::{self, Target};
use corelay_topology::Order;
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

/// The largest number that `--threads` takes. A larger one is a typing error.
const MAX_THREADS: u64 = 1024;

/// The flags of every workload that measures one operation on shared objects for a time.
#[derive(Debug, clap::Args)]
pub(super) struct Common {
    #[command(flatten)]
    pub(super) team: Team,

    /// Length of a sample in seconds; fractions are allowed
    #[arg(long, allow_negative_numbers = true, value_name = "S", default_value = "0.1", value_parser = secs)]
    secs: f64,

    /// Distribution of the chosen variables, or of a structure's keys: `uniform`, or `zipf:θ` such as `zipf:0.99`
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
}

/// The flags of every workload that shares objects by a method of the catalogue.
#[derive(Debug, clap::Args)]
pub(super) struct Team {
    /// All threads, servers and actors included; `cpus` is the number of usable CPUs (at least 2)
    #[arg(long, allow_negative_numbers = true, value_name = "LIST", default_value = "cpus", value_parser = threads)]
    threads: List,

    /// Trustees (servers) of dedicated delegation, among the threads; other methods ignore it
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 1,
          value_parser = number(1..=MAX_THREADS - 1))]
    servers: u64,

    /// Requests in flight per client and trustee, for methods that have no window of their own
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 256,
          value_parser = number(1..=65_536))]
    window: u64,

    /// Samples of each contender
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 10,
          value_parser = number(1..=100_000))]
    samples: u64,

    /// CPUs that threads are pinned to, servers first: cores-first, fill-node, sockets, none, or CPUs such as 0,2-5
    #[arg(long, value_name = "ORDER", default_value_t)]
    pin: Order,

    /// Write the results as JSON to a file; `-` prints them instead of the table
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
}

/// Whether a run has a wrong result.
pub(super) fn has_wrong(runs: &[Run]) -> bool {
    runs.iter().any(|run| !run.correct)
}

/// Parses `--threads`.
pub(super) fn threads(text: &str) -> Result<List, String> {
    let cpus = std::thread::available_parallelism().map_or(2, |n| n.get().max(2) as u64);
    let word = Some(("cpus", cpus.min(MAX_THREADS)));
    Numbers {
        bounds: 1..=MAX_THREADS,
        word,
    }
    .list(text)
}

/// Parses `--vars`.
pub(crate) fn vars(text: &str) -> Result<List, String> {
    Numbers {
        bounds: 1..=MAX_VARS,
        word: None,
    }
    .list(text)
}

/// Joins the methods' names with commas.
pub(super) fn names<'a, W: 'a>(methods: impl Iterator<Item = &'a Method<W>>) -> String {
    methods.map(Method::name).collect::<Vec<_>>().join(", ")
}

/// A workload and its methods, in the output of `bench --list`.
#[derive(Serialize)]
pub(super) struct Catalogue {
    pub(super) workload: String,
    pub(super) methods: Vec<Listed>,
}

/// A method in the output of `bench --list`.
#[derive(Serialize)]
pub(super) struct Listed {
    pub(super) name: &'static str,
    /// A clause that describes the method.
    pub(super) what: &'static str,
    /// Whether it is measured if `--method` is not given.
    pub(super) default: bool,
    /// Whether `corelay compare` measures it.
    pub(super) compared: bool,
}

impl Catalogue {
    /// Formats the workload as a line, and its methods as lines below it.
    pub(super) fn text(&self) -> String {
        let widest = self.methods.iter().map(|method| method.name.len()).max();
        let width = widest.unwrap_or(0);
        let line = |method: &Listed| format!("  {:width$}  {}\n", method.name, method.what);
        let lines: String = self.methods.iter().map(line).collect();
        format!("{}\n{lines}", self.workload)
    }
}

/// A point of the sweep, and notes on its placement for the reader of its figures.
pub(super) struct NotedPoint {
    pub(super) point: Point,
    pub(super) notes: Vec<String>,
}

/// The rig and the results file of a command, both opened before it measures.
pub(super) struct Opened {
    pub(super) rig: Rig,
    target: Option<(Target, PathBuf)>,
}

impl Common {
    /// Returns the points to measure: each number of threads with each number of variables.
    pub(super) fn points(&self, host: &Host, vars: &List) -> Result<Vec<NotedPoint>, String> {
        let noted = |noted: NotedPoint| NotedPoint {
            point: Point {
                choice: self.dist,
                seed: self.seed,
                ..noted.point
            },
            ..noted
        };
        let points = self.team.points(host, &vars.0)?;
        Ok(points.into_iter().map(noted).collect())
    }

    /// Measures all items. Those that fit into memory together are sampled in turn.
    pub(super) fn measure<W: Workload>(
        &self,
        workload: W,
        rig: &mut Rig,
        items: Vec<Item<W>>,
    ) -> Result<Vec<Run>, String> {
        let timing = Timing::of(Duration::from_secs_f64(self.secs));
        self.team.measure(workload, timing, rig, items)
    }
}

impl Team {
    /// Checks that each number of threads leaves a client for each method.
    pub(super) fn check_threads<'a, W: 'a>(
        &self,
        methods: impl Iterator<Item = &'a Method<W>> + Clone,
    ) -> Result<(), String> {
        let servers = self.servers as usize;
        for &threads in &self.threads.0 {
            for method in methods.clone() {
                let least = method.least_threads(servers);
                if threads as usize >= least {
                    continue;
                }
                let name = method.name();
                return Err(if method.kind() == Kind::Dedicated {
                    format!(
                        "--threads {threads} leaves no client for {name} beside --servers {servers}; \
                         give at least {least}"
                    )
                } else {
                    format!(
                        "--threads {threads} leaves no client for {name} beside its actor; give at least \
                         {least}"
                    )
                });
            }
        }
        Ok(())
    }

    /// Returns the points to measure: each number of threads with each number of variables.
    pub(super) fn points(&self, host: &Host, vars: &[u64]) -> Result<Vec<NotedPoint>, String> {
        let mut points = Vec::new();
        for &threads in &self.threads.0 {
            let placement = host.place(&self.pin, threads as usize)?;
            points.extend(vars.iter().map(|&vars| NotedPoint {
                point: Point {
                    threads: threads as usize,
                    servers: self.servers as usize,
                    vars,
                    window: self.window as usize,
                    load: None,
                    lines: Default::default(),
                    fibres: 0,
                    choice: Choice::Uniform,
                    seed: 1,
                    placement: placement.cpus().into(),
                },
                notes: placement.notes().to_vec(),
            }));
        }
        Ok(points)
    }

    /// Checks that each of `items` fits into memory, then opens the results file and the rig.
    pub(super) fn open<W>(&self, host: &Host, items: &[Item<W>]) -> Result<Opened, String> {
        let available = available_bytes();
        items
            .iter()
            .try_for_each(|item| item.check_memory(available))?;
        let most = self.threads.0.iter().max().map_or(1, |&n| n as usize);
        Opened::open(host, &self.pin, most, self.json.as_ref())
    }

    /// Measures all items. Those that fit into memory together are sampled in turn.
    pub(super) fn measure<W: Workload>(
        &self,
        workload: W,
        timing: Timing,
        rig: &mut Rig,
        items: Vec<Item<W>>,
    ) -> Result<Vec<Run>, String> {
        let waves = plan::waves(items, available_bytes());
        let slices = waves.iter().map(Vec::len).sum::<usize>() as u64 * (self.samples + 1);
        let expected = timing.whole().mul_f64(slices as f64);
        let bar = output::progress(slices, expected);
        let mut runs = Vec::new();
        for wave in waves {
            bar.set_message("setting up");
            let mut session = Session::of(workload);
            for item in wave {
                if let Err(sentence) = session.add(item, &rig.setup_limit(None))
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

impl Opened {
    /// Opens the results file, if there is one, then a rig for `threads` threads.
    pub(super) fn open(
        host: &Host,
        pin: &Order,
        threads: usize,
        json: Option<&PathBuf>,
    ) -> Result<Self, String> {
        let target = match json {
            Some(path) => {
                let opened = Target::open(path);
                let opened = opened.map_err(|e| output::unwritable_file("--json", path, &e))?;
                Some((opened, path.clone()))
            }
            None => None,
        };
        let rig = host.rig(pin, threads)?;
        Ok(Self { rig, target })
    }

    /// Prints the table and writes the file. Returns the exit code, which `wrong` makes
    /// [`Exit::Wrong`].
    pub(super) fn deliver(
        self,
        host: &Host,
        runs: Vec<Run>,
        wrong: bool,
        table: fn(&Results) -> String,
    ) -> Result<Exit, String> {
        let Self { mut rig, target } = self;
        rig.save();
        let results = host.results(&rig, runs);
        if !matches!(target, Some((Target::Stdout, _))) {
            output::say(&table(&results))?;
        }
        if let Some((target, path)) = target {
            let mut json = serde_json::to_string_pretty(&results).map_err(|e| e.to_string())?;
            json.push('\n');
            target
                .write(json.as_bytes())
                .map_err(|e| output::unwritable_file("--json", &path, &e))?;
        }
        Ok(exit::measured(&results, wrong, rig.is_interrupted()))
    }
}
