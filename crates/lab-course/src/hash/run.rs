//! Builds and runs an answer, within limits.

use super::fault::{Fault, Kind};
use super::project::{Answer, Workshop};
use corelay_history::model::map::{Map, Operation};
use corelay_history::{Failure, History};
use corelay_lab_bench::peer::child::{self, End, Limits, Watched};
use corelay_sync::facade::atomic::AtomicBool;
use serde::Deserialize;
use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::BuildHasher;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The least time that building gets. A slow machine is not the answer's fault.
pub(crate) const BUILD_LIMIT: Duration = Duration::from_secs(120);

/// Time for the long stages of a check together: those that look for rare faults. A sixth of the
/// limit, if that is less.
pub(super) const LENGTH: Duration = Duration::from_secs(10);

/// Bytes that a program may print before it is stopped.
const MAX_OUTPUT_BYTES: u64 = 1 << 20;

/// Lines shown of a compiler's error.
const SHOWN_ERROR_LINES: usize = 16;

/// The limits on building and running an answer.
#[derive(Clone, Copy, Debug)]
pub struct Limited<'a> {
    /// Time for the check and for measuring, each. Building gets at least `BUILD_LIMIT`.
    pub limit: Duration,
    /// A flag that Ctrl-C sets.
    pub interrupted: &'a AtomicBool,
}

/// The result of building or running an answer. The inner error is the answer's fault; the outer
/// one is not.
pub(crate) type AnswerResult<T> = Result<Result<T, Fault>, String>;

/// The amount of work of a check that found no fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Checked {
    /// Short rounds of threads that ran at the same time, recorded for the lab.
    pub(crate) rounds: usize,
    /// Calls in these rounds.
    pub(crate) calls: usize,
    /// Short rounds of threads that took turns.
    #[serde(default)]
    pub(crate) turn_rounds: usize,
    /// Calls in these rounds.
    #[serde(default)]
    pub(crate) turn_calls: usize,
    /// Lookups of keys that were just inserted or removed.
    #[serde(default)]
    pub(crate) lookups: usize,
    /// Whether the locks had no points, because the answer builds only without them.
    #[serde(skip)]
    pub(crate) is_plain: bool,
}

/// A message of the checking program: a line of `messages.jsonl`.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum CheckLine {
    Stage(String),
    Fault { kind: Kind, what: String },
    Done(Checked),
}

