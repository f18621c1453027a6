//! What all steps of the course have on the command line.

use corelay_lab_course::guess::Question;
use corelay_lab_course::shown::{Guess, Shown};
use corelay_lab_measure::host::Host;
use corelay_lab_report::exit::Exit;
use corelay_lab_report::output;
use corelay_lab_report::table::columns::columns;
use serde::Serialize;
use std::io;

/// A step of the course.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// Its name on the command line.
    pub(super) name: &'static str,
    /// What it shows, in a line.
    pub(super) what: &'static str,
    /// How long it takes here, roughly, in seconds.
    pub(super) seconds: u32,
    /// Asks for the guess, and runs it as it is ordinarily.
    pub(super) run: Play,
}

/// Runs a step; an error is a sentence.
pub(super) type Play = fn(&Host, &Telling, Size) -> Result<Shown, String>;

/// How much a step does as a part of the whole course.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    /// As much as by itself.
    Usual,
    /// So little that it ends at once and nothing can be learnt: to see that it works.
    Small,
}

/// Why a step has nothing to show.
pub(super) const INTERRUPTED: &str = "it was interrupted before there was a figure of everything";

impl Step {
    /// A step by name: what it shows, how many seconds it takes, and how it is run.
    pub(super) const fn new(
        name: &'static str,
        what: &'static str,
        seconds: u32,
        run: Play,
    ) -> Self {
        Self {
            name,
            what,
            seconds,
            run,
        }
    }
}

/// A step, or what stands beside the course, in the list.
#[derive(Serialize)]
struct Listed {
    /// From 1; nothing beside the course.
    number: Option<usize>,
    name: &'static str,
    what: &'static str,
    seconds: Option<u32>,
}

/// Names the steps, and what stands beside the course.
pub(super) fn list(
    steps: &[Step],
    extra: &[(&'static str, &'static str)],
    json: bool,
) -> Result<Exit, String> {
    let steps = steps.iter().zip(1..).map(|(step, number)| Listed {
        number: Some(number),
        name: step.name,
        what: step.what,
        seconds: Some(step.seconds),
    });
    let extra = extra.iter().map(|&(name, what)| Listed {
        number: None,
        name,
        what,
        seconds: None,
    });
    let listed: Vec<Listed> = steps.chain(extra).collect();
    output::say(&match json {
        true => serde_json::to_string_pretty(&listed).map_err(|error| error.to_string())? + "\n",
        false => text(&listed),
    })?;
    Ok(Exit::Fine)
}

fn text(listed: &[Listed]) -> String {
    let row = |listed: &Listed| {
        let word = |value: Option<String>| value.unwrap_or_default();
        [
            word(listed.number.map(|number| number.to_string())),
            listed.name.to_owned(),
            listed.what.to_owned(),
            word(listed.seconds.map(|s| format!("{s} s"))),
        ]
    };
    let table = columns(
        ["", "step", "what it shows", "about"],
        listed.iter().map(row),
        3,
    );
    format!(
        "{table}\n\nRun one: corelay lab race\nRun all, and leave a page: corelay lab --report \
         DIR\n"
    )
}

/// How a step is run and told.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Telling {
    /// Ask for no guess
    #[arg(long)]
    pub(super) yes: bool,

    /// Print what came of it as JSON instead of the text; asks for no guess either
    #[arg(long)]
    pub(super) json: bool,
}

/// What is printed of a step as JSON.
#[derive(Serialize)]
struct Output<'a> {
    #[serde(flatten)]
    shown: &'a Shown,
    runs: &'a [corelay_lab_measure::schema::Run],
}

impl Telling {
    /// Asks on standard error, so that standard output holds the results alone.
    pub(super) fn ask(&self, question: Question) -> Result<Guess, String> {
        if self.yes || self.json {
            return Ok(question.unasked());
        }
        let asked = question.ask(io::stdin().lock(), io::stderr());
        asked.map_err(|error| format!("the guess could not be asked for (--yes skips it): {error}"))
    }

    /// Tells it; the exit code says whether it was right.
    pub(super) fn tell(&self, shown: &Shown) -> Result<Exit, String> {
        let runs = &*shown.runs;
        output::say(&match self.json {
            true => {
                let json = serde_json::to_string_pretty(&Output { shown, runs });
                json.map_err(|error| error.to_string())? + "\n"
            }
            false => shown.to_string(),
        })?;
        Ok(if shown.is_right() {
            Exit::Fine
        } else {
            Exit::Wrong
        })
    }
}
