//! Delegation against its rivals, level by level and mode by mode.

use super::judge::Judge;
use super::level::Level;
use crate::measure::stats::Interval;
use crate::report::method::{self, Form};
use crate::report::words;
use crate::schema::Mode;
use std::fmt;

/// What is set against what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Comparison {
    /// `trust` against whatever else waits for each answer.
    Waiting,
    /// `trust-then` against whatever else answers later.
    Later,
    /// `trust-then` against what waits: not like with like.
    LaterAgainstWaiting,
    /// `trust-then` against `atomic`: not like with like.
    LaterAgainstInstruction,
    /// `trust-post` against what waits or is one instruction: not like with like.
    OneWay,
}

impl Comparison {
    /// All of them, in the order in which they are told.
    pub const ALL: [Self; 5] = [
        Self::Waiting,
        Self::Later,
        Self::LaterAgainstWaiting,
        Self::LaterAgainstInstruction,
        Self::OneWay,
    ];

    /// corelay's side.
    pub fn ours(self) -> &'static str {
        match self {
            Self::Waiting => "trust",
            Self::Later | Self::LaterAgainstWaiting | Self::LaterAgainstInstruction => "trust-then",
            Self::OneWay => "trust-post",
        }
    }

    /// The other side: everybody of these forms who is not ours.
    pub(super) fn rivals(self) -> Vec<&'static str> {
        let forms: &[Form] = match self {
            Self::Waiting | Self::LaterAgainstWaiting => &[Form::Waits],
            Self::Later => &[Form::Later],
            Self::LaterAgainstInstruction => &[Form::Instruction],
            Self::OneWay => &[Form::Waits, Form::Instruction],
        };
        let rival = |m: &&method::Method| forms.contains(&m.form) && !method::is_ours(m.name);
        method::METHODS
            .iter()
            .filter(rival)
            .map(|m| m.name)
            .collect()
    }

    /// What is compared, in words.
    pub fn title(self) -> &'static str {
        match self {
            Self::Waiting => "Waiting for each answer: `trust` and the best lock or channel",
            Self::Later => "Answers later: `trust-then` and the best other asynchronous way",
            Self::LaterAgainstWaiting => {
                "Not like with like: `trust-then` (answer later) and the best lock or channel (answer now)"
            }
            Self::LaterAgainstInstruction => {
                "Not like with like: `trust-then` (any code, answer later) and `atomic` (one instruction)"
            }
            Self::OneWay => {
                "Not like with like: `trust-post` (no answer) and the best that answers at once"
            }
        }
    }
}

/// Who won.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// The interval lies below 1: the rival is faster.
    Loses,
    /// The interval contains 1.
    TooClose,
    /// The interval lies above 1: delegation is faster.
    Wins,
}

impl Outcome {
    /// A heading for findings of this outcome.
    pub fn title(self) -> &'static str {
        match self {
            Self::Loses => "Where delegation loses",
            Self::TooClose => "Too close to call",
            Self::Wins => "Where delegation wins",
        }
    }

    /// How the figures under that heading are read.
    pub fn reading(self) -> &'static str {
        match self {
            Self::Loses => "The rival named does so many times as much as delegation.",
            Self::TooClose => {
                "Delegation as a multiple of the rival named; the interval contains 1."
            }
            Self::Wins => "Delegation does so many times as much as the rival named.",
        }
    }
}

/// One comparison on one level in one mode.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// What is set against what.
    pub comparison: Comparison,
    /// Where.
    pub level: Level,
    /// In which mode; figures of different modes are never compared.
    pub mode: Mode,
    /// The strongest rival there.
    pub rival: String,
    /// Throughput of ours ÷ the rival's, with its 95 % interval.
    pub ratio: Interval,
}

impl Finding {
    /// Who won.
    pub fn outcome(&self) -> Outcome {
        match self.ratio {
            Interval { high, .. } if high < 1.0 => Outcome::Loses,
            Interval { low, .. } if low > 1.0 => Outcome::Wins,
            _ => Outcome::TooClose,
        }
    }

    /// The ends of the interval as words, turned as [`Display`](fmt::Display) turns the
    /// ratio: a factor above 1 for whoever is faster.
    pub fn interval(&self) -> String {
        let Interval { low, high, .. } = self.ratio;
        let (low, high) = match self.outcome() {
            Outcome::Loses => (high.recip(), low.recip()),
            _ => (low, high),
        };
        format!("{}–{}", words::ratio_digits(low), words::ratio_digits(high))
    }
}

/// Whoever is faster, as a multiple of the other: `` `ttas` 6.5 × `` where the rival does
/// 6.5 times as much as ours, `` 6.5 × `ttas` `` where ours does 6.5 times as much.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rival = words::code(&self.rival);
        let ratio = self.ratio.ratio;
        match self.outcome() {
            Outcome::Loses => write!(f, "{rival} {}", words::times(ratio.recip())),
            _ => write!(f, "{} {rival}", words::times(ratio)),
        }
    }
}

/// Every finding that the samples allow.
pub(super) fn findings(judge: &Judge<'_>, levels: &[Level]) -> Vec<Finding> {
    let mut found = Vec::new();
    for comparison in Comparison::ALL {
        for level in levels {
            for mode in judge.modes() {
                let ours = comparison.ours();
                let middle = |rival| Some((judge.middle(&level.vars, mode, ours, rival)?, rival));
                let rivals = comparison.rivals().into_iter().filter_map(middle);
                let strongest = rivals.min_by(|a, b| a.0.total_cmp(&b.0));
                let Some((_, rival)) = strongest else {
                    continue;
                };
                if let Some(ratio) = judge.ratio(&level.vars, mode, ours, rival) {
                    found.push(Finding {
                        comparison,
                        level: level.clone(),
                        mode,
                        rival: rival.to_owned(),
                        ratio,
                    });
                }
            }
        }
    }
    found
}
