//! What all steps of the course have on the command line.

use crate::cli::{Exit, output};
use crate::course::guess::Question;
use crate::course::shown::{Guess, Shown};
use serde::Serialize;
use std::io;

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
    runs: &'a [crate::schema::Run],
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
