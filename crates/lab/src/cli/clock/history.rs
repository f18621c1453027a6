//! The history of `corelay clock`: the file that keeps earlier calibrations, and the text about it.

use corelay::clock::{Calibration, History, HistoryError, Identity, Ordo, Record};
use corelay_lab_bench::ordered::clocks::history_file;
use serde::Serialize;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The most records that the text shows, the latest first.
const MAX_SHOWN: usize = 5;

/// The history that `corelay clock` uses, or the reason why there is none.
pub(super) struct StoredHistory {
    history: Result<History, String>,
    /// Records that were not used: the second of each since 1970, and the reason.
    passed_over: Vec<(u64, String)>,
    /// Whether `--history` named the file. If so, a failure to write it is an error.
    named: bool,
}

/// The history in the output of `--json`.
#[derive(Serialize)]
pub(super) struct Output<'a> {
    file: Option<&'a Path>,
    /// The reason why there is no history, if so.
    unavailable: Option<&'a str>,
    records: &'a [Record],
    /// Records of this boot that were not used, with the reasons.
    passed_over: Vec<PassedOver<'a>>,
}

/// A record of the history that was not used.
#[derive(Serialize)]
struct PassedOver<'a> {
    unix_s: u64,
    because: &'a str,
}

impl StoredHistory {
    /// Opens the history in `file`, or, if it is `None`, this machine's in the user's state folder.
    /// If `forget`, deletes the latter first.
    ///
    /// # Errors
    /// A sentence: the file is damaged, belongs to another machine, or cannot be read.
    pub(super) fn open(file: Option<PathBuf>, forget: bool) -> Result<Self, String> {
        let named = file.is_some();
        let none = |why: String| match named {
            true => Err(format!("--history: {why}")),
            false => Ok(Self {
                history: Err(why),
                passed_over: Vec::new(),
                named,
            }),
        };
        let identity = match Identity::current() {
            Ok(identity) => identity,
            Err(error) => return none(error.to_string()),
        };
        let Some(path) = file.or_else(|| history_file(&identity)) else {
            return none("there is no folder to keep it in, because HOME is not set".to_owned());
        };
        if forget && path.exists() {
            let removed = std::fs::remove_file(&path);
            removed.map_err(|error| format!("--forget: {}: {error}", path.display()))?;
        }
        let history = match History::open(path, identity) {
            Ok(history) => Ok(history),
            Err(error) if named => return Err(format!("--history: {error}")),
            Err(error @ HistoryError::File(..)) => Err(error.to_string()),
            Err(error) => return Err(format!("the history: {error} (--forget deletes it)")),
        };
        Ok(Self {
            history,
            passed_over: Vec::new(),
            named,
        })
    }

    /// Makes the clock of a calibration. Its boundary is raised to the largest that the history
    /// holds for this boot.
    pub(super) fn clock(&mut self, found: Calibration) -> Ordo {
        match &mut self.history {
            Ok(history) => {
                let passed_over = history.passed_over(&found);
                self.passed_over = passed_over.map(|(r, why)| (r.unix_s, why)).collect();
                history.clock(found)
            }
            Err(_) => Ordo::from_calibration(found),
        }
    }

    /// Writes the history.
    ///
    /// # Errors
    /// A sentence, if `--history` named the file. If the state folder cannot be written, only the
    /// next invocation goes without the history.
    pub(super) fn save(&mut self) -> Result<(), String> {
        let Ok(history) = &mut self.history else {
            return Ok(());
        };
        match history.save() {
            Err(error) if self.named => Err(format!("--history: {error}")),
            Err(error) => {
                self.history = Err(format!("it cannot be written: {error}"));
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Returns the history for the output of `--json`.
    pub(super) fn output(&self) -> Output<'_> {
        let history = self.history.as_ref();
        Output {
            file: history.ok().map(History::path),
            unavailable: history.err().map(String::as_str),
            records: history.ok().map_or(&[], History::records),
            passed_over: self
                .passed_over
                .iter()
                .map(|&(unix_s, ref because)| PassedOver { unix_s, because })
                .collect(),
        }
    }

    /// Appends the history to the text output.
    pub(super) fn write(&self, text: &mut String) {
        let history = match &self.history {
            Ok(history) => history,
            Err(why) => {
                let _ = writeln!(text, "history: unavailable: {why}");
                return;
            }
        };
        let of_now = |record: &&Record| history.is_of_this_boot(record);
        let now: Vec<f64> = history
            .records()
            .iter()
            .filter(of_now)
            .map(Record::boundary_ns)
            .collect();
        let (least, most) = (
            now.iter().copied().fold(f64::INFINITY, f64::min),
            now.iter().copied().fold(0.0, f64::max),
        );
        let _ = writeln!(
            text,
            "history: {} of this boot, with boundaries of {least:.1} to {most:.1} ns, and {} of earlier \
             boots; {}",
            now.len(),
            history.records().len() - now.len(),
            history.path().display()
        );
        for (unix_s, because) in &self.passed_over {
            let _ = writeln!(text, "  not used: {}: {because}", utc(*unix_s));
        }
        let last = history.records().iter().rev().take(MAX_SHOWN);
        for record in last {
            let boot = if history.is_of_this_boot(record) {
                ""
            } else {
                ", an earlier boot"
            };
            let composed = if record.composed { ", composed" } else { "" };
            let _ = writeln!(
                text,
                "  {}  {:>8.1} ns  {} CPUs{composed}{boot}",
                utc(record.unix_s),
                record.boundary_ns(),
                record.cpus.len()
            );
        }
    }
}

/// Formats a moment, given in seconds since 1970: `2024-02-29 23:59 UTC`.
fn utc(unix_s: u64) -> String {
    // Days are counted in the calendar's 400-year cycles. Years begin in March, so that a leap
    // day is the last day of its year.
    let (days, rest) = (unix_s / 86_400 + 719_468, unix_s % 86_400);
    let (cycle, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, after) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    let (year, hour, minute) = (400 * cycle + year + after, rest / 3_600, rest / 60 % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_formatted_as_dates() {
        let known = [
            (0, "1970-01-01 00:00 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (1_709_251_199, "2024-02-29 23:59 UTC"),
            (1_735_689_600, "2025-01-01 00:00 UTC"),
            (4_107_542_400, "2100-03-01 00:00 UTC"),
        ];
        for (unix_s, expected) in known {
            assert_eq!(utc(unix_s), expected);
        }
    }
}
