//! A server that the lab starts, on CPUs of its own, and ends whatever happens.

use super::Failure;
use super::address::Address;
use corelay_topology::{CpuSet, confine_current_thread};
use std::fs::File;
use std::io::{Read, Seek};
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Time within which a server must accept connections.
const START_TIME: Duration = Duration::from_secs(20);

/// Interval at which a starting server is tried.
const TRY_INTERVAL: Duration = Duration::from_millis(10);

/// A server process. It is killed when this is dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    address: Address,
    stderr: File,
}

/// A command line, ready to be started.
#[derive(Debug)]
struct Prepared {
    words: Vec<String>,
    address: Address,
}

impl Process {
    /// Starts `command` on `cpus`, and waits until it accepts connections.
    ///
    /// The command is split at spaces, but for quoted parts; no shell runs it. It gets `-p PORT` with a free
    /// port of 127.0.0.1, unless it names a port (`-p`, `--port`) or a Unix socket (`-s`,
    /// `--unix-socket`) itself.
    ///
    /// # Errors
    /// It cannot be started, or it ends, or it does not accept connections.
    pub fn start(command: &str, cpus: &CpuSet) -> Result<Self, Failure> {
        let Prepared { words, address } = prepare(command).map_err(Failure::Input)?;
        let system = |error| Failure::Server(format!("`{command}` cannot be started: {error}"));
        let stderr = tempfile::tempfile().map_err(system)?;
        let mut child = Command::new(&words[0]);
        child
            .args(&words[1..])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr.try_clone().map_err(system)?);
        // A process inherits the CPUs of the thread that starts it.
        let spawned = std::thread::scope(|scope| {
            let start = || {
                confine_current_thread(cpus).map_err(|error| {
                    let why = format!("no process may be kept to CPUs {cpus}: {error}");
                    Failure::Input(format!("--server-cpu: {why}"))
                })?;
                let missing =
                    |error| Failure::Input(format!("`{command}` cannot be started: {error}"));
                child.spawn().map_err(missing)
            };
            scope.spawn(start).join()
        });
        let child = spawned
            .unwrap_or_else(|_| Err(Failure::Server("starting a server panicked".to_owned())))?;
        let mut process = Self {
            child,
            address,
            stderr,
        };
        process.wait(command)?;
        Ok(process)
    }

    /// Waits until the server accepts a connection.
    fn wait(&mut self, command: &str) -> Result<(), Failure> {
        let since = Instant::now();
        loop {
            let ended = self.child.try_wait();
            if let Ok(Some(status)) = ended {
                let said = self.said();
                let said = match said.is_empty() {
                    true => String::new(),
                    false => format!(": {said}"),
                };
                return Err(Failure::Server(format!(
                    "`{command}` ended before it accepted a connection ({status}){said}"
                )));
            }
            match self.address.connect() {
                Ok(_) => return Ok(()),
                Err(error) if since.elapsed() > START_TIME => {
                    let secs = START_TIME.as_secs();
                    return Err(Failure::Server(format!(
                        "`{command}` has not accepted a connection at {} for {secs} s: {error}",
                        self.address
                    )));
                }
                Err(_) => std::thread::sleep(TRY_INTERVAL),
            }
        }
    }

    /// The last line that the server printed on standard error.
    fn said(&mut self) -> String {
        let mut text = Vec::new();
        let read = self.stderr.rewind().and_then(|()| {
            self.stderr
                .try_clone()?
                .take(1 << 16)
                .read_to_end(&mut text)
        });
        let text = String::from_utf8_lossy(&text);
        let last = text.lines().rfind(|line| !line.trim().is_empty());
        match (read, last) {
            (Ok(_), Some(line)) => line.trim().to_owned(),
            _ => String::new(),
        }
    }

    /// The address at which it accepts connections.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// CPU time that the threads which it has now have used, in seconds; `None` if the system does not
    /// say.
    pub fn cpu_s(&self) -> Option<f64> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).ok()?;
        let mut ns = 0;
        for task in tasks.flatten() {
            // The first word is the time on a CPU, in nanoseconds. A thread may have ended meanwhile.
            let file = std::fs::read_to_string(task.path().join("schedstat"));
            let first = file.ok().and_then(|text| {
                let word = text.split_whitespace().next()?;
                word.parse::<u64>().ok()
            });
            ns += first.unwrap_or(0);
        }
        (ns > 0).then_some(ns as f64 * 1e-9)
    }

    /// Resident memory now, and the most there ever was, in bytes; `None` if the system does not say.
    pub fn resident_bytes(&self) -> Option<(u64, u64)> {
        let file = format!("/proc/{}/status", self.child.id());
        let text = std::fs::read_to_string(file).ok()?;
        Some((field(&text, "VmRSS:")?, field(&text, "VmHWM:")?))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Errors mean that it has just ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A field of `/proc/PID/status` that is in kB, in bytes.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// Checks that `command` can be split, and names a port if it names one.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn check(command: &str) -> Result<String, String> {
    prepare(command).map(|_| command.to_owned())
}

