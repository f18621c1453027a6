//! Advice on the method to use, by the program's need of an operation.

use super::findings::Finding;
use super::judge::Judge;
use super::level::Level;
use crate::method::{self, Form};
use crate::words;
use corelay_lab_measure::schema::Mode;

/// A program's need of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// An operation that the hardware has an instruction for.
    Instruction,
    /// Any code, with its answer at once.
    AnswerNow,
    /// Any code; the answer may come later. Methods that answer at once fulfil this, too.
    AnswerLater,
    /// Any code, without an answer.
    NoAnswer,
}

impl Need {
    /// All needs, in the order in which advice is printed.
    pub(crate) const ALL: [Self; 4] = [
        Self::Instruction,
        Self::AnswerNow,
        Self::AnswerLater,
        Self::NoAnswer,
    ];

    /// Returns the needs that some method fulfils somewhere. For a structure that no instruction
    /// can work on, single instructions are not mentioned.
    pub(crate) fn met(advice: &[Advice]) -> Vec<Self> {
        let all = Self::ALL.into_iter();
        all.filter(|&need| advice.iter().any(|a| !a.use_what[need as usize].is_empty()))
            .collect()
    }

    /// Returns the need in a few words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Instruction => "one instruction does it",
            Self::AnswerNow => "any code, answer at once",
            Self::AnswerLater => "any code, answer later",
            Self::NoAnswer => "any code, no answer",
        }
    }

    /// Returns the need in two words, for the head of a column.
    pub(crate) fn short(self) -> &'static str {
        match self {
            Self::Instruction => "instruction",
            Self::AnswerNow => "answer at once",
            Self::AnswerLater => "answer later",
            Self::NoAnswer => "no answer",
        }
    }

    /// Returns the methods that fulfil the need. One that answers later costs its caller something
    /// else, so it does not stand beside a single instruction.
    pub(crate) fn candidates(self) -> Vec<&'static str> {
        let forms: &[Form] = match self {
            Self::Instruction => &[Form::Instruction, Form::Waits],
            Self::AnswerNow => &[Form::Waits],
            Self::AnswerLater => &[Form::Waits, Form::Later],
            Self::NoAnswer => &[Form::Waits, Form::Later, Form::OneWay],
        };
        let fits = |m: &&method::Method| forms.contains(&m.form);
        method::METHODS
            .iter()
            .filter(fits)
            .map(|m| m.name)
            .collect()
    }
}

/// The methods to use on a level.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// The level of contention that the advice is for.
    pub(crate) level: Level,
    /// For each need of [`Need::ALL`] and mode, the fastest method and those that cannot be told
    /// from it. A mode without enough samples is left out.
    pub(crate) use_what: [Vec<(Mode, Vec<String>)>; 4],
}

impl Advice {
    /// Formats the advice for a need: one line if the modes agree, else one for each mode.
    pub(crate) fn lines(&self, need: Need) -> Vec<String> {
        let by_mode = &self.use_what[need as usize];
        let listed = |methods: &[String]| {
            let mut names: Vec<String> = methods.iter().map(|m| words::code(m)).collect();
            if names.len() > MAX_NAMED_METHODS {
                let others = names.split_off(MAX_NAMED_METHODS - 1).len();
                names.push(format!("{others} others"));
            }
            words::or(&names)
        };
        match by_mode.as_slice() {
            [] => vec!["–".to_owned()],
            [(_, first), rest @ ..] if rest.iter().all(|(_, m)| m == first) => vec![listed(first)],
            all => all
                .iter()
                .map(|(mode, m)| format!("{}: {}", words::mode(*mode), listed(m)))
                .collect(),
        }
    }
}

/// The most methods that are named if none is clearly the fastest.
const MAX_NAMED_METHODS: usize = 4;

/// Advises on every level that was measured well enough. A level is divided where `findings`
/// divide it and the advice differs. `instruction` says whether the hardware has an instruction
/// for the operation.
pub(super) fn advice(
    judge: &Judge<'_>,
    levels: &[Level],
    findings: &[Finding],
    instruction: bool,
) -> Vec<Advice> {
    let for_need = |level: &Level, need: Need| -> Vec<(Mode, Vec<String>)> {
        let modes = judge.modes().into_iter();
        modes
            .map(|mode| {
                let leaders = judge.leaders(&level.vars, mode, &need.candidates());
                (
                    mode,
                    leaders.into_iter().map(str::to_owned).collect::<Vec<_>>(),
                )
            })
            .filter(|(_, leaders)| !leaders.is_empty())
            .collect()
    };
    let on = |level: Level| Advice {
        use_what: Need::ALL.map(|need| match need {
            Need::Instruction if !instruction => Vec::new(),
            need => for_need(&level, need),
        }),
        level,
    };
    let together = |mut all: Vec<Advice>, next: Advice| {
        match all.last_mut() {
            Some(last) if last.use_what == next.use_what => last.level.vars.extend(next.level.vars),
            _ => all.push(next),
        }
        all
    };
    let of_level = |level| parts(level, findings).map(on).fold(Vec::new(), together);
    let all = levels.iter().flat_map(of_level);
    all.filter(|a| a.use_what.iter().any(|w| !w.is_empty()))
        .collect()
}

/// Returns the parts into which findings divide a level.
fn parts(level: &Level, findings: &[Finding]) -> impl Iterator<Item = Level> {
    let begins = |vars: &u64| findings.iter().any(|f| f.level.vars.first() == Some(vars));
    let parts = level.vars.chunk_by(move |_, next| !begins(next));
    parts.map(|vars| Level {
        vars: vars.to_vec(),
        ..*level
    })
}
