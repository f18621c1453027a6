//! How a program of the lab ends.

use corelay_lab_measure::host;
use std::process::ExitCode;

/// The exit codes, for the help of a command.
pub const EXIT_CODES: &str = "\
Exit codes:
  0    fine
  1    a method gave a wrong result, or a target was missed
  2    bad input, or a place that cannot be written
  130  interrupted (Ctrl-C); what was measured is kept";

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Fine.
    Fine = 0,
    /// A method gave a wrong result.
    Wrong = 1,
    /// Bad input, or a place that cannot be written.
    BadInput = 2,
    /// Ctrl-C.
    Interrupted = host::INTERRUPTED as isize,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// The exit code; an error's sentence goes to standard error.
pub fn end(outcome: Result<Exit, String>) -> ExitCode {
    match outcome {
        Ok(exit) => exit.into(),
        Err(sentence) => {
            eprintln!("error: {sentence}");
            Exit::BadInput.into()
        }
    }
}
