//! Children: started with a clean environment, watched, their output kept.

use anyhow::{Context, Result};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Variables that `cargo run` set for xtask and that would confuse the next cargo.
const LEFT_BY_CARGO: &[&str] = &[
    "CARGO_PKG_",
    "CARGO_MANIFEST_",
    "CARGO_BIN_",
    "CARGO_PRIMARY_",
];

/// The cargo that started xtask, to be run in `dir` with the words of `args`.
pub(crate) fn cargo(dir: &Path, args: &str) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = program(cargo, dir);
    command.args(args.split_whitespace());
    command
}

/// Any program, to be run in `dir` without input and without what cargo set for xtask.
pub(crate) fn program(name: impl AsRef<OsStr>, dir: &Path) -> Command {
    let mut command = Command::new(name);
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

/// Whether the system has the program `name`.
pub(crate) fn is_installed(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(name).is_file())
}

/// The command as it would be typed.
pub(crate) fn shown(command: &Command) -> String {
    let program = crate::workspace::file_name(Path::new(command.get_program()));
    let args = command.get_args().map(|arg| arg.to_string_lossy().into());
    let words: Vec<String> = std::iter::once(program).chain(args).collect();
    words.join(" ")
}

/// A child that has ended or was stopped.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The exit code, if it ended by itself and not by a signal.
    pub(crate) code: Option<i32>,
    /// Whether it had to be stopped at its time limit.
    pub(crate) timed_out: bool,
    /// The lines that it printed; those of standard error too if it was captured.
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

/// Runs a command to its end, or until `limit`, and keeps both streams in the order in which
/// they came.
pub(crate) fn capture(command: Command, limit: Option<Duration>) -> Result<Ended> {
    watch(command, limit, false)
}

/// Runs a command to its end, or until `limit`, passes its output on as it comes, and keeps
/// its standard output.
///
/// A command with a limit runs in a process group of its own, so that what cargo has started
/// is stopped with it.
pub(crate) fn pass_on(command: Command, limit: Option<Duration>) -> Result<Ended> {
    watch(command, limit, true)
}

fn watch(mut command: Command, limit: Option<Duration>, is_shown: bool) -> Result<Ended> {
    let what = shown(&command);
    let has_group = is_shown && limit.is_some();
    let (reader, writer) = std::io::pipe()?;
    if !is_shown {
        command.stderr(writer.try_clone()?);
    }
    if has_group {
        command.process_group(0);
    }
    let start = Instant::now();
    let child = command.stdout(writer).spawn();
    let mut child = child.with_context(|| format!("cannot start {what}"))?;
    // The command holds the pipe's writing end: the reader would never see its end.
    drop(command);

    let (send, lines) = mpsc::channel();
    std::thread::spawn(move || {
        let lines = BufReader::new(reader).split(b'\n');
        lines
            .map_while(Result::ok)
            .try_for_each(|line| send.send(line))
    });
    let mut output = String::new();
    let timed_out = loop {
        let left = limit.map_or(Duration::MAX, |l| l.saturating_sub(start.elapsed()));
        let line = match lines.recv_timeout(left) {
            Ok(line) => String::from_utf8_lossy(&line).into_owned() + "\n",
            Err(error) => break error == RecvTimeoutError::Timeout,
        };
        if is_shown {
            print!("{line}");
        }
        output += &line;
    };
    if timed_out && has_group {
        println!("`{what}` does not end");
        let group = format!("-{}", child.id());
        Command::new("kill")
            .args(["-KILL", "--", &group])
            .status()?;
    } else if timed_out {
        child.kill()?;
    }
    Ok(Ended {
        code: child.wait()?.code(),
        timed_out,
        output,
        time: start.elapsed(),
    })
}

/// The sums of the closing lines of test runners.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Closing lines seen.
    pub(crate) runs: usize,
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) ignored: usize,
}

