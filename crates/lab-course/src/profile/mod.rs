//! A profile of a rung by function (L7): perf samples what the inserting threads do.
//!
//! | module | idea |
//! |---|---|
//! | `samples` | the report of perf, read |
//! | `show` | the output: the hottest objects and functions, and sentences about them |
//!
//! perf samples by the kernel's timer (the event `cpu-clock`), which needs no counter of the
//! processor. The rung runs in a process of its own, so that nothing else of the lab is in it; of that
//! process only the threads that insert count.

mod samples;
mod show;

use crate::list::climb::{Point, Seconds};
use crate::list::job::{Job, Pages};
use crate::list::ladder::{PADDING, PARTS_OF_A_THREAD};
use crate::list::rungs::Rung;
use crate::shown::Shown;
use samples::Profile;
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::Command;

/// Samples of a thread in a second: not a divisor of the kernel's own timers.
const RATE: &str = "997";

/// The rung to profile, and the size of its runs.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The rung.
    pub rung: &'static Rung,
    /// Threads that insert.
    pub threads: usize,
    /// Keys of each thread, inserted again and again.
    pub share: usize,
    /// Time to insert for, in seconds.
    pub secs: f64,
}

/// The reason why there is no profile.
#[derive(Debug)]
pub enum NoProfile {
    /// This machine has no perf, or does not permit it: a sentence.
    Unavailable(String),
    /// The profiled program failed: a sentence.
    Failed(String),
}

impl Plan {
    /// Runs the rung until it has inserted for the plan's time. This is what perf looks at.
    ///
    /// # Errors
    /// A sentence if a list is wrong, or the system gives too few threads.
    pub fn run(
        &self,
        cpus: &[Option<usize>],
        is_interrupted: impl Fn() -> bool,
    ) -> Result<(), String> {
        let point = Point {
            rung: self.rung,
            threads: self.threads,
            share: self.share,
            parts: PARTS_OF_A_THREAD * self.threads,
            equal_shares: false,
            padding: PADDING,
            pages: Pages::Touched,
            neighbour: false,
            watched: false,
        };
        let seconds = Seconds {
            secs: self.secs,
            most_keys: self.share * self.threads,
        };
        let keys = Job::table(seconds.most_keys);
        let cpus: Vec<_> = cpus.iter().copied().take(self.threads).collect();
        let ended = point.run_for(&cpus, &keys, Some(seconds), is_interrupted);
        ended.fault.map_or(Ok(()), Err)
    }

    /// Lets perf look at `program`, which must run this plan and nothing else, and reads its report.
    /// `top` is the number of functions to show.
    ///
    /// # Errors
    /// [`NoProfile`] if perf is missing, not permitted, or the program failed.
    pub fn profile(&self, program: &Path, args: &[&OsStr], top: usize) -> Result<Shown, NoProfile> {
        let folder = tempfile::tempdir().map_err(|error| {
            NoProfile::Unavailable(format!("no folder for perf's file could be made: {error}"))
        })?;
        let file = folder.path().join("perf.data");
        let mut record = perf("record");
        record.args(["-e", "cpu-clock", "-F", RATE, "-o"]);
        record.arg(&file).arg("--").arg(program).args(args);
        let recorded = record.output().map_err(|error| missing(&error))?;
        let said = String::from_utf8_lossy(&recorded.stderr);
        if !file.is_file() {
            return Err(NoProfile::Unavailable(refused(&said)));
        }
        if !recorded.status.success() {
            return Err(NoProfile::Failed(failed(&said)));
        }
        let mut report = perf("report");
        report.args(["--stdio", "--no-children", "-F", "sample,comm,dso,sym"]);
        report.args(["-t", "|", "-i"]).arg(&file);
        let reported = report.output().map_err(|error| missing(&error))?;
        let text = String::from_utf8_lossy(&reported.stdout);
        match Profile::read(&text) {
            Some(profile) => Ok(self.shown(&profile, top)),
            None => {
                let said = String::from_utf8_lossy(&reported.stderr);
                Err(NoProfile::Unavailable(match reported.status.success() {
                    true => {
                        "perf took no sample of an inserting thread; give more --secs".to_owned()
                    }
                    false => refused(&said),
                }))
            }
        }
    }
}

/// Makes a command of perf that no settings of the user change.
fn perf(command: &str) -> Command {
    let mut perf = Command::new("perf");
    perf.arg(command).env("PERF_CONFIG", "/dev/null");
    perf.env("LC_ALL", "C").env("PERF_PAGER", "cat");
    perf
}

fn missing(error: &io::Error) -> NoProfile {
    NoProfile::Unavailable(match error.kind() {
        io::ErrorKind::NotFound => {
            "the program perf is not installed (packages call it perf or linux-tools); `corelay lab why` needs \
             none"
                .to_owned()
        }
        _ => format!("perf cannot be started: {error}"),
    })
}

/// Says why perf has recorded nothing, by its own first line.
fn refused(said: &str) -> String {
    let mut lines = said.lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty() && *line != "Error:");
    format!(
        "perf refuses: {}; `corelay lab why` needs no perf",
        first.unwrap_or("it gives no reason").trim_end_matches('.')
    )
}

/// Says why the profiled program failed, by its own error.
fn failed(said: &str) -> String {
    let error = said.lines().find_map(|line| line.strip_prefix("error: "));
    let any = said.lines().find(|line| !line.trim().is_empty());
    error
        .or(any)
        .unwrap_or("the profiled program failed")
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list::rungs;

    const PLAN: Plan = Plan {
        rung: &rungs::RUNGS[0],
        threads: 2,
        share: 1_000,
        secs: 0.01,
    };

    #[test]
    fn the_profiled_program_inserts_and_checks() {
        for rung in rungs::RUNGS {
            let plan = Plan { rung, ..PLAN };
            assert_eq!(plan.run(&[None, None], || false), Ok(()), "{}", rung.name);
        }
    }

    #[test]
    fn each_refusal_is_one_sentence() {
        let told = |error| match missing(&error) {
            NoProfile::Unavailable(text) => text,
            NoProfile::Failed(text) => panic!("{text}"),
        };
        assert!(told(io::ErrorKind::NotFound.into()).contains("not installed"));
        assert!(told(io::ErrorKind::PermissionDenied.into()).contains("cannot be started"));
        let said = "Error:\nAccess to performance monitoring and observability operations is limited.\nMore";
        assert!(refused(said).contains("operations is limited; "));
        assert!(refused("").contains("no reason"));
        assert_eq!(failed("[ perf record: … ]\nerror: it broke\n"), "it broke");
        assert_eq!(failed("killed\n"), "killed");
    }
}
