//! `corelay lab why`: splits the time of the ladder's threads by cause.

use super::list::{
    Rungs, check_memory, iterations, rungs, usual_keys, usual_samples, variants_help,
};
use super::step::{INTERRUPTED, Size, StepFlags};
use crate::cli::list::number;
use corelay_lab_compare::COMMIT;
use corelay_lab_course::list::rungs::RUNGS;
use corelay_lab_course::shown::Shown;
use corelay_lab_course::why::{Plan, QUESTION};
use corelay_lab_measure::host::Host;
use corelay_lab_report::exit::Exit;
use corelay_lab_report::output;
use corelay_topology::Order;
use std::time::Duration;

/// Step 3: split the time of the ladder's threads: lock wait, allocation and faults, stragglers, shared lines
///
/// Runs each rung with one thread and with several. Times the waits for locks and the making of
/// nodes, and counts page faults and context switches. Figures that this machine does not count are
/// named as unavailable.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Args {
    #[arg(long, value_name = "LIST", value_parser = rungs, help = variants_help())]
    variants: Option<Rungs>,

    /// Threads of the runs with several [default: the number of CPUs]
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = number(1..=1024))]
    threads: Option<u64>,

    /// Keys that each thread inserts
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = usual_keys(Size::Usual),
          value_parser = iterations)]
    iterations: u64,

    /// Samples of each rung
    #[arg(long, alias = "rounds", allow_negative_numbers = true, value_name = "N", default_value_t = usual_samples(Size::Usual),
          value_parser = number(1..=1000))]
    samples: u64,

    #[command(flatten)]
    flags: StepFlags,
}

pub(super) fn run(args: &Args) -> Result<Exit, String> {
    let host = Host::look(COMMIT);
    match measure(&args.plan(&host)?, &args.flags, &host)? {
        Some(shown) => args.flags.print(&shown),
        None => Ok(Exit::Interrupted),
    }
}

/// Runs the step with its defaults, as a part of the whole course.
pub(super) fn step(host: &Host, flags: &StepFlags, size: Size) -> Result<Shown, String> {
    let args = Args {
        variants: None,
        threads: None,
        iterations: usual_keys(size),
        samples: usual_samples(size),
        flags: flags.clone(),
    };
    measure(&args.plan(host)?, flags, host)?.ok_or_else(|| INTERRUPTED.to_owned())
}

/// Asks for the guess and measures. Returns `None` if Ctrl-C ended the measurement.
fn measure(plan: &Plan, flags: &StepFlags, host: &Host) -> Result<Option<Shown>, String> {
    let guess = flags.ask(QUESTION)?;
    let order = Order::default();
    let mut rig = host.rig(&order, 2.min(host.machine.cpus))?;
    let placement = host.place(&order, plan.threads)?;
    let bar = output::progress(
        plan.runs() as u64,
        Duration::from_millis(100 * plan.runs() as u64),
    );
    let watched = plan.measure(&mut rig, placement.cpus(), |name| {
        bar.set_message(name.to_owned());
        bar.inc(1);
    });
    bar.finish_and_clear();
    rig.save();
    Ok(watched.map(|watched| watched.shown(guess)))
}

impl Args {
    fn plan(&self, host: &Host) -> Result<Plan, String> {
        let threads = self.threads.map_or(host.machine.cpus, |n| n as usize);
        check_memory(threads as u64 * self.iterations, self.iterations)?;
        Ok(Plan {
            rungs: match &self.variants {
                Some(Rungs(rungs)) => rungs.clone(),
                None => RUNGS.iter().collect(),
            },
            threads,
            share: self.iterations as usize,
            rounds: self.samples as usize,
        })
    }
}
