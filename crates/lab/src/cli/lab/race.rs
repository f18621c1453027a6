//! `corelay lab race`: several threads add to one number, and some updates are lost.

use super::step::{Size, StepFlags};
use crate::cli::list::{named, number};
use corelay_lab_compare::COMMIT;
use corelay_lab_course::race::measure::{Plan, measure};
use corelay_lab_course::race::{self, QUESTION, VARIANTS, Variant, show, window};
use corelay_lab_course::shown::Shown;
use corelay_lab_measure::host::Host;
use corelay_lab_measure::measure::cost;
use corelay_lab_report::exit::Exit;
use corelay_lab_report::output;
use corelay_topology::Order;
use std::fmt::Write;
use std::time::Duration;

/// The largest number that `--threads` takes. A larger one is a typing error.
const MAX_THREADS: u64 = 256;

/// The most updates of a thread in a round. They take some seconds.
const MAX_UPDATES: u64 = 1_000_000_000;

/// Rounds, in each of which every variant runs once: enough for quartiles.
const ROUNDS: usize = 9;

/// Updates of a thread in a round: 2 to 20 ms with two threads on the reference machine.
const UPDATES: u64 = 400_000;

/// Updates of a thread in a round on one CPU. There a thread loses updates only if the scheduler
/// stops it between its load and its store, so it has to run for several time slices of 3 to 10 ms.
const UPDATES_ON_ONE_CPU: u64 = 5_000_000;

/// Step 1: lose updates without a lock, and see what being right costs
///
/// Threads start at the same moment and add one to the same number: by a separate load and store,
/// under a mutex, under a spin lock, by compare-and-swap, by an atomic instruction, and delegated to
/// the thread that owns the number. The step counts the lost updates, and shows in the instructions
/// of this program where they are lost.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Threads that add to the number
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 2,
          value_parser = number(1..=MAX_THREADS))]
    threads: u64,

    /// Updates of each thread in a round [default: 400000, on one CPU 5000000]
    #[arg(long, allow_negative_numbers = true, value_name = "N",
          value_parser = number(1..=MAX_UPDATES))]
    updates: Option<u64>,

    /// Variants to run, of lost, mutex, spin, cas, atomic, delegated; or `all`
    #[arg(long, value_name = "LIST", default_value = "all", value_parser = variants)]
    variants: Variants,

    /// Print the source code of these variants instead of running them
    #[arg(long, value_name = "LIST", num_args = 0..=1, default_missing_value = "all",
          value_parser = variants, conflicts_with_all = ["json", "threads", "updates", "variants"])]
    source: Option<Variants>,

    #[command(flatten)]
    flags: StepFlags,
}

#[derive(Clone, Debug)]
struct Variants(Vec<Variant>);

fn variants(text: &str) -> Result<Variants, String> {
    let name_of = |variant: &Variant| variant.name.to_owned();
    named(text, &VARIANTS, name_of, race::named).map(Variants)
}

pub(super) fn run(args: &Args) -> Result<Exit, String> {
    if let Some(Variants(variants)) = &args.source {
        output::say(&sources(variants))?;
        return Ok(Exit::Fine);
    }
    let host = Host::look(COMMIT);
    let shown = args.shown(&host)?;
    let exit = args.flags.print(&shown)?;
    Ok(match exit {
        Exit::Fine if host.is_interrupted() => Exit::Interrupted,
        exit => exit,
    })
}

/// Runs the step with its defaults, as a part of the whole course.
pub(super) fn step(host: &Host, flags: &StepFlags, size: Size) -> Result<Shown, String> {
    let args = Args {
        threads: 2,
        updates: (size == Size::Small).then_some(10_000),
        variants: Variants(VARIANTS.to_vec()),
        source: None,
        flags: flags.clone(),
    };
    args.shown(host)
}

fn sources(variants: &[Variant]) -> String {
    let mut text = String::new();
    for variant in variants {
        let name = variant.name;
        let _ = writeln!(
            text,
            "// crates/lab-course/src/race/{name}.rs\n{}",
            variant.source
        );
    }
    text
}

impl Args {
    fn shown(&self, host: &Host) -> Result<Shown, String> {
        let (threads, cpus) = (self.threads as usize, host.machine.cpus);
        let updates = self.updates.unwrap_or(match cpus {
            1 => UPDATES_ON_ONE_CPU,
            _ => UPDATES,
        });
        let variants = &self.variants.0;
        let plan = Plan {
            threads,
            updates,
            rounds: ROUNDS,
        };
        let mut rig = host.rig(&Order::default(), threads)?;
        let loses = variants.iter().any(|variant| !variant.is_right);
        let guess = match loses {
            true => Some(self.flags.ask(QUESTION)?),
            false => None,
        };
        let steps = (ROUNDS * variants.len()) as u64;
        // An update takes some 40 ns if two threads take turns, and the rest of a round 3 ms.
        let round = Duration::from_nanos(plan.expected() * 40) + Duration::from_millis(3);
        let bar = output::progress(steps, round * steps as u32);
        bar.set_message("race");
        let counted = measure(&plan, variants, &mut rig, &|| bar.inc(1));
        bar.finish_and_clear();
        rig.save();
        Ok(show::shown(
            &plan,
            &counted,
            guess,
            &window::compiled(),
            &cost::costs(),
        ))
    }
}
