//! The output of a step of the course: made once, then printed on the terminal and laid out in
//! the handout.

use corelay_lab_measure::schema::Run;
use corelay_lab_report::plot::Medium;
use corelay_lab_report::table::grid::Grid;
use corelay_lab_report::words;
use serde::Serialize;
use std::fmt::{self, Write};

/// Width of the prose on a terminal, in letters.
const WIDTH: usize = 96;

/// The output of a step.
#[derive(Debug, Default, Serialize)]
pub struct Shown {
    /// The step's name on the command line.
    pub(crate) step: &'static str,
    /// The step's subject, in a line.
    pub title: String,
    /// The ballpark of the throughput: the question, the reader's guess, and the measured answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ballpark: Option<Guess>,
    /// The question, the reader's guess, and the measured answer.
    pub guess: Option<Guess>,
    /// Words, tables, pictures and sources, in their order.
    #[serde(skip)]
    pub(crate) parts: Vec<Part>,
    /// Sentences on what to look at, with names in backquotes.
    pub(crate) look_at: Vec<String>,
    /// Faults that a check has found, as sentences. If there are any, nothing else of the step
    /// can be trusted.
    pub wrong: Vec<String>,
    /// The runs, in the schema of every other command of the lab.
    #[serde(skip)]
    pub runs: Vec<Run>,
    /// Figures that runs do not have.
    pub(crate) figures: serde_json::Value,
}

/// A question about a number, asked before the step runs, and its answers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Guess {
    /// The question, a sentence.
    pub(crate) question: String,
    /// Unit of the answers, for instance `%` or `Mops`.
    pub(crate) unit: &'static str,
    /// The reader's guess; `None` if there is none.
    pub guessed: Option<f64>,
    /// The measured answer; `None` if the step found none.
    pub(crate) measured: Option<f64>,
}

/// A piece of a step's output.
pub(crate) enum Part {
    /// A paragraph, with names in backquotes.
    Words(String),
    /// A table of words and numbers.
    Table(Grid),
    /// A picture. Only the handout has it.
    Picture(Picture),
    /// A listing: a source, or instructions.
    Code {
        /// The text above the listing.
        caption: String,
        /// The listing's lines.
        text: String,
    },
}

/// A picture that is drawn when its place is known.
pub struct Picture {
    /// The name of the file and, in a page, of the element: letters and dashes.
    pub name: String,
    /// The text above the picture.
    pub(crate) caption: String,
    /// Draws the picture as SVG.
    pub draw: Box<dyn Fn(Medium) -> String>,
}

impl Shown {
    /// Makes an empty step.
    pub fn new(step: &'static str, title: impl Into<String>) -> Self {
        Self {
            step,
            title: title.into(),
            ..Self::default()
        }
    }

    /// Whether no check has found anything wrong.
    pub fn is_right(&self) -> bool {
        self.wrong.is_empty()
    }

    /// Returns the pictures among the parts.
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

/// Prints the step for the terminal, without pictures.
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
        for guess in self.ballpark.iter().chain(&self.guess) {
            writeln!(f, "{}\n", words::wrap(&guess.sentence(), "", WIDTH))?;
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
