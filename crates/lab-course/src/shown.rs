//! What a step of the course has shown: made once, told on the terminal and laid out in the
//! handout.

use corelay_lab_measure::schema::Run;
use corelay_lab_report::plot::Place;
use corelay_lab_report::table::grid::Grid;
use corelay_lab_report::words;
use serde::Serialize;
use std::fmt::{self, Write};

/// Width of the prose on a terminal, in letters.
const WIDTH: usize = 96;

/// A step and all that came of it.
#[derive(Debug, Default, Serialize)]
pub struct Shown {
    /// Its name on the command line.
    pub(crate) step: &'static str,
    /// What it is about, in a line.
    pub title: String,
    /// What was asked beforehand, what was answered, and what came out.
    pub guess: Option<Guess>,
    /// Words, tables, pictures, sources, in their order.
    #[serde(skip)]
    pub(crate) parts: Vec<Part>,
    /// What to look at: sentences, with names between backquotes.
    pub(crate) look_at: Vec<String>,
    /// What a check has found wrong: sentences. Then nothing else of the step is to be trusted.
    pub wrong: Vec<String>,
    /// What was measured, as every other command of the lab writes it.
    #[serde(skip)]
    pub runs: Vec<Run>,
    /// Figures that runs do not have.
    pub(crate) figures: serde_json::Value,
}

/// A question about a number, asked before the step is run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Guess {
    /// The question, a sentence.
    pub(crate) question: String,
    /// Unit of the answers, for instance `%` or `Mops`.
    pub(crate) unit: &'static str,
    /// What was answered; `None` where nobody was asked.
    pub(crate) guessed: Option<f64>,
    /// What the step has found; `None` where it could not.
    pub(crate) measured: Option<f64>,
}

/// A piece of what is shown.
pub(crate) enum Part {
    /// A paragraph, with names between backquotes.
    Words(String),
    /// A table.
    Table(Grid),
    /// A picture; in the handout only.
    Picture(Picture),
    /// A listing: a source, or instructions.
    Code {
        /// What it is.
        caption: String,
        /// Its lines.
        text: String,
    },
}

/// A picture, drawn where it will stand.
pub struct Picture {
    /// Names its file and, in a page, its element: letters and dashes.
    pub name: String,
    /// What it shows.
    pub(crate) caption: String,
    /// Draws it.
    pub draw: Box<dyn Fn(Place) -> String>,
}

impl Shown {
    /// An empty step.
    pub fn new(step: &'static str, title: impl Into<String>) -> Self {
        Self {
            step,
            title: title.into(),
            ..Self::default()
        }
    }

    /// True where no check has found anything wrong.
    pub fn is_right(&self) -> bool {
        self.wrong.is_empty()
    }

    /// The pictures among its parts.
    pub fn pictures(&self) -> impl Iterator<Item = &Picture> {
        self.parts.iter().filter_map(|part| match part {
            Part::Picture(picture) => Some(picture),
            _ => None,
        })
    }
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Words(words) => f.debug_tuple("Words").field(words).finish(),
            Self::Table(grid) => f.debug_tuple("Table").field(grid).finish(),
            Self::Picture(picture) => f.debug_tuple("Picture").field(&picture.name).finish(),
            Self::Code { caption, .. } => f.debug_tuple("Code").field(caption).finish(),
        }
    }
}

/// For the terminal: without pictures.
impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", self.title)?;
        for sentence in &self.wrong {
            writeln!(f, "{}", words::wrap(sentence, "WRONG: ", WIDTH))?;
        }
        for part in &self.parts {
            match part {
                Part::Words(text) => writeln!(f, "{}\n", words::wrap(text, "", WIDTH))?,
                Part::Table(grid) => writeln!(f, "{grid}")?,
                Part::Picture(_) => {}
                Part::Code { caption, text } => writeln!(f, "{caption}\n{}\n", indented(text))?,
            }
        }
        if let Some(guess) = &self.guess {
            writeln!(f, "{}\n", words::wrap(&guess.told(), "", WIDTH))?;
        }
        if !self.look_at.is_empty() {
            writeln!(f, "What to look at")?;
        }
        for sentence in &self.look_at {
            writeln!(f, "{}", words::wrap(sentence, "- ", WIDTH))?;
        }
        Ok(())
    }
}

fn indented(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let _ = writeln!(out, "    {line}");
    }
    out
}
