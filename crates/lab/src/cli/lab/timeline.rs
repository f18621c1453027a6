//! `corelay lab timeline`: draws when each thread works on which part.

use super::list::{MOST_KEYS, check_memory, iterations};
use super::step::{INTERRUPTED, Size, StepFlags};
use crate::cli::list::number;
use corelay_lab_compare::COMMIT;
use corelay_lab_course::list::ladder::PARTS_OF_A_THREAD;
use corelay_lab_course::shown::Shown;
use corelay_lab_course::timeline::{Plan, QUESTION, Traced, shown};
use corelay_lab_measure::host::Host;
use corelay_lab_report::exit::Exit;
use corelay_lab_report::output::{self, Target};
use corelay_lab_report::plot::Medium;
use corelay_topology::Order;
use std::path::{Path, PathBuf};

/// The default of `--events`: the spans that each thread keeps.
const EVENTS: u64 = 16_383;

/// Returns the usual number of keys that each thread inserts. A run is then much longer than the
/// milliseconds in which the neighbour, a thread on the first CPU, works or sleeps.
const fn usual_keys(size: Size) -> u64 {
    match size {
        Size::Usual => 4_000_000,
        Size::Small => 40_000,
    }
}

/// Step 4: draw which thread inserts which part of the keys when, and waits for which other
///
/// Runs the ladder's rung `padded` twice: with as many parts as threads, and with more. Writes a
/// picture of each run (timeline-1.svg, timeline-2.svg) and its events for the Perfetto UI
/// (timeline-1.json, timeline-2.json) into a folder.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Args {
    /// Threads [default: the number of CPUs, at most 16]
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = number(1..=1024))]
    threads: Option<u64>,

    /// Keys that each thread inserts
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = usual_keys(Size::Usual),
          value_parser = iterations)]
    iterations: u64,

    /// Parts of the second run, at least one for each thread [default: 4 for each thread]
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = number(1..=MOST_KEYS))]
    parts: Option<u64>,

    /// Last spans that each thread keeps; rounded up to one less than a power of two
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = EVENTS,
          value_parser = number(16..=1 << 20))]
    events: u64,

    /// Run without the neighbour, a thread that takes the first CPU half of the time
    #[arg(long)]
    no_neighbour: bool,

    /// Folder for the pictures and the events; created if missing
    #[arg(long, value_name = "DIR", default_value = "corelay-report")]
    out: PathBuf,

    #[command(flatten)]
    flags: StepFlags,
}

/// The most threads if `--threads` is not given. A picture can show that many.
const MAX_DEFAULT_THREADS: usize = 16;

pub(super) fn run(args: &Args) -> Result<Exit, String> {
    let host = Host::look(COMMIT);
    let plan = args.plan(&host)?;
    output::folder(&args.out)?;
    let files = Files::open(&args.out)?;
    let guess = args.flags.ask(QUESTION)?;
    let Some(traced) = trace(&plan, &host)? else {
        return Ok(Exit::Interrupted);
    };
    let [first, second] = files.events;
    let written = [first, second]
        .into_iter()
        .zip(&traced)
        .try_for_each(|(target, traced)| target.write_with(|out| traced.write_json(out)));
    let shown = shown(&plan, traced, guess);
    let pictures = shown.pictures().zip(files.pictures);
    let drawn = |(picture, target): (&corelay_lab_course::shown::Picture, Target)| {
        target.write((picture.draw)(Medium::File).as_bytes())
    };
    written
        .and_then(|()| {
            let mut drawn = pictures.map(drawn);
            drawn.try_for_each(|written| written)
        })
        .map_err(|error| output::unwritable(&args.out, &error))?;
    let exit = args.flags.print(&shown)?;
    if !args.flags.json {
        output::say(&format!(
            "\nThe pictures and the events are in {}; open timeline-1.json at ui.perfetto.dev\n",
            args.out.display()
        ))?;
    }
    Ok(exit)
}

/// Runs the step with its defaults and without files, as a part of the whole course.
pub(super) fn step(host: &Host, flags: &StepFlags, size: Size) -> Result<Shown, String> {
    let args = Args {
        threads: None,
        iterations: usual_keys(size),
        parts: None,
        events: EVENTS,
        no_neighbour: false,
        out: PathBuf::new(),
        flags: flags.clone(),
    };
    let plan = args.plan(host)?;
    let guess = flags.ask(QUESTION)?;
    let traced = trace(&plan, host)?.ok_or_else(|| INTERRUPTED.to_owned())?;
    Ok(shown(&plan, traced, guess))
}

fn trace(plan: &Plan, host: &Host) -> Result<Option<[Traced; 2]>, String> {
    let placement = host.place(&Order::default(), plan.threads)?;
    plan.trace(placement.cpus(), host.interrupted())
}

/// The four files of the step, opened before it runs.
struct Files {
    events: [Target; 2],
    pictures: [Target; 2],
}

impl Files {
    fn open(folder: &Path) -> Result<Self, String> {
        let open = |name: &str| {
            let target = Target::open(&folder.join(name));
            target.map_err(|error| output::unwritable(folder, &error))
        };
        Ok(Self {
            events: [open("timeline-1.json")?, open("timeline-2.json")?],
            pictures: [open("timeline-1.svg")?, open("timeline-2.svg")?],
        })
    }
}

impl Args {
    fn plan(&self, host: &Host) -> Result<Plan, String> {
        let threads = self
            .threads
            .map_or(host.machine.cpus.min(MAX_DEFAULT_THREADS), |n| n as usize);
        let parts = self
            .parts
            .map_or(PARTS_OF_A_THREAD * threads, |n| n as usize);
        let keys = threads as u64 * self.iterations;
        if parts < threads {
            return Err(format!(
                "--parts {parts} is less than --threads {threads}; give at least {threads}, so that each \
                 thread has work"
            ));
        }
        if parts as u64 > keys {
            return Err(format!(
                "--parts {parts} is more than the {keys} keys; give at most {keys}"
            ));
        }
        check_memory(keys, self.iterations)?;
        Ok(Plan {
            threads,
            share: self.iterations as usize,
            parts,
            events: self.events as usize,
            neighbour: !self.no_neighbour,
        })
    }
}
