//! `corelay trace`: any other command, recorded.

use crate::cli::list::number;
use crate::cli::{self, Cli, Command};
use clap::Parser;
use corelay_lab_measure::host;
use corelay_lab_report::exit::Exit;
use corelay_lab_report::output::{Target, is_same_place, open_beside, unwritable_file};
use corelay_lab_report::plot::{duration, grouped};
use corelay_lab_report::timeline;
use corelay_sync::trace::{Limits, Recording, Trace};
use std::ffi::OsString;
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;

/// Memory for all rings together: so many threads can be recorded as have room in it.
const MEMORY: usize = 128 << 20;

/// Threads with losses that are named after a run.
const NAMED: usize = 8;

/// Record what each thread does while another command runs, as a file for ui.perfetto.dev
///
/// The command runs in this process, and ends as it would without: its output and its exit code
/// are its own. Recorded are passes of trustees, batches and waits of clients, sleeps and
/// wake-ups, and the lab's samples. A thread keeps its last events; how many older ones it
/// has lost is in the file and said at the end. What is recorded runs slower: take no figures
/// from it.
#[derive(Debug, clap::Args)]
#[command(override_usage = "corelay trace [OPTIONS] -- COMMAND...")]
pub(super) struct Args {
    /// File for the events: open it at ui.perfetto.dev
    #[arg(long, value_name = "FILE", default_value = "corelay-trace.json")]
    out: PathBuf,

    /// File for a picture of the timeline, as SVG
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Events that each thread keeps, its last ones (or some more: one less than a power of two); 40 bytes each
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 16_383,
          value_parser = number(16..=1 << 20))]
    events: u64,

    /// The command, as it would stand behind `corelay`
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(super) fn run(args: &Args) -> Result<Exit, String> {
    let command = match args.parse()? {
        Ok(command) => command,
        Err(exit) => return Ok(exit),
    };
    let files = args.files()?;
    let limits = Limits::in_memory(args.events as usize, MEMORY);
    let recording = Recording::start(limits).map_err(|error| format!("trace: {error}"))?;
    // Whatever it ends with, what was recorded is left.
    let outcome = catch_unwind(AssertUnwindSafe(|| cli::dispatch(command)));
    let trace = recording.stop();
    let written = files.write(&trace);
    eprint!("{}", args.told(&trace));
    match (outcome, written) {
        (Err(panic), _) => resume_unwind(panic),
        (Ok(outcome), Ok(())) => outcome,
        (Ok(Ok(_)), Err(sentence)) => Err(sentence),
        (Ok(Err(earlier)), Err(sentence)) => Err(format!("{earlier}; and {sentence}")),
    }
}

/// Where the trace goes.
struct Files {
    events: Target,
    /// With its path.
    picture: Option<(Target, PathBuf)>,
    path: PathBuf,
}

impl Args {
    /// The command; or how the program ends where there is nothing to run, after it has been
    /// said why.
    fn parse(&self) -> Result<Result<Command, Exit>, String> {
        if self.command.is_empty() {
            return Err(
                "trace: there is no command behind `--` to be recorded; name one, such as \
                 `corelay trace -- bench fetch-add --method trust-then`"
                    .to_owned(),
            );
        }
        let words = std::iter::once(OsString::from("corelay")).chain(self.command.iter().cloned());
        match Cli::try_parse_from(words) {
            Ok(Cli {
                command: Command::Trace(_),
            }) => Err(
                "trace: a trace cannot be recorded inside another one; name one command behind \
                 one `--`"
                    .to_owned(),
            ),
            Ok(cli) => Ok(Ok(cli.command)),
            Err(error) => Ok(Err(cli::refuse_or_help(&error))),
        }
    }

    /// Opens both files, before anything runs.
    fn files(&self) -> Result<Files, String> {
        if let Some(svg) = &self.svg
            && is_same_place(svg, &self.out)
        {
            return Err(format!(
                "--svg {}: --out names the same file",
                svg.display()
            ));
        }
        let picture = match &self.svg {
            None => None,
            Some(path) => Some((open_beside("--svg", path)?, path.clone())),
        };
        Ok(Files {
            events: open_beside("--out", &self.out)?,
            picture,
            path: self.out.clone(),
        })
    }

    /// What was recorded and lost.
    fn told(&self, trace: &Trace) -> String {
        let kept: usize = trace.threads.iter().map(|t| t.events.len()).sum();
        let mut text = format!(
            "trace: {} events of {} threads in {}: {}; open it at ui.perfetto.dev\n",
            grouped(kept as u64),
            trace.threads.len(),
            duration(trace.length_ns),
            self.out.display()
        );
        let mut losers: Vec<_> = trace
            .threads
            .iter()
            .filter(|t| t.overwritten() > 0)
            .collect();
        losers.sort_by_key(|thread| std::cmp::Reverse(thread.overwritten()));
        for thread in losers.iter().take(NAMED) {
            let _ = writeln!(
                text,
                "trace: {} ({}) has lost {} older events: it keeps its last {} (--events)",
                thread.name,
                thread.number,
                grouped(thread.overwritten()),
                grouped(thread.events.len() as u64)
            );
        }
        if let Some(more) = losers.len().checked_sub(NAMED + 1) {
            let _ = writeln!(text, "trace: and so have {} other threads", more + 1);
        }
        let refused = trace.refused;
        if refused.beyond_limit > 0 {
            let _ = writeln!(
                text,
                "trace: {} events of later threads were not recorded: {} threads have used up the \
                 memory for events (fewer --events make room for more threads)",
                grouped(refused.beyond_limit),
                trace.threads.len()
            );
        }
        if refused.ending > 0 {
            let _ = writeln!(
                text,
                "trace: {} events at the very end of threads were not recorded",
                grouped(refused.ending)
            );
        }
        text
    }
}

impl Files {
    fn write(self, trace: &Trace) -> Result<(), String> {
        self.events
            .write_with(|out| trace.write_json(out))
            .map_err(|error| unwritable_file("--out", &self.path, &error))?;
        let Some((target, path)) = self.picture else {
            return Ok(());
        };
        let svg = timeline::picture(trace, &host::command_line());
        target
            .write(svg.as_bytes())
            .map_err(|error| unwritable_file("--svg", &path, &error))
    }
}
