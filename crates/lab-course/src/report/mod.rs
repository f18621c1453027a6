//! The handout: all steps of the course as one page that needs no other file, and as one file of
//! results, which `corelay plot` lays over those of other readers and machines.

mod page;

use super::shown::Shown;
use corelay_lab_measure::schema::{Results, Run};
use serde::Serialize;

/// A step that was run, or could not be run.
#[derive(Debug)]
pub struct CourseStep {
    /// The name on the command line.
    pub step: &'static str,
    /// The step's output, or a sentence that says why it could not be run.
    pub outcome: Result<Shown, String>,
}

impl CourseStep {
    /// Whether the step was run and no check found anything wrong.
    pub fn is_right(&self) -> bool {
        self.outcome.as_ref().is_ok_and(Shown::is_right)
    }

    /// Returns the step's runs.
    pub fn runs(&self) -> &[Run] {
        match &self.outcome {
            Ok(shown) => &shown.runs,
            Err(_) => &[],
        }
    }
}

/// Serializes as in the file of results.
impl Serialize for CourseStep {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Failed<'a> {
            step: &'static str,
            failed: &'a str,
        }
        match &self.outcome {
            Ok(shown) => shown.serialize(serializer),
            Err(failed) => Failed {
                step: self.step,
                failed,
            }
            .serialize(serializer),
        }
    }
}

/// The content of `results.json`: [`Results`] with the runs of all steps, and the text of the
/// steps beside them.
#[derive(Debug, Serialize)]
pub struct Handout {
    /// The machine, the commit, the command, and the runs of all steps.
    #[serde(flatten)]
    pub results: Results,
    /// The steps in their order.
    pub course: Vec<CourseStep>,
}

impl Handout {
    /// Renders the handout as a page: one HTML file without any outside resource, in light and
    /// dark, for phones and for paper. It is well-formed XML, too.
    ///
    /// ```
    /// use corelay_lab_course::{report::{Handout, CourseStep}, shown::Shown};
    /// use corelay_lab_measure::schema::{Machine, Results, SCHEMA};
    ///
    /// let handout = Handout {
    ///     results: Results {
    ///         schema: SCHEMA,
    ///         machine: Machine::default(),
    ///         commit: "unknown".into(),
    ///         command: "corelay lab --report out".into(),
    ///         runs: Vec::new(),
    ///     },
    ///     course: vec![CourseStep { step: "race", outcome: Ok(Shown::new("race", "Race: to the end")) }],
    /// };
    /// assert!(handout.html().contains("Race: to the end"));
    /// ```
    pub fn html(&self) -> String {
        page::html(self)
    }

    /// Renders the handout as a file of results.
    ///
    /// # Errors
    /// A sentence if it cannot be serialized.
    pub fn json(&self) -> Result<String, String> {
        let json = serde_json::to_string_pretty(self).map_err(|error| error.to_string())?;
        Ok(json + "\n")
    }
}

#[cfg(test)]
mod tests;
