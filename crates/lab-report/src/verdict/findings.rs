//! Delegation against its rivals, level by level and mode by mode.

use super::judge::Judge;
use super::level::Level;
use crate::method::{self, Form};
use crate::words;
use corelay_lab_measure::measure::stats::Interval;
use corelay_lab_measure::schema::Mode;
use std::fmt;

/// What is set against what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Comparison {
    /// `trust` against whatever else waits for each answer.
    Waiting,
    /// Delegation that answers later (`trust-then`, flat teams) against whatever else does.
    Later,
    /// Delegation that answers later against what waits: not like with like.
    LaterAgainstWaiting,
    /// Delegation that answers later against `atomic`: not like with like.
    LaterAgainstInstruction,
    /// `trust-post` against what waits or is one instruction: not like with like.
    OneWay,
}

impl Comparison {
    /// All of them, in the order in which they are told.
    pub(crate) const ALL: [Self; 5] = [
        Self::Waiting,
        Self::Later,
        Self::LaterAgainstWaiting,
        Self::LaterAgainstInstruction,
        Self::OneWay,
    ];

    /// corelay's side: everybody of this form who is ours.
    pub(crate) fn ours(self) -> Vec<&'static str> {
        let form = match self {
            Self::Waiting => Form::Waits,
            Self::Later | Self::LaterAgainstWaiting | Self::LaterAgainstInstruction => Form::Later,
            Self::OneWay => Form::OneWay,
        };
        names(|m| m.form == form && method::is_ours(m.name))
    }

    /// The other side: everybody of these forms who is not ours.
    pub(super) fn rivals(self) -> Vec<&'static str> {
        let forms: &[Form] = match self {
            Self::Waiting | Self::LaterAgainstWaiting => &[Form::Waits],
            Self::Later => &[Form::Later],
            Self::LaterAgainstInstruction => &[Form::Instruction],
            Self::OneWay => &[Form::Waits, Form::Instruction],
        };
        names(|m| forms.contains(&m.form) && !method::is_ours(m.name))
    }

    /// What is compared, in words.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Waiting => "Waiting for each answer: `trust` and the best lock or channel",
            Self::Later => "Answers later: delegation and the best other asynchronous way",
            Self::LaterAgainstWaiting => {
                "Not like with like: delegation (answer later) and the best lock or channel (answer now)"
            }
            Self::LaterAgainstInstruction => {
                "Not like with like: delegation (any code, answer later) and `atomic` (one instruction)"
            }
            Self::OneWay => {
                "Not like with like: `trust-post` (no answer) and the best that answers at once"
            }
        }
    }
}

fn names(wanted: impl Fn(&method::Method) -> bool) -> Vec<&'static str> {
    let methods = method::METHODS.iter().filter(|m| wanted(m));
    methods.map(|m| m.name).collect()
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
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Loses => "Where delegation loses",
            Self::TooClose => "Too close to call",
            Self::Wins => "Where delegation wins",
        }
    }

    /// How the figures under that heading are read.
    pub(crate) fn reading(self) -> &'static str {
        match self {
            Self::Loses => "The rival does so many times as much as the best of delegation.",
            Self::TooClose => {
                "The best of delegation as a multiple of the rival; the interval contains 1."
            }
            Self::Wins => "The best of delegation does so many times as much as the rival.",
        }
    }
}

/// One comparison on one level in one mode.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// What is set against what.
    pub(crate) comparison: Comparison,
    /// Where: the points of a level at which the same side is ahead.
    pub(crate) level: Level,
    /// In which mode; figures of different modes are never compared.
    pub(crate) mode: Mode,
    /// The strongest of ours there.
    pub(crate) ours: String,
    /// The strongest rival there.
    pub(crate) rival: String,
    /// Throughput of ours ÷ the rival's, with its 95 % interval.
    pub(crate) ratio: Interval,
}

impl Finding {
    /// Who won.
    pub(crate) fn outcome(&self) -> Outcome {
        match self.ratio {
            Interval { high, .. } if high < 1.0 => Outcome::Loses,
            Interval { low, .. } if low > 1.0 => Outcome::Wins,
            _ => Outcome::TooClose,
        }
    }

