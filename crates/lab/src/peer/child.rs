//! A process that is stopped when it takes too long.

use corelay_sync::facade::atomic::{AtomicBool, Ordering};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How often it is looked whether a process has ended: rarely, for it may be measuring.
const LOOK: Duration = Duration::from_millis(20);

/// What came of a process that ended by itself.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// Why one did not.
#[derive(Debug)]
pub(super) enum Stopped {
    /// It could not be started, or not be waited for.
    System(io::Error),
    TooLong,
    Interrupted,
}

/// Runs a command, without input, until it ends or is stopped.
///
/// What it prints goes to files: a pipe fills up unless somebody reads, and stays open while
/// any child of a stopped process lives.
pub(super) fn run(
    command: &mut Command,
    limit: Duration,
    interrupted: &AtomicBool,
) -> Result<Ended, Stopped> {
    let (stdout, stderr) = (tempfile::tempfile()?, tempfile::tempfile()?);
    command
        .stdin(Stdio::null())
        .stdout(stdout.try_clone()?)
        .stderr(stderr.try_clone()?);
    let mut child = command.spawn()?;
    let status = wait(&mut child, limit, interrupted).inspect_err(|_| {
        // It may just have ended; nothing is left to be done then.
        let _ = child.kill();
        let _ = child.wait();
    })?;
    Ok(Ended {
        status,
        stdout: text(stdout)?,
        stderr: text(stderr)?,
    })
}

fn wait(
    child: &mut Child,
    limit: Duration,
    interrupted: &AtomicBool,
) -> Result<ExitStatus, Stopped> {
    let since = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        // Relaxed: the flag carries nothing.
        if interrupted.load(Ordering::Relaxed) {
            return Err(Stopped::Interrupted);
        }
        if since.elapsed() > limit {
            return Err(Stopped::TooLong);
        }
        std::thread::sleep(LOOK);
    }
}

fn text(mut file: File) -> io::Result<String> {
    file.rewind()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn sh(script: &str, limit: Duration, interrupted: bool) -> Result<Ended, Stopped> {
        let mut command = Command::new("sh");
        run(
            command.args(["-c", script]),
            limit,
            &AtomicBool::new(interrupted),
        )
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn what_it_says_and_how_it_ends() {
        let ended = sh("echo out; echo err >&2; exit 7", LONG, false).unwrap();
        assert_eq!(ended.status.code(), Some(7));
        assert_eq!(
            (ended.stdout.as_str(), ended.stderr.as_str()),
            ("out\n", "err\n")
        );
    }

    /// More than a pipe holds.
    #[test]
    fn much_output_does_not_block_it() {
        let script =
            "i=0; while [ $i -lt 4000 ]; do echo 0123456789012345678901234567890; i=$((i+1)); done";
        assert_eq!(sh(script, LONG, false).unwrap().stdout.len(), 4000 * 32);
    }

    /// It is waited for as well: were it not stopped, this would take very long.
    #[test]
    fn a_process_that_hangs_is_stopped() {
        let stopped = sh("exec sleep 10000", Duration::ZERO, false);
        assert!(matches!(stopped, Err(Stopped::TooLong)));
    }

    #[test]
    fn an_interrupt_stops_it() {
        let stopped = sh("exec sleep 10000", LONG, true);
        assert!(matches!(stopped, Err(Stopped::Interrupted)));
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error() {
        let mut command = Command::new("/nonexistent/program");
        let stopped = run(&mut command, LONG, &AtomicBool::new(false));
        assert!(matches!(stopped, Err(Stopped::System(_))));
    }
}