/// Splits a command, finds its address, and adds a port if it has none.
fn prepare(command: &str) -> Result<Prepared, String> {
    let mut words = split(command)?;
    if words.is_empty() {
        return Err("the command of a server is empty".to_owned());
    }
    let address = match (
        value(&words, "-s", "--unix-socket"),
        value(&words, "-p", "--port"),
    ) {
        (Some(path), _) => Address::Unix(path.into()),
        (None, Some(port)) => {
            let port = port.parse::<u16>().ok().filter(|port| *port > 0);
            let port = port.ok_or_else(|| format!("`{command}` names no port after -p"))?;
            Address::Tcp((Ipv4Addr::LOCALHOST, port).into())
        }
        (None, None) => {
            let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|l| l.local_addr());
            let free = free.map_err(|error| format!("127.0.0.1 has no free port: {error}"))?;
            words.extend(["-p".to_owned(), free.port().to_string()]);
            Address::Tcp(free)
        }
    };
    Ok(Prepared { words, address })
}

/// The value of a flag, as `-p 1`, `-p1`, `--port 1` or `--port=1`.
fn value(words: &[String], short: &str, long: &str) -> Option<String> {
    words.iter().enumerate().skip(1).find_map(|(at, word)| {
        if word == short || word == long {
            return words.get(at + 1).cloned();
        }
        let joined = word
            .strip_prefix(long)
            .and_then(|rest| rest.strip_prefix('='));
        let digits = |rest: &&str| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit());
        joined
            .or_else(|| word.strip_prefix(short).filter(digits))
            .map(str::to_owned)
    })
}

/// Splits a command at spaces, but for parts in single or double quotes.
fn split(command: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in command.chars() {
        match quote {
            Some(end) if c == end => quote = None,
            None if c == '\'' || c == '"' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    match quote {
        Some(quote) => Err(format!("`{command}` lacks a closing {quote}")),
        None => Ok(words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_split_at_spaces_and_quotes_kept_together() {
        let words = split(" a 'b  c' d\"e f\"g '' ").unwrap();
        assert_eq!(words, ["a", "b  c", "de fg", ""]);
        assert!(split("a 'b").unwrap_err().contains("closing '"));
        assert!(prepare("  ").unwrap_err().contains("empty"));
    }

    #[test]
    fn a_port_is_added_unless_there_is_an_address() {
        let prepared = prepare("memcached -t 1").unwrap();
        let Address::Tcp(address) = prepared.address else {
            panic!("{prepared:?}")
        };
        assert_eq!(prepared.words[3..], ["-p", &address.port().to_string()]);
        for command in ["m -p 77", "m -p77", "m --port 77", "m --port=77 -t 1"] {
            let prepared = prepare(command).unwrap();
            assert_eq!(prepared.address.to_string(), "127.0.0.1:77");
            assert_eq!(prepared.words.len(), split(command).unwrap().len());
        }
        let unix = prepare("m -s /run/x").unwrap();
        assert_eq!(unix.address, Address::Unix("/run/x".into()));
        assert!(prepare("m -p many").unwrap_err().contains("-p"));
    }

    #[test]
    fn memory_is_read_in_bytes() {
        let text = "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(field(text, "VmRSS:"), Some(1 << 20));
        assert_eq!(field(text, "VmHWM:"), Some(2 << 20));
        assert_eq!(field(text, "VmSwap:"), None);
    }

    #[test]
    #[cfg(unix)]
    fn a_program_that_is_missing_or_ends_is_a_failure() {
        let cpus = corelay_topology::affinity().unwrap();
        let start = |command| Process::start(command, &cpus).unwrap_err();
        let missing = start("/nonexistent/server -v");
        assert!(matches!(missing, Failure::Input(why) if why.contains("/nonexistent/server")));
        let Failure::Server(why) = start("sh -c 'echo no room >&2; exit 3'") else {
            panic!()
        };
        assert!(why.contains("no room") && why.contains("3"), "{why}");
    }
}