impl Limited<'_> {
    /// Returns a command for cargo, with plain messages.
    ///
    /// # Errors
    /// A sentence that says that there is no cargo.
    pub(super) fn cargo(&self) -> Result<Command, String> {
        let mut cargo = corelay_lab_bench::peer::cargo()
            .map_err(|error| format!("the exercise is built with cargo, which is {error}"))?;
        cargo.env("LC_ALL", "C").env("CARGO_TERM_COLOR", "never");
        Ok(cargo)
    }

    pub(super) fn watch(&self, command: &mut Command) -> Result<Watched, String> {
        self.watch_for(self.limit, command)
    }

    fn watch_for(&self, time: Duration, command: &mut Command) -> Result<Watched, String> {
        let limits = Limits {
            time,
            output: MAX_OUTPUT_BYTES,
            group: true,
        };
        let program = command.get_program().display().to_string();
        let watched = child::watch(command, limits, self.interrupted)
            .map_err(|error| format!("{program} cannot be run: {error}"))?;
        match watched.end {
            End::Interrupted => Err("interrupted; nothing was marked".to_owned()),
            _ => Ok(watched),
        }
    }

    /// Builds the programs for an answer. Leaves the measuring one out unless `measure` is set.
    /// Returns whether the answer's locks have points.
    ///
    /// # Errors
    /// A sentence if the answer is not to blame.
    pub(crate) fn build(
        &self,
        workshop: &Workshop,
        answer: &Answer,
        measure: bool,
    ) -> AnswerResult<bool> {
        if self.build_with(workshop, answer, measure, true)?.is_ok() {
            return Ok(Ok(true));
        }
        // The answer may use something of the real `std` that the one with points lacks.
        let built = self.build_with(workshop, answer, measure, false)?;
        Ok(built.map(|()| false))
    }

    fn build_with(
        &self,
        workshop: &Workshop,
        answer: &Answer,
        measure: bool,
        has_points: bool,
    ) -> AnswerResult<()> {
        workshop.take(answer, has_points)?;
        let mut cargo = self.cargo()?;
        cargo
            .current_dir(workshop.harness())
            .args(["build", "--quiet", "--release", "--offline", "--target-dir"])
            .arg(workshop.target())
            // Running unsafe code cannot show that it is sound, so it is forbidden.
            .env("RUSTFLAGS", "-F unsafe_code");
        if measure {
            cargo.args(["--features", "scale"]);
        }
        let time = self.limit.max(BUILD_LIMIT);
        let built = self.watch_for(time, &mut cargo)?;
        let fault = |kind, what: String, listing: Option<String>| Fault {
            kind,
            stage: None,
            what,
            listing,
        };
        let log = &built.stderr;
        Ok(Err(match built.end {
            End::Ended(status) if status.success() => return Ok(Ok(())),
            End::TooLong => {
                let what = format!("it was stopped after {} s", time.as_secs());
                fault(Kind::Hang, format!("building: {what}"), None)
            }
            _ => {
                let error = first_error(log);
                let first = error.lines().next().unwrap_or("cargo says nothing");
                let ours = log.contains("could not compile `corelay-hash-checker`");
                let kind = if ours { Kind::Unfit } else { Kind::Build };
                fault(kind, first.to_owned(), Some(error.clone()))
            }
        }))
    }

    /// Runs the check that was built, with the choices that a seed makes.
    ///
    /// # Errors
    /// A sentence if the answer is not to blame.
    pub(crate) fn check(&self, workshop: &Workshop, seed: u64) -> AnswerResult<Checked> {
        let program = workshop.program("check");
        let length = (self.limit / 6).min(LENGTH);
        self.check_by(&program, &workshop.left(), length, seed)
    }

    /// Runs a program that checks, in a folder. Its long stages take `length` together.
    pub(super) fn check_by(
        &self,
        program: &Path,
        left: &Path,
        length: Duration,
        seed: u64,
    ) -> AnswerResult<Checked> {
        let mut program = Command::new(program);
        let numbers = [self.limit.as_secs(), seed, length.as_millis() as u64];
        program.arg(left).args(numbers.map(|n| n.to_string()));
        // Removes the files of an earlier answer, so that they are not taken for this one's.
        for name in ["messages.jsonl", "history.jsonl"] {
            let _ = fs::remove_file(left.join(name));
        }
        let ran = self.watch(program.current_dir(left))?;
        let messages = fs::read_to_string(left.join("messages.jsonl")).unwrap_or_default();
        let explained = || {
            let history = History::load(left.join("history.jsonl"));
            explained(&history.map_err(|error| format!("the recorded calls: {error}"))?)
        };
        match judged(&messages, &ran, self.limit) {
            Ok(checked) => Ok(explained()?.map(|()| checked)),
            // The program finds the calls; the lab judges them itself, and shows them.
            Err(fault) if fault.kind == Kind::Order => match explained()? {
                Err(order) => Ok(Err(Fault {
                    stage: fault.stage,
                    ..order
                })),
                Ok(()) => Err(format!(
                    "the check and the lab differ about recorded calls ({})",
                    fault.what
                )),
            },
            Err(fault) => Ok(Err(fault)),
        }
    }
}

/// Returns a seed that differs from run to run.
pub(crate) fn new_seed() -> u64 {
    RandomState::new().hash_one(0)
}

/// Returns the fault of a process that ended badly: its kind, and the end of a sentence.
pub(super) fn bad_end(ran: &Watched, limit: Duration) -> Option<(Kind, String)> {
    Some(match &ran.end {
        End::Ended(status) if status.success() => return None,
        End::TooLong | End::Interrupted => {
            let limit = limit.as_secs();
            let what = format!("it was stopped after {limit} s; --limit gives it more");
            (Kind::Hang, what)
        }
        End::TooMuch => {
            let what = format!("it was stopped after {} KiB", MAX_OUTPUT_BYTES / 1024);
            (Kind::Output, what)
        }
        End::Ended(status) => {
            let last = ran.stderr.lines().rev().find(|line| !line.is_empty());
            let said = last.map_or(String::new(), |last| format!(", after `{last}`"));
            (Kind::Ended, format!("{status}{said}"))
        }
    })
}

/// Judges an answer by the lines of the check and by the end of its process.
fn judged(messages: &str, ran: &Watched, limit: Duration) -> Result<Checked, Fault> {
    let (mut stage, mut done) = (None, None);
    let fault = |stage, kind, what| Fault {
        kind,
        stage,
        what,
        listing: None,
    };
    // A process that was stopped may have left half a line.
    for line in messages
        .lines()
        .map_while(|line| serde_json::from_str(line).ok())
    {
        match line {
            CheckLine::Stage(name) => stage = Some(name),
            CheckLine::Fault { kind, what } => return Err(fault(stage, kind, what)),
            CheckLine::Done(checked) => done = Some(checked),
        }
    }
    match (bad_end(ran, limit), done) {
        (Some((kind, what)), _) => Err(fault(stage, kind, what)),
        (None, Some(checked)) => Ok(checked),
        (None, None) => {
            let what = "it called `exit` or ended the process in another way";
            Err(fault(stage, Kind::Ended, what.to_owned()))
        }
    }
}

