//! `corelay lab hash`: an exercise, begun, checked and marked.

use super::step::{Size, Telling};
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

/// More is an hour.
const LONGEST: u64 = 3_600;

/// For the check, and for the measuring.
const LIMIT: u64 = 60;

/// Step 5: make a hash table scale: an exercise, checked and marked (L8)
///
/// Without --init and --check: checks and measures the start (one big lock) and a reference answer
/// (many small ones), after asking for a guess.
///
/// --init DIR writes a small cargo project with the start and what is asked; --check DIR builds the
/// project in DIR, checks it, measures its scaling against the start and the reference, and gives a
/// mark with reasons. Needs `cargo`; nothing is fetched, and nothing is written into DIR.
#[derive(Debug, clap::Args)]
#[command(after_long_help = format!("The mark: {RUBRIC}"))]
pub(super) struct Args {
    /// Write the project to begin with into a folder, which is new or empty
    #[arg(long, value_name = "DIR",
          conflicts_with_all = ["check", "no_measure", "limit", "yes", "json"])]
    init: Option<PathBuf>,

    /// Check and mark the project in a folder
    #[arg(long, value_name = "DIR")]
    check: Option<PathBuf>,

    /// Check only: no scaling, and a mark without it
    #[arg(long)]
    no_measure: bool,

    /// Seconds after which the check, or the measuring, is stopped; building gets 120 at least
    #[arg(long, allow_negative_numbers = true, value_name = "SECONDS", default_value_t = LIMIT,
          value_parser = number(1..=LONGEST))]
    limit: u64,

    #[command(flatten)]
    telling: Telling,
}

pub(super) fn run(args: Args) -> Result<Exit, String> {
    if let Some(folder) = &args.init {
        hash::init(folder)?;
        let folder = folder.display();
        output::say(&format!(
            "{folder} holds the exercise: README.md says what to do.\n\
             `corelay lab hash --check {folder}` checks what you have made of it.\n"
        ))?;
        return Ok(Exit::Fine);
    }
    let host = Host::look(COMMIT);
    match args.shown(&host) {
        Err(sentence) if host.is_interrupted() => {
            eprintln!("{sentence}");
            Ok(Exit::Interrupted)
        }
        shown => args.telling.tell(&shown?),
    }
}

/// Without a folder, as a part of the whole course; small, it is checked and not measured.
pub(super) fn step(host: &Host, telling: &Telling, size: Size) -> Result<Shown, String> {
    let args = Args {
        init: None,
        check: None,
        no_measure: size == Size::Small,
        limit: LIMIT,
        telling: telling.clone(),
    };
    args.shown(host)
}

impl Args {
    fn shown(&self, host: &Host) -> Result<Shown, String> {
        let guess = match &self.check {
            None if !self.no_measure => self.telling.ask(QUESTION)?,
            _ => QUESTION.unasked(),
        };
        // Builds take seconds, and so does each of the rest.
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
