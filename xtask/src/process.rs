//! Children: started with a clean environment, watched, their closing lines kept.

use anyhow::{Context, Result};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Variables that `cargo run` set for xtask and that would confuse the next cargo.
const LEFT_BY_CARGO: &[&str] = &[
    "CARGO_PKG_",
    "CARGO_MANIFEST_",
    "CARGO_BIN_",
    "CARGO_PRIMARY_",
];

/// The cargo that started xtask, to be run in `dir`.
pub(crate) fn cargo(dir: &Path) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    clean(Command::new(program), dir)
}

/// Any program, to be run in `dir` without input and without what cargo set for xtask.
pub(crate) fn program(name: impl AsRef<std::ffi::OsStr>, dir: &Path) -> Command {
    clean(Command::new(name), dir)
}

fn clean(mut command: Command, dir: &Path) -> Command {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if LEFT_BY_CARGO.iter().any(|prefix| text.starts_with(prefix)) {
            command.env_remove(&name);
        }
    }
    // Set by `cargo run` to the libraries of its own toolchain.
    command.env_remove("LD_LIBRARY_PATH");
    command.current_dir(dir).stdin(Stdio::null());
    command
}

/// The command as it would be typed.
pub(crate) fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut text = crate::workspace::file_name(program);
    for arg in command.get_args() {
        text.push(' ');
        text.push_str(&arg.to_string_lossy());
    }
    text
}

/// A child that has ended or was stopped.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The exit code, where it ended by itself and not by a signal.
    pub(crate) code: Option<i32>,
    /// It had to be stopped at its time limit.
    pub(crate) timed_out: bool,
    /// Standard output and standard error, as they came.
    pub(crate) output: String,
    /// Wall time.
    pub(crate) time: Duration,
}

impl Ended {
    /// Exit code 0, in time.
    pub(crate) fn good(&self) -> bool {
        self.code == Some(0) && !self.timed_out
    }

    /// How it ended, in words.
    pub(crate) fn how(&self) -> String {
        match self.code {
            _ if self.timed_out => format!("stopped after {}", seconds(self.time)),
            Some(code) => format!("exit code {code}"),
            None => "ended by a signal".to_owned(),
        }
    }
}

/// Runs a command to its end, or until `limit`, and keeps what it prints.
pub(crate) fn capture(mut command: Command, limit: Option<Duration>) -> Result<Ended> {
    let what = command.get_program().to_string_lossy().into_owned();
    let (mut reader, writer) = std::io::pipe()?;
    command.stdout(writer.try_clone()?).stderr(writer);
    let start = Instant::now();
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot start {what}"))?;
    // The command holds the pipe's writing end: the reader would never see its end.
    drop(command);

    let kept = Arc::new(Mutex::new(Vec::new()));
    let (done, ended) = mpsc::channel();
    std::thread::spawn({
        let kept = Arc::clone(&kept);
        move || {
            let mut chunk = [0; 8192];
            while let Ok(n @ 1..) = reader.read(&mut chunk) {
                kept.lock().unwrap().extend_from_slice(&chunk[..n]);
            }
            let _ = done.send(());
        }
    });
    let timed_out = match limit {
        Some(limit) => ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout),
        None => ended.recv().is_err(),
    };
    if timed_out {
        child.kill()?;
    }
    let status = child.wait()?;
    let output = String::from_utf8_lossy(&kept.lock().unwrap()).into_owned();
    Ok(Ended {
        code: status.code(),
        timed_out,
        output,
        time: start.elapsed(),
    })
}

/// A child whose output was passed on.
#[derive(Debug)]
pub(crate) struct Passed {
    /// Exit code 0, in time.
    pub(crate) good: bool,
    /// The closing lines of the test runners in its output.
    pub(crate) tests: Tally,
}

