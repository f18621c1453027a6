//! What can be wrong with an answer.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The first thing that was found wrong. It ends the check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Fault {
    /// What sort of thing.
    pub(crate) kind: Kind,
    /// What the threads did meanwhile, where they ran.
    pub(crate) stage: Option<String>,
    /// What was found: the rest of a sentence.
    pub(crate) what: String,
    /// What there is to be read of it: the compiler's words, or calls as a picture.
    #[serde(skip)]
    pub(crate) listing: Option<String>,
}

/// What sort of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// The project does not build.
    Build,
    /// The project builds, but its table does not have the calls that it should, or threads
    /// cannot share it.
    Unfit,
    /// It did not come to an end and was stopped.
    Hang,
    /// It printed so much that it was stopped.
    Output,
    /// The process ended before the check was through.
    Ended,
    /// It panicked.
    Panic,
    /// A key is there more than once.
    Duplicates,
    /// A key or a value is not there although it should be.
    Lost,
    /// A key is there that should not be.
    Surplus,
    /// A key has another value than it should have.
    Value,
    /// The count is wrong.
    Length,
    /// A call was answered wrongly.
    Answer,
    /// No order of the calls explains the answers.
    Order,
}

impl Kind {
    /// As it stands at the beginning of a sentence.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Build => "The project does not build",
            Self::Unfit => "The table does not fit the checker",
            Self::Hang => "It hangs",
            Self::Output => "It prints without end",
            Self::Ended => "It ended before the check was through",
            Self::Panic => "It panicked",
            Self::Duplicates => "A key is there more than once",
            Self::Lost => "A key or value is lost",
            Self::Surplus => "A key is there that should not be",
            Self::Value => "A value is wrong",
            Self::Length => "The count is wrong",
            Self::Answer => "An answer is wrong",
            Self::Order => "It is not linearizable",
        }
    }
}

/// A sentence.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.words())?;
        if let Some(stage) = &self.stage {
            write!(f, " ({stage})")?;
        }
        write!(f, ": {}.", self.what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_a_sentence() {
        let mut fault = Fault {
            kind: Kind::Lost,
            stage: None,
            what: "key 5 is missing".to_owned(),
            listing: None,
        };
        assert_eq!(
            fault.to_string(),
            "A key or value is lost: key 5 is missing."
        );
        fault.stage = Some("one thread alone".to_owned());
        assert!(fault.to_string().contains("lost (one thread alone): key 5"));
    }
}
