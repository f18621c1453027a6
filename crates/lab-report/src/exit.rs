//! The exit codes of the lab's programs.

use corelay_lab_measure::host;
use corelay_lab_measure::schema::{Mode, Results};
use std::collections::BTreeSet;
use std::process::ExitCode;

/// The exit codes, for the help of a command.
pub const EXIT_CODES: &str = "\
Exit codes:
  0    everything is right
  1    a method gave a wrong result, a target was missed, or nothing could be measured
  2    bad input, or a file or folder that cannot be written
  130  interrupted (Ctrl-C); what was measured is kept";

/// The way a program ends; its number is the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Everything is right.
    Fine = 0,
    /// A method gave a wrong result, a target was missed, or nothing could be measured.
    Wrong = 1,
    /// The input was bad, or a file or folder cannot be written.
    BadInput = 2,
    /// Ctrl-C ended the program early.
    Interrupted = host::INTERRUPTED as isize,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// The way a measurement ends: what went wrong before what was left out. Prints a sentence to standard
/// error if nothing was measured.
pub fn measured(results: &Results, wrong: bool, interrupted: bool) -> Exit {
    match (wrong, interrupted, why_nothing(results)) {
        (true, _, _) => Exit::Wrong,
        (false, true, _) => Exit::Interrupted,
        (false, false, None) => Exit::Fine,
        (false, false, Some(why)) => {
            eprintln!("error: nothing could be measured: {why}");
            Exit::Wrong
        }
    }
}

/// The reason why no run has a sample that counts; `None` if one has.
fn why_nothing(results: &Results) -> Option<String> {
    let mut samples = results.runs.iter().flat_map(|run| &run.samples);
    if samples.any(|sample| sample.mode != Mode::Discarded) {
        return None;
    }
    if results.runs.iter().any(|run| !run.samples.is_empty()) {
        let why = "the CPUs moved during every sample, or were one core; take more samples";
        return Some(why.to_owned());
    }
    let missing = results.runs.iter();
    let missing = missing.flat_map(|run| run.not_installed.iter().chain(&run.notes));
    let why: BTreeSet<_> = missing.chain(&results.machine.unavailable).collect();
    let why: Vec<_> = why.into_iter().map(String::as_str).collect();
    Some(why.join("; "))
}

/// Returns the exit code. Prints an error's sentence to standard error.
pub fn end(outcome: Result<Exit, String>) -> ExitCode {
    match outcome {
        Ok(exit) => exit.into(),
        Err(sentence) => {
            eprintln!("error: {sentence}");
            Exit::BadInput.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::Recipe;

    #[test]
    fn a_measurement_without_a_sample_that_counts_says_why() {
        let mut results = Recipe::default().make();
        assert_eq!(measured(&results, false, false), Exit::Fine);
        for sample in results.runs.iter_mut().flat_map(|run| &mut run.samples) {
            sample.mode = Mode::Discarded;
        }
        let why = why_nothing(&results).expect("all are discarded");
        assert!(why.contains("CPUs moved"), "{why}");
        assert_eq!(measured(&results, false, false), Exit::Wrong);
        assert_eq!(measured(&results, false, true), Exit::Interrupted);
        results.runs.iter_mut().for_each(|run| run.samples.clear());
        results.runs[0].not_installed = Some("go: not installed".to_owned());
        let why = why_nothing(&results).expect("there are none");
        assert!(why.contains("go: not installed"), "{why}");
    }
}
