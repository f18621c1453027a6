//! The five benchmarks of fibres on other runtimes (*peers*): small programs, built and run here.
//!
//! | module | contents |
//! |---|---|
//! | `sources` | the programs' sources, in `crates/lab-bench/peers` and embedded here |
//! | `toolchain` | the tools that build the programs |
//! | `build` | builds a program once, into the cache folder |
//! | `run` | runs a program: flags in, one line of JSON out, which is checked |
//! | `child` | a process that is stopped when it exceeds its limits |
//!
//! Nothing of this happens in `cargo build`: a program is built when it is first measured, with
//! the toolchain that is found then. It is kept under its name and a hash of its sources, of the
//! tool's path and of its version. The folder is `$CORELAY_CACHE/peers`, else
//! `$XDG_CACHE_HOME/corelay/peers`, else `~/.cache/corelay/peers`.
//!
//! The comment at the head of each program names the runtime's features that it uses, and where
//! the benchmark differs.

mod build;
pub mod child;
mod run;
#[cfg(all(test, unix))]
mod smoke;
mod sources;
mod toolchain;

use crate::fibres::spec::Spec;
use corelay_lab_measure::schema::fibres::FibreResult;
use corelay_sync::facade::atomic::AtomicBool;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, OnceLock};
use std::time::Duration;
use toolchain::Toolchain;

pub use toolchain::cargo;

/// A runtime that is not corelay's, and the program that measures it.
#[derive(Debug)]
pub(crate) struct Peer {
    name: &'static str,
    what: &'static str,
    toolchain: Toolchain,
    sources: sources::Files,
    /// The path of the program, once it was asked for.
    program: OnceLock<Result<PathBuf, Error>>,
}

/// The catalogue of peers.
pub(crate) static PEERS: LazyLock<Vec<Peer>> = LazyLock::new(|| {
    vec![
        Peer::new(
            "tokio",
            "Tokio's tasks, which are polled",
            Toolchain::Cargo,
            sources::TOKIO,
        ),
        Peer::new("go", "Go's goroutines", Toolchain::Go, sources::GO),
        Peer::new(
            "boost",
            "Boost.Fiber's fibres",
            Toolchain::Boost,
            sources::BOOST,
        ),
        Peer::new("may", "may's coroutines", Toolchain::Cargo, sources::MAY),
        Peer::new(
            "libfibre",
            "libfibre's fibres, from the folder that CORELAY_LIBFIBRE names",
            Toolchain::Libfibre,
            sources::LIBFIBRE,
        ),
    ]
});

/// The reason why a peer has no figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// A part of the toolchain is missing on this machine: a clause that names it.
    NotInstalled(String),
    /// The toolchain is there, but the build failed.
    BuildFailed {
        /// The output of the toolchain.
        log: String,
    },
    /// The program ended with an error.
    Failed {
        /// The exit status, or the step that failed.
        status: String,
        /// The output of the program, or the system's error.
        message: String,
    },
    /// The program did not end, and was stopped.
    Hung {
        /// The time limit that it exceeded.
        after: Duration,
    },
    /// The program succeeded, but its result cannot be right: a clause with the reason.
    Unusable(String),
    /// The caller was interrupted, and the program was stopped.
    Interrupted,
}

impl Peer {
    fn new(
        name: &'static str,
        what: &'static str,
        toolchain: Toolchain,
        sources: sources::Files,
    ) -> Self {
        Self {
            name,
            what,
            toolchain,
            sources,
            program: OnceLock::new(),
        }
    }

    /// The name on the command line and in results.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// A description of the runtime, in a clause.
    pub(crate) fn what(&self) -> &'static str {
        self.what
    }

    /// Builds the program, unless the cache folder has it. A failure is remembered, too.
    ///
    /// # Errors
    /// [`Error::NotInstalled`] or [`Error::BuildFailed`].
    pub(crate) fn prepare(&self) -> Result<(), Error> {
        self.program().map(|_| ())
    }

    /// Runs the benchmark once, on the CPUs of the calling thread, and checks the result. Builds
    /// the program first if necessary.
    ///
    /// # Errors
    /// Any of [`Error`].
    pub(crate) fn run(&self, spec: &Spec, interrupted: &AtomicBool) -> Result<FibreResult, Error> {
        run::run(self.name, self.program()?, spec, interrupted)
    }

    /// The path of the program, which is built if necessary.
    fn program(&self) -> Result<&Path, Error> {
        let find = || build::program(self, &build::cache_folder()?);
        match self.program.get_or_init(find) {
            Ok(path) => Ok(path),
            Err(error) => Err(error.clone()),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotInstalled(what) => write!(f, "not installed: {what}"),
            Self::BuildFailed { log } => {
                write!(f, "its program could not be built: {}", decisive_line(log))
            }
            Self::Failed { status, message } => {
                write!(
                    f,
                    "its program failed ({status}): {}",
                    decisive_line(message)
                )
            }
            Self::Hung { after } => write!(
                f,
                "its program did not end within {} s and was stopped",
                after.as_secs()
            ),
            Self::Unusable(why) => write!(f, "its program's result cannot be used: {why}"),
            Self::Interrupted => f.write_str("its program was interrupted"),
        }
    }
}

impl std::error::Error for Error {}

/// The most useful line of an output: the first that names an error, else the last.
fn decisive_line(output: &str) -> &str {
    let lines = || {
        output
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
    };
    let error = |line: &&str| line.contains("error") && !line.contains("warning");
    let found = lines().find(error).or_else(|| lines().next_back());
    found.unwrap_or("it said nothing")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_is_one_sentence() {
        let log = "compiling\nmain.c:3: error: no such thing\nerror: 2 errors\n";
        let failed = |message: &str| Error::Failed {
            status: "exit status: 3".to_owned(),
            message: message.to_owned(),
        };
        let after = Duration::from_secs(61);
        let sentences = [
            (
                Error::NotInstalled("there is no `go`".to_owned()),
                "not installed: there is no `go`",
            ),
            (
                Error::BuildFailed {
                    log: log.to_owned(),
                },
                "its program could not be built: main.c:3: error: no such thing",
            ),
            (
                failed("first\nlast\n\n"),
                "its program failed (exit status: 3): last",
            ),
            (
                failed(""),
                "its program failed (exit status: 3): it said nothing",
            ),
            (
                Error::Hung { after },
                "its program did not end within 61 s and was stopped",
            ),
        ];
        for (error, sentence) in sentences {
            assert_eq!(error.to_string(), sentence);
        }
    }
}