/// Checks that some order of the calls explains the answers.
fn explained(history: &History<Operation<u64, u64>, Option<u64>>) -> AnswerResult<()> {
    match corelay_history::check(&Map::new(), history) {
        Ok(()) => Ok(Ok(())),
        Err(Failure::NotLinearizable(found)) => {
            let (thread, call) = found.unexplained();
            let what = format!(
                "no order of the calls explains what thread {thread} was answered at `{:?}`",
                call.operation()
            );
            Ok(Err(Fault {
                kind: Kind::Order,
                stage: Some("recorded histories".to_owned()),
                what,
                listing: Some(found.to_string()),
            }))
        }
        Err(gave_up) => Err(format!("the recorded calls cannot be judged: {gave_up}")),
    }
}

/// Returns the first error of a log, without the warnings before it and the lines after it.
pub(super) fn first_error(log: &str) -> String {
    let is_error = |line: &&str| line.starts_with("error");
    let mut lines: Vec<&str> = log
        .lines()
        .skip_while(|line| !is_error(line))
        .take_while(|line| !line.trim().is_empty())
        .take(SHOWN_ERROR_LINES)
        .collect();
    if lines.is_empty() {
        lines.extend(log.lines().rev().find(|line| !line.trim().is_empty()));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use corelay_history::Call;

    #[test]
    fn the_first_error_is_returned() {
        let log = "warning: unused\n --> src/lib.rs:1\n\nerror[E0425]: cannot find `x`\n \
                   --> src/lib.rs:3:5\n\nerror: aborting\n";
        assert_eq!(
            first_error(log),
            "error[E0425]: cannot find `x`\n --> src/lib.rs:3:5"
        );
        assert_eq!(first_error("no toolchain\n\n"), "no toolchain");
        assert_eq!(first_error(""), "");
        assert_eq!(
            first_error(&"error\n".repeat(100)).lines().count(),
            SHOWN_ERROR_LINES
        );
    }

    fn ran(end: End) -> Watched {
        Watched {
            end,
            stdout: String::new(),
            stderr: "first\nmemory allocation failed\n\n".to_owned(),
        }
    }

    const LIMIT: Duration = Duration::from_secs(7);
    const STAGE: &str = "{\"stage\":\"one thread alone\"}\n";
    const DONE: &str = "{\"done\":{\"rounds\":3,\"calls\":12}}\n";

    fn ended(code: i32) -> End {
        use std::process::ExitStatus;
        #[cfg(unix)]
        let status = std::os::unix::process::ExitStatusExt::from_raw(code << 8);
        #[cfg(windows)]
        let status = std::os::windows::process::ExitStatusExt::from_raw(code as u32);
        let status: ExitStatus = status;
        End::Ended(status)
    }

    #[test]
    fn the_lines_of_a_check_are_judged() {
        let judge = |messages: &str, end| judged(messages, &ran(end), LIMIT);
        let well = judge(&[STAGE, DONE].concat(), ended(0));
        let checked = Checked {
            rounds: 3,
            calls: 12,
            ..Checked::default()
        };
        assert_eq!(well, Ok(checked));
        let fault = "{\"fault\":{\"kind\":\"lost\",\"what\":\"key 5\"}}\n";
        for (messages, end, kind, words) in [
            ([STAGE, fault].concat(), ended(1), Kind::Lost, "key 5"),
            (STAGE.to_owned(), ended(0), Kind::Ended, "exit"),
            (STAGE.to_owned(), ended(3), Kind::Ended, "memory allocation"),
            (STAGE.to_owned(), End::TooLong, Kind::Hang, "after 7 s"),
            (STAGE.to_owned(), End::TooMuch, Kind::Output, "1024 KiB"),
            ([STAGE, "{\"sta"].concat(), End::TooLong, Kind::Hang, "7 s"),
            // The check was done, and then the process did not end.
            ([STAGE, DONE].concat(), End::TooLong, Kind::Hang, "7 s"),
            ([STAGE, DONE].concat(), ended(1), Kind::Ended, "1"),
        ] {
            let fault = judge(&messages, end).unwrap_err();
            assert_eq!(fault.kind, kind, "{fault}");
            assert!(fault.what.contains(words), "{fault}");
            assert_eq!(fault.stage.as_deref(), Some("one thread alone"));
        }
        assert_eq!(judge("", ended(0)).unwrap_err().stage, None);
    }

    #[test]
    fn a_stale_answer_has_no_explanation() {
        let mut history = History::new();
        history.push(0, Call::returned(Operation::Insert(1, 7), 0..=1, None));
        assert_eq!(explained(&history), Ok(Ok(())));
        history.push(1, Call::returned(Operation::Get(1), 2..=3, None));
        let fault = explained(&history).unwrap().unwrap_err();
        assert_eq!(fault.kind, Kind::Order);
        assert!(fault.listing.unwrap().contains("get 1"));
    }
}
