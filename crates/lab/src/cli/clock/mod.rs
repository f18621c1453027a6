//! `corelay clock`: checks whether this machine's counters can order events of different CPUs, and
//! measures how far apart they are.

mod heat;
mod history;
mod text;

use crate::cli::list::number;
use corelay::clock::{CalibrateError, Calibration, Calibrator, Clock, Fitness, Ordo};
use corelay_lab_bench::ordered::clocks::offsets_ns;
use corelay_lab_compare::COMMIT;
use corelay_lab_measure::host::Host;
use corelay_lab_measure::machine;
use corelay_lab_measure::measure::reading::{self, ReadCost};
use corelay_lab_report::exit::Exit;
use corelay_lab_report::output;
use corelay_lab_report::units::Units;
use corelay_topology::CpuSet;
use history::StoredHistory;
use serde::Serialize;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

/// Show this machine's clock: whether it can order events, boundary, offsets, history, costs
///
/// For every ordered pair of CPUs, many rounds find the smallest difference of their counters,
/// which is an upper bound of the offset between them. The boundary is the largest of these bounds
/// and a margin; times of two CPUs that differ by no more are uncertain. Earlier calibrations of
/// this boot may raise the boundary, but never lower it. Each pair is looked at several times. On a
/// host that moves virtual CPUs, an offset may change between two looks; then the boundary is
/// widened by as much. If the counters cannot be a clock, or offsets move too far, the command says
/// why and ends with exit code 2. Beside nanoseconds stand ticks of the counter, which are exact, and
/// cycles of a core, derived from the rate that the kernel reports.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,

    /// Write a heat map of the offsets to this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Measure only these CPUs [default: all that this process may use]
    #[arg(long, allow_negative_numbers = true, value_name = "LIST")]
    cpus: Option<CpuSet>,

    /// Rounds for each pair of CPUs
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 100_000,
          value_parser = number(1..=100_000_000))]
    rounds: u64,

    /// Looks at each pair; its rounds are divided among them
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 8,
          value_parser = number(1..=1_000))]
    looks: u64,

    /// Seconds over which the looks are spread: a host may move CPUs every few seconds
    #[arg(long, allow_negative_numbers = true, value_name = "SECONDS", default_value_t = 2,
          value_parser = number(0..=86_400))]
    over: u64,

    /// Measure few pairs and add up their offsets: faster for hundreds of CPUs, but a wider boundary
    #[arg(long)]
    composed: bool,

    /// Keep the history in this file [default: one in the user's state folder]
    #[arg(long, value_name = "FILE", conflicts_with = "forget")]
    history: Option<PathBuf>,

    /// Delete the history in the user's state folder, and begin a new one
    #[arg(long)]
    forget: bool,
}

/// Longest usual duration of a round, between CPUs that are far apart.
const ROUND: Duration = Duration::from_nanos(600);

/// Steps of the progress bar.
const STEPS: u64 = 1_000;

/// Everything that `corelay clock` measured or looked up.
struct Findings {
    fitness: Fitness,
    /// The clock of `found`, its boundary raised by the history.
    clock: Ordo,
    found: Calibration,
    history: StoredHistory,
    /// Costs of reading the time in several ways.
    costs: Vec<ReadCost>,
    /// The rate of a core in GHz, if the kernel reports it.
    core_ghz: Option<f64>,
}

pub(crate) fn run(args: &Args) -> Result<Exit, String> {
    let host = Host::look(COMMIT);
    let cpus = args.chosen(host.topology.usable())?;
    let svg = args.svg.as_deref();
    let svg = svg.map(|path| output::open_beside("--svg", path).map(|open| (open, path)));
    let svg = svg.transpose()?;
    let fitness = Fitness::probe();
    fitness.verdict().map_err(|unfit| unfit.to_string())?;
    let mut history = StoredHistory::open(args.history.clone(), args.forget)?;
    let found = match args.calibrate(&host, &cpus) {
        Ok(found) => found,
        Err(CalibrateError::Stopped) => return Ok(Exit::Interrupted),
        Err(error) => return Err(error.to_string()),
    };
    let clock = history.clock(found.clone());
    history.save()?;
    let findings = Findings {
        costs: reading::costs(Some(&clock)),
        core_ghz: machine::clock_ghz(),
        fitness,
        clock,
        found,
        history,
    };
    if let Some((target, path)) = svg {
        let picture = heat::svg(&findings.found);
        let written = target.write(picture.as_bytes());
        written.map_err(|error| output::unwritable_file("--svg", path, &error))?;
    }
    output::say(&match args.json {
        true => findings.json()?,
        false => findings.text(),
    })?;
    Ok(if host.is_interrupted() {
        Exit::Interrupted
    } else {
        Exit::Fine
    })
}

impl Args {
    /// Checks and returns the CPUs that `--cpus` names, if it is given.
    fn chosen(&self, usable: &CpuSet) -> Result<Option<CpuSet>, String> {
        let Some(cpus) = &self.cpus else {
            return Ok(None);
        };
        if let Some(other) = cpus.difference(usable).first() {
            return Err(format!(
                "--cpus {cpus}: this process may not use CPU {other}, only {usable}"
            ));
        }
        if cpus.len() < 2 {
            return Err(format!(
                "--cpus {cpus}: an offset takes two CPUs; name two or more"
            ));
        }
        Ok(Some(cpus.clone()))
    }

