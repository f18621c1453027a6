//! The program `corelay`: flags, bad input, exit codes.
//!
//! Whatever is wrong with the input is said in one sentence that names the flag, before
//! anything is measured or written.

mod bench;
mod clock;
pub(crate) mod compare;
mod fibre_table;
mod figure;
pub(crate) mod host;
mod lab;
pub(crate) mod latency_table;
mod list;
mod machine;
mod model;
mod ordered_table;
pub(crate) mod output;
mod plot;
mod reach;
mod table;
mod trace;

use clap::{Parser, Subcommand};
use corelay_sync::facade::atomic::{AtomicBool, Ordering};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0    fine
  1    a method gave a wrong result, or a target was missed
  2    bad input, or a place that cannot be written
  130  interrupted (Ctrl-C); what was measured is kept";

/// Which way of sharing between cores wins on this machine, and why.
#[derive(Debug, Parser)]
#[command(name = "corelay", version, after_help = EXIT_CODES, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Compare(compare::Args),
    Bench(bench::Args),
    Clock(clock::Args),
    Figure(figure::Args),
    Lab(lab::Args),
    Machine(machine::Args),
    Model(model::Args),
    Plot(plot::Args),
    Reach(reach::Args),
    Trace(trace::Args),
}

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Fine.
    Fine = 0,
    /// A method gave a wrong result.
    Wrong = 1,
    /// Bad input, or a place that cannot be written.
    BadInput = 2,
    /// Ctrl-C.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Runs the program on this process's arguments.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse_or_help(&error).into(),
    };
    end(dispatch(cli.command))
}

fn dispatch(command: Command) -> Result<Exit, String> {
    match command {
        Command::Compare(args) => compare::run(&args),
        Command::Bench(args) => bench::run(args),
        Command::Clock(args) => clock::run(&args),
        Command::Figure(args) => figure::run(&args),
        Command::Lab(args) => lab::run(args),
        Command::Machine(args) => machine::run(args),
        Command::Model(args) => model::run(args),
        Command::Plot(args) => plot::run(&args),
        Command::Reach(args) => reach::run(args),
        Command::Trace(args) => trace::run(&args),
    }
}

/// The exit code; an error's sentence goes to standard error.
pub(crate) fn end(outcome: Result<Exit, String>) -> ExitCode {
    match outcome {
        Ok(exit) => exit.into(),
        Err(sentence) => {
            eprintln!("error: {sentence}");
            Exit::BadInput.into()
        }
    }
}

/// Help goes to standard output as it is; an error is cut to its one sentence.
pub(crate) fn refuse_or_help(error: &clap::Error) -> Exit {
    if !error.use_stderr() {
        // A reader that has gone away is no error.
        let _ = error.print();
        return Exit::Fine;
    }
    let text = error.render().to_string();
    let paragraph = text.split("\n\n").next().unwrap_or_default();
    let sentence: Vec<&str> = paragraph.split_whitespace().collect();
    match error.kind() {
        // `corelay` alone: the help is the answer.
        clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => eprint!("{text}"),
        _ => eprintln!("{}", sentence.join(" ")),
    }
    Exit::BadInput
}

/// A flag that Ctrl-C sets, so that what was measured is kept. A second Ctrl-C ends the
/// program on the spot. The process has one, however often it measures.
fn interrupt_flag() -> Arc<AtomicBool> {
    static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    let flag = FLAG.get_or_init(|| {
        let flag = Arc::new(AtomicBool::new(false));
        let shared = Arc::clone(&flag);
        let installed = ctrlc::set_handler(move || {
            // Relaxed: the flag carries no data.
            if shared.swap(true, Ordering::Relaxed) {
                std::process::exit(Exit::Interrupted as i32);
            }
        });
        // Without a handler Ctrl-C ends the program at once, as it does everywhere.
        drop(installed);
        flag
    });
    Arc::clone(flag)
}