impl Tally {
    /// Adds up the lines `test result: ok. 3 passed; 0 failed; …` of `output`.
    pub(crate) fn of(output: &str) -> Self {
        let mut tally = Self::default();
        let lines = output.lines();
        for (_, closing) in lines.filter_map(|line| line.split_once("test result: ")) {
            tally.runs += 1;
            let words: Vec<&str> = closing.split([' ', ';']).collect();
            for pair in words.windows(2) {
                let Ok(count) = pair[0].parse::<usize>() else {
                    continue;
                };
                match pair[1] {
                    "passed" => tally.passed += count,
                    "failed" => tally.failed += count,
                    "ignored" => tally.ignored += count,
                    _ => {}
                }
            }
        }
        tally
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (passed, failed, ignored) = (self.passed, self.failed, self.ignored);
        let runs = self.runs;
        write!(
            f,
            "{passed} passed; {failed} failed; {ignored} ignored in {runs} test programs"
        )
    }
}

/// The failed tests in the output of test programs, each on a line of its own that starts with
/// a line break: its name, and the last lines that it printed before any backtrace.
pub(crate) fn failures(output: &str) -> String {
    let mut found = String::new();
    let mut lines = output.lines().peekable();
    while let Some(line) = lines.next() {
        let name = line.strip_prefix("---- ");
        let Some(name) = name.and_then(|rest| rest.strip_suffix(" stdout ----")) else {
            continue;
        };
        let mut said = Vec::new();
        while let Some(line) =
            lines.next_if(|line| *line != "failures:" && !line.starts_with("---- "))
        {
            said.push(line);
        }
        let backtrace = said.iter().rposition(|line| *line == "stack backtrace:");
        said.truncate(backtrace.unwrap_or(said.len()));
        said.retain(|line| !line.trim().is_empty());
        let last = &said[said.len().saturating_sub(3)..];
        let short = |line: &&str| line.trim().chars().take(300).collect::<String>();
        let last: Vec<String> = last.iter().map(short).collect();
        found += &format!("\n  {name}: {}", last.join(" / "));
    }
    found
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
    fn failures_are_told_without_their_backtraces() {
        let output = "running 3 tests\ntest a ... FAILED\n\nfailures:\n\n\
            ---- a stdout ----\nsaid before\n\nthread 'a' panicked at a.rs:1:2:\n\
            assertion failed: x\nstack backtrace:\n   0: start\nnote: more\n\n\
            ---- b stdout ----\nError: \"wrong\"\n\n\nfailures:\n    a\n    b\n\n\
            test result: FAILED. 1 passed; 2 failed";
        assert_eq!(
            failures(output),
            "\n  a: said before / thread 'a' panicked at a.rs:1:2: / assertion failed: x\
             \n  b: Error: \"wrong\""
        );
        assert_eq!(failures("test result: ok. 1 passed"), "");
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
        let ended = capture(shell("exec sleep 1000"), limit).unwrap();
        assert!(ended.timed_out && !ended.good());
        assert!(ended.how().starts_with("stopped after"));
    }

    #[test]
    fn the_grandchildren_of_a_command_with_a_limit_are_stopped_with_it() {
        let script = "echo 'test result: ok. 1 passed; 0 failed'; sleep 1000; echo more";
        let passed = pass_on(shell(script), Some(Duration::from_millis(200))).unwrap();
        assert!(!passed.good());
        assert_eq!(Tally::of(&passed.output).passed, 1);
        let in_time = Some(Duration::from_secs(500));
        assert!(pass_on(shell("exit 0"), in_time).unwrap().good());
        assert!(!pass_on(shell("exit 1"), None).unwrap().good());
    }

    #[test]
    fn closing_lines_add_up() {
        let tally = Tally::of(
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 9 filtered out\n\
             running 3 tests\ntest result: FAILED. 2 passed; 4 failed; 0 ignored; 0 measured",
        );
        let sums = "5 passed; 4 failed; 1 ignored in 2 test programs";
        assert_eq!(tally.to_string(), sums);
    }

    #[test]
    fn an_unknown_program_is_an_error_that_names_it() {
        let error = capture(program("no-such-program", Path::new(".")), None).unwrap_err();
        assert!(error.to_string().contains("no-such-program"), "{error}");
    }
}