    fn calibrate(&self, host: &Host, cpus: &Option<CpuSet>) -> Result<Calibration, CalibrateError> {
        let over = Duration::from_secs(self.over);
        let mut calibrator = Calibrator::new().rounds(self.rounds).over(over);
        calibrator = calibrator.looks(u32::try_from(self.looks).unwrap_or(u32::MAX));
        if self.rounds > Calibrator::ROUNDS {
            // The calibrator's own time limit is meant for its own number of rounds.
            let rounds = u32::try_from(self.rounds).unwrap_or(u32::MAX);
            calibrator = calibrator.at_most(ROUND.saturating_mul(rounds));
        }
        if let Some(cpus) = cpus {
            calibrator = calibrator.cpus(cpus.clone());
        }
        let n = cpus
            .as_ref()
            .map_or(host.topology.cpus().len(), CpuSet::len);
        let mut phases = n;
        if self.composed {
            calibrator = calibrator.composed();
            phases = n.next_power_of_two().trailing_zeros() as usize;
        }
        let expected = ROUND.as_secs_f64() * self.rounds as f64 * phases as f64;
        let bar = output::progress(STEPS, over + Duration::from_secs_f64(expected));
        bar.set_message("measuring");
        let found = calibrator.run_with(|share| {
            bar.set_position((share * STEPS as f64) as u64);
            match host.is_interrupted() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        bar.finish_and_clear();
        found
    }
}

/// The output of `--json`.
#[derive(Serialize)]
struct Output<'a> {
    schema: u32,
    fitness: Verdict<'a>,
    /// The boundary in use: the measured one, or the one to which the history has raised it.
    boundary_ns: f64,
    boundary_ticks: u64,
    /// The boundary that was measured now, before the history raised it.
    measured_boundary_ns: f64,
    raised_by_history: bool,
    largest: Largest,
    step_ns: f64,
    ticks_per_ns: f64,
    /// The rate of a core in GHz, as the kernel reports it; `null` if it does not.
    core_ghz: Option<f64>,
    /// The share by which nanoseconds may be wrong, 0..1.
    rate_error: f64,
    composed: bool,
    looks: u32,
    /// Pairs whose offset changed between two looks, and by how much.
    moved: Vec<Moved>,
    took_s: f64,
    cpus: &'a [usize],
    /// Upper bounds of the offsets from the row's CPU to the column's; `null` on the diagonal.
    offsets_ns: Vec<Vec<Option<f64>>>,
    costs: &'a [ReadCost],
    history: history::Output<'a>,
}

/// Whether the counters can order events, and where they come from.
#[derive(Serialize)]
struct Verdict<'a> {
    fit: bool,
    source: String,
    clock_source: Option<&'a str>,
    hypervisor: Option<&'a str>,
}

/// A pair of CPUs whose offset changed between two looks.
#[derive(Serialize)]
struct Moved {
    from: usize,
    to: usize,
    ns: f64,
    /// Whether noise cannot explain the change.
    certain: bool,
}

/// The largest offset, and its pair of CPUs.
#[derive(Serialize)]
struct Largest {
    from: usize,
    to: usize,
    ns: f64,
}

impl Findings {
    fn ns(&self, ticks: f64) -> f64 {
        self.found.rate.nanoseconds(ticks).value
    }

    /// The rates of the counter, as measured, and of a core, as the kernel reports it.
    fn units(&self) -> Units {
        Units {
            ticks_per_ns: Some(self.found.rate.ticks_per_ns),
            core_ghz: self.core_ghz,
        }
    }

    fn largest(&self) -> Largest {
        let largest = self.found.offsets.largest();
        let (from, to, ticks) = largest.expect("a calibration has at least one pair");
        let ns = self.ns(ticks as f64);
        Largest { from, to, ns }
    }

    /// Returns the pairs whose offset changed, the largest change first.
    fn moved(&self) -> Vec<Moved> {
        let mut moved = self.found.moved.clone();
        moved.sort_by_key(|pair| std::cmp::Reverse(pair.ticks));
        let moved = moved.into_iter().map(|pair| Moved {
            from: pair.from,
            to: pair.to,
            ns: self.ns(pair.ticks as f64),
            certain: pair.certain,
        });
        moved.collect()
    }

    fn is_raised(&self) -> bool {
        self.clock.boundary() > self.found.boundary
    }

    fn json(&self) -> Result<String, String> {
        let fitness = &self.fitness;
        let cpus = self.found.offsets.cpus();
        let output = Output {
            schema: 1,
            fitness: Verdict {
                fit: fitness.verdict().is_ok(),
                source: fitness.source.to_string(),
                clock_source: fitness.clock_source.as_deref(),
                hypervisor: fitness.hypervisor.as_deref(),
            },
            boundary_ns: self.ns(self.clock.boundary() as f64),
            boundary_ticks: self.clock.boundary(),
            measured_boundary_ns: self.ns(self.found.boundary as f64),
            raised_by_history: self.is_raised(),
            largest: self.largest(),
            step_ns: self.ns(self.found.step as f64),
            ticks_per_ns: self.found.rate.ticks_per_ns,
            core_ghz: self.units().core_ghz,
            rate_error: self.found.rate.error,
            composed: self.found.composed,
            looks: self.found.looks,
            moved: self.moved(),
            took_s: self.found.took.as_secs_f64(),
            cpus,
            offsets_ns: offsets_ns(&self.found)
                .chunks(cpus.len())
                .map(<[_]>::to_vec)
                .collect(),
            costs: &self.costs,
            history: self.history.output(),
        };
        let json = serde_json::to_string_pretty(&output).map_err(|error| error.to_string())?;
        Ok(json + "\n")
    }
}
