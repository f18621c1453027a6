//! `corelay lab hash`: writes, checks and marks an exercise.

use super::step::{Size, StepFlags};
use crate::cli::list::number;
use corelay_lab_compare::COMMIT;
use corelay_lab_course::hash::mark::RUBRIC;
use corelay_lab_course::hash::run::Limited;
use corelay_lab_course::hash::{self, Exercise, QUESTION};
use corelay_lab_course::shown::Shown;
use corelay_lab_measure::host::Host;
use corelay_lab_report::exit::Exit;
use corelay_lab_report::output;
use std::path::PathBuf;
use std::time::Duration;

/// The largest number of seconds that `--limit` takes: an hour.
const MAX_LIMIT: u64 = 3_600;

/// The default of `--limit`: seconds for the check, and again for the measurement.
const DEFAULT_LIMIT: u64 = 60;

/// Step 5: make a hash table scale: an exercise, checked and marked
///
/// Without --init and --check: asks for a guess, then checks and measures the start (one big lock)
/// and a reference answer (many small locks).
///
/// --init DIR writes a small cargo project with the start and the task. --check DIR builds the
/// project in DIR, checks it, measures its scaling against the start and the reference, and gives a
/// mark with reasons. Needs `cargo`. Nothing is downloaded, and --check writes nothing into DIR.
#[derive(Debug, clap::Args)]
#[command(after_long_help = format!("The mark: {RUBRIC}"))]
pub(super) struct Args {
    /// Write the project to begin with into a new or empty folder
    #[arg(long, value_name = "DIR",
          conflicts_with_all = ["check", "no_measure", "limit", "yes", "json"])]
    init: Option<PathBuf>,

    /// Check and mark the project in a folder
    #[arg(long, value_name = "DIR")]
    check: Option<PathBuf>,

    /// Only check, without measuring the scaling; the mark leaves it out
    #[arg(long)]
    no_measure: bool,

    /// Seconds after which the check, and again the measurement, is stopped; a build gets at least 120
    #[arg(long, allow_negative_numbers = true, value_name = "SECONDS", default_value_t = DEFAULT_LIMIT,
          value_parser = number(1..=MAX_LIMIT))]
    limit: u64,

    #[command(flatten)]
    flags: StepFlags,
}

pub(super) fn run(args: Args) -> Result<Exit, String> {
    if let Some(folder) = &args.init {
        hash::init(folder)?;
        let folder = folder.display();
        output::say(&format!(
            "{folder} holds the exercise; its README.md says what to do.\n\
             `corelay lab hash --check {folder}` checks your solution.\n"
        ))?;
        return Ok(Exit::Fine);
    }
    let host = Host::look(COMMIT);
    match args.shown(&host) {
        Err(sentence) if host.is_interrupted() => {
            eprintln!("{sentence}");
            Ok(Exit::Interrupted)
        }
        shown => args.flags.print(&shown?),
    }
}

/// Runs the step as a part of the whole course. [`Size::Small`] checks and does not measure.
pub(super) fn step(host: &Host, flags: &StepFlags, size: Size) -> Result<Shown, String> {
    let args = Args {
        init: None,
        check: None,
        no_measure: size == Size::Small,
        limit: DEFAULT_LIMIT,
        flags: flags.clone(),
    };
    args.shown(host)
}

impl Args {
    fn shown(&self, host: &Host) -> Result<Shown, String> {
        let guess = match &self.check {
            None if !self.no_measure => self.flags.ask(QUESTION)?,
            _ => QUESTION.unasked(),
        };
        // A build takes some seconds, and so does each other step.
        let steps = if self.check.is_some() { 4 } else { 5 };
        let bar = output::progress(steps, Duration::from_secs(15));
        let tell = |what: &str| {
            bar.set_message(what.to_owned());
            bar.inc(1);
        };
        let exercise = Exercise {
            limited: Limited {
                limit: Duration::from_secs(self.limit),
                interrupted: host.interrupted(),
            },
            cpus: host.machine.cpus,
            measure: !self.no_measure,
            tell: &tell,
        };
        let shown = match &self.check {
            Some(folder) => exercise.check(folder),
            None => exercise.show(guess),
        };
        bar.finish_and_clear();
        shown
    }
}