    /// The ends of the interval as words, turned as [`Display`](fmt::Display) turns the
    /// ratio: a factor above 1 for whoever is faster.
    pub(crate) fn interval(&self) -> String {
        let Interval { low, high, .. } = self.ratio;
        let (low, high) = match self.outcome() {
            Outcome::Loses => (high.recip(), low.recip()),
            _ => (low, high),
        };
        format!("{}–{}", words::ratio_digits(low), words::ratio_digits(high))
    }
}

/// Whoever is faster, as a multiple of the other: `` `ttas` 6.5 × `trust` `` where the lock
/// does 6.5 times as much.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ours, rival) = (words::code(&self.ours), words::code(&self.rival));
        let ratio = self.ratio.ratio;
        match self.outcome() {
            Outcome::Loses => write!(f, "{rival} {} {ours}", words::times(ratio.recip())),
            _ => write!(f, "{ours} {} {rival}", words::times(ratio)),
        }
    }
}

/// Ours and the rival that meet on some points: the strongest of each side.
#[derive(Clone, Copy)]
pub(super) struct Pair {
    pub(super) ours: &'static str,
    pub(super) rival: &'static str,
    /// Ours ÷ the rival's, in the middle.
    middle: f64,
}

impl Pair {
    /// Those who meet on `points`, where more is better or where `less` is.
    pub(super) fn of(
        judge: &Judge<'_>,
        comparison: Comparison,
        points: &[u64],
        mode: Mode,
        less: bool,
    ) -> Option<Self> {
        let rivals = comparison.rivals();
        let sign = if less { -1.0 } else { 1.0 };
        let by_middle = |a: &Self, b: &Self| (sign * a.middle).total_cmp(&(sign * b.middle));
        let hardest = |ours| {
            let meet = |&rival: &&'static str| {
                let middle = judge.middle(points, mode, ours, rival)?;
                Some(Self {
                    ours,
                    rival,
                    middle,
                })
            };
            rivals.iter().filter_map(meet).min_by(by_middle)
        };
        let ours = comparison.ours().into_iter();
        ours.filter_map(hardest).max_by(by_middle)
    }

    /// Which of ours is ahead; `None` where the rival is.
    fn ahead(self) -> Option<&'static str> {
        (self.middle > 1.0).then_some(self.ours)
    }
}

/// Every finding that the samples allow. What is ahead at one point of a level and behind at
/// the next would be hidden in their mean, so only points with the same side ahead are
/// spoken of together, and those where the side is chance.
pub(super) fn findings(judge: &Judge<'_>, levels: &[Level]) -> Vec<Finding> {
    let mut found = Vec::new();
    for comparison in Comparison::ALL {
        for level in levels {
            for mode in judge.modes() {
                let pair = |points: &[u64]| Pair::of(judge, comparison, points, mode, false);
                let finding = |vars: Vec<u64>| {
                    let Pair { ours, rival, .. } = pair(&vars)?;
                    Some(Finding {
                        comparison,
                        mode,
                        ours: ours.to_owned(),
                        rival: rival.to_owned(),
                        ratio: judge.ratio(&vars, mode, ours, rival)?,
                        level: Level { vars, ..*level },
                    })
                };
                let ahead = |&vars: &u64| Some((vars, pair(&[vars])?.ahead()));
                let sides: Vec<_> = level.vars.iter().filter_map(ahead).collect();
                let mut here: Vec<Finding> = Vec::new();
                for alike in sides.chunk_by(|a, b| a.1 == b.1) {
                    let vars = alike.iter().map(|(vars, _)| *vars).collect();
                    let Some(next) = finding(vars) else { continue };
                    let close = |f: &Finding| f.outcome() == Outcome::TooClose;
                    let both = here.last().filter(|last| close(last) && close(&next));
                    let both = both.map(|last| [&last.level.vars[..], &next.level.vars].concat());
                    match both.and_then(finding).filter(close) {
                        Some(both) => *here.last_mut().expect("one is close") = both,
                        None => here.push(next),
                    }
                }
                found.extend(here);
            }
        }
    }
    found
}