/// Runs a command to its end, passes its output on as it comes and counts the closing
/// lines of test runners in it.
///
/// With a limit it runs in a process group of its own, so that what cargo has started is
/// stopped with it.
pub(crate) fn pass_on(mut command: Command, limit: Option<Duration>) -> Result<Passed> {
    let what = shown(&command);
    command.stdout(Stdio::piped());
    if limit.is_some() {
        command.process_group(0);
    }
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot start {what}"))?;
    let output = child
        .stdout
        .take()
        .context("the child's output was piped")?;
    let (send, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            let _ = send.send(line);
        }
    });
    let mut tests = Tally::default();
    let deadline = limit.map(|limit| Instant::now() + limit);
    let timed_out = loop {
        let line = match deadline {
            Some(at) => lines.recv_timeout(at.saturating_duration_since(Instant::now())),
            None => lines.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match line {
            Ok(line) => {
                let text = String::from_utf8_lossy(&line);
                tests.read(&text);
                println!("{text}");
            }
            Err(RecvTimeoutError::Disconnected) => break false,
            Err(RecvTimeoutError::Timeout) => break true,
        }
    };
    if timed_out {
        println!(
            "`{what}` does not end: stopped after {}",
            seconds(limit.unwrap_or_default())
        );
        let group = format!("-{}", child.id());
        Command::new("kill")
            .args(["-KILL", "--", &group])
            .status()?;
    }
    let status = child.wait()?;
    Ok(Passed {
        good: status.success() && !timed_out,
        tests,
    })
}

/// What the closing lines of test runners add up to.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Closing lines seen.
    pub(crate) runs: usize,
    /// Tests passed.
    pub(crate) passed: usize,
    /// Tests failed.
    pub(crate) failed: usize,
    /// Tests ignored.
    pub(crate) ignored: usize,
}

impl Tally {
    /// Adds `line` where it is a closing line: `test result: ok. 3 passed; 0 failed; …`.
    pub(crate) fn read(&mut self, line: &str) {
        let Some((_, counts)) = line.split_once("test result: ") else {
            return;
        };
        self.runs += 1;
        let counts = counts.split_once(". ").map_or(counts, |(_, counts)| counts);
        for count in counts.split(';') {
            let mut words = count.split_whitespace();
            let Some(Ok(n)) = words.next().map(str::parse::<usize>) else {
                continue;
            };
            match words.next() {
                Some("passed") => self.passed += n,
                Some("failed") => self.failed += n,
                Some("ignored") => self.ignored += n,
                _ => {}
            }
        }
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            runs,
            passed,
            failed,
            ignored,
        } = self;
        write!(
            f,
            "{passed} passed; {failed} failed; {ignored} ignored in {runs} test programs"
        )
    }
}

/// A duration in seconds, to a tenth.
pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = program("sh", Path::new("."));
        command.args(["-c", script]);
        command
    }

    #[test]
    fn both_streams_and_the_exit_code_are_kept() {
        let ended = capture(shell("echo out; echo err >&2; exit 3"), None).unwrap();
        assert_eq!(ended.code, Some(3));
        assert!(!ended.good());
        assert_eq!(ended.output, "out\nerr\n");
    }

    #[test]
    fn a_child_that_does_not_end_is_stopped() {
        let limit = Some(Duration::from_millis(50));
        let ended = capture(shell("echo begun; exec sleep 1000"), limit).unwrap();
        assert!(ended.timed_out && !ended.good());
        assert!(ended.how().starts_with("stopped after"));
    }

    #[test]
    fn what_a_child_started_is_stopped_with_it() {
        let script = "echo 'test result: ok. 1 passed; 0 failed'; sleep 1000; echo more";
        let passed = pass_on(shell(script), Some(Duration::from_millis(200))).unwrap();
        assert!(!passed.good);
        assert_eq!(passed.tests.passed, 1);
        assert!(
            pass_on(shell("exit 0"), Some(Duration::from_secs(500)))
                .unwrap()
                .good
        );
        assert!(!pass_on(shell("exit 1"), None).unwrap().good);
    }

    #[test]
    fn closing_lines_add_up() {
        let mut tally = Tally::default();
        tally.read("test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 9 filtered out");
        tally.read("running 3 tests");
        tally.read("test result: FAILED. 2 passed; 4 failed; 0 ignored; 0 measured");
        assert_eq!(
            tally,
            Tally {
                runs: 2,
                passed: 5,
                failed: 4,
                ignored: 1
            }
        );
    }

    #[test]
    fn an_unknown_program_is_an_error_that_names_it() {
        let error = capture(program("no-such-program-here", Path::new(".")), None).unwrap_err();
        assert!(
            error.to_string().contains("no-such-program-here"),
            "{error}"
        );
    }
}
