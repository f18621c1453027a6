//! `corelay lab profile`: lets perf sample a rung of the ladder, function by function.

use super::list::{check_memory, iterations, named_rung, usual_keys};
use super::step::{Size, StepFlags};
use crate::cli::list::{number, secs};
use corelay_lab_compare::COMMIT;
use corelay_lab_course::list::rungs::{self, Rung};
use corelay_lab_course::profile::{NoProfile, Plan};
use corelay_lab_measure::host::Host;
use corelay_lab_report::exit::Exit;
use corelay_topology::Order;
use std::ffi::OsStr;

/// Profile a rung of the ladder by function, with perf: the program, the C library, the kernel
///
/// Runs the rung in a process of its own, under `perf record`, by the kernel's timer, so that no
/// counter of the processor is needed. Only the threads that insert count. Without perf, or without the
/// permission to use it, the command says so and exits with 1.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Args {
    #[arg(long, value_name = "RUNG", default_value = "partitioned", value_parser = named_rung,
          help = format!("The rung, one of {}", rungs::names()))]
    rung: &'static Rung,

    /// Threads that insert [default: the number of CPUs]
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = number(1..=1024))]
    threads: Option<u64>,

    /// Keys that each thread inserts at once
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = usual_keys(Size::Usual),
          value_parser = iterations)]
    iterations: u64,

    /// Time to insert for, in seconds
    #[arg(long, allow_negative_numbers = true, value_name = "S", default_value = "2", value_parser = secs)]
    secs: f64,

    /// Functions to show
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 15,
          value_parser = number(1..=10_000))]
    top: u64,

    /// Print the profile as JSON instead of text
    #[arg(long)]
    json: bool,

    /// Run the rung without perf: the process that perf looks at
    #[arg(long, hide = true)]
    unprofiled: bool,
}

pub(super) fn run(args: &Args) -> Result<Exit, String> {
    let host = Host::look(COMMIT);
    let threads = args.threads.map_or(host.machine.cpus, |n| n as usize);
    check_memory(threads as u64 * args.iterations, args.iterations)?;
    let plan = Plan {
        rung: args.rung,
        threads,
        share: args.iterations as usize,
        secs: args.secs,
    };
    if args.unprofiled {
        let placement = host.place(&Order::default(), threads)?;
        return plan
            .run(placement.cpus(), || host.is_interrupted())
            .map(|()| Exit::Fine);
    }
    let program = std::env::current_exe()
        .map_err(|error| format!("this program's own file is unknown: {error}"))?;
    let own = [
        args.rung.name.to_owned(),
        threads.to_string(),
        args.iterations.to_string(),
        args.secs.to_string(),
    ];
    let [rung, threads, iterations, secs] = own.each_ref().map(OsStr::new);
    let words = ["lab", "profile", "--unprofiled", "--rung"].map(OsStr::new);
    let more = ["--threads", "--iterations", "--secs"].map(OsStr::new);
    let child = [
        &words[..],
        &[rung, more[0], threads, more[1], iterations, more[2], secs],
    ]
    .concat();
    match plan.profile(&program, &child, args.top as usize) {
        _ if host.is_interrupted() => Ok(Exit::Interrupted),
        Ok(shown) => StepFlags {
            yes: true,
            json: args.json,
        }
        .print(&shown),
        Err(NoProfile::Unavailable(why)) => {
            eprintln!("error: nothing could be measured: {why}");
            Ok(Exit::Wrong)
        }
        Err(NoProfile::Failed(why)) => {
            eprintln!("error: {}: {why}", args.rung.name);
            Ok(Exit::Wrong)
        }
    }
}
