//! The command line of `corelay`: flags, errors, exit codes.
//!
//! Bad input gets one sentence that names the flag, before anything is measured or written.

mod bench;
mod clock;
mod compare;
mod figure;
mod lab;
mod list;
mod machine;
mod methods;
mod model;
mod plot;
mod reach;
mod trace;

use clap::{Parser, Subcommand};
use corelay_lab_report::exit::{self, EXIT_CODES, Exit};
use std::process::ExitCode;

/// Measure which way of sharing data between cores wins on this machine, and say why.
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
    Methods(methods::Args),
    Model(model::Args),
    Plot(plot::Args),
    Reach(reach::Args),
    Trace(trace::Args),
}

/// Runs the program on this process's arguments.
pub(crate) fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return print_help_or_error(&error).into(),
    };
    exit::end(dispatch(cli.command))
}

fn dispatch(command: Command) -> Result<Exit, String> {
    match command {
        Command::Compare(args) => compare::run(args),
        Command::Bench(args) => bench::run(args),
        Command::Clock(args) => clock::run(&args),
        Command::Figure(args) => figure::run(&args),
        Command::Lab(args) => lab::run(args),
        Command::Machine(args) => machine::run(args),
        Command::Methods(args) => methods::run(&args),
        Command::Model(args) => model::run(args),
        Command::Plot(args) => plot::run(&args),
        Command::Reach(args) => reach::run(args),
        Command::Trace(args) => trace::run(&args),
    }
}

/// Prints what clap returned in place of arguments: the help to standard output as it is, an
/// error to standard error, cut to its first sentence and a suggestion. Returns the exit code.
pub(crate) fn print_help_or_error(error: &clap::Error) -> Exit {
    if !error.use_stderr() {
        // A closed pipe is no error.
        let _ = error.print();
        return Exit::Fine;
    }
    let text = error.render().to_string();
    let mut paragraphs = text.split("\n\n");
    let first = paragraphs.next().unwrap_or_default();
    // What clap suggests for a mistyped word.
    let tip = paragraphs.find_map(|paragraph| paragraph.trim().strip_prefix("tip: "));
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence = match tip {
        Some(tip) => format!("{}: {}", words(first), words(tip)),
        None => words(first),
    };
    match error.kind() {
        // `corelay` without arguments gets the whole help.
        clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => eprint!("{text}"),
        _ => eprintln!("{sentence}"),
    }
    Exit::BadInput
}
