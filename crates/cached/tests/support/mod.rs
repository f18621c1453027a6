//! A server as a child process, for tests that look at it from outside.

#![allow(dead_code, reason = "each test file uses a part")]

mod port;

pub(crate) use port::Port;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The time after which a wait is a hang. Only a broken server takes so long.
pub(crate) const HANG: Duration = Duration::from_secs(60);

/// The program.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_corelay-cached");

/// A running server. It is killed when this is dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    _port: Port,
    /// The lines of its standard error, if it is heard.
    said: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Starts a server with these flags beside its port.
    pub(crate) fn start(flags: &[&str]) -> Self {
        Self::start_with(flags, |port| {
            let mut command = Command::new(PROGRAM);
            command.args(["-p", port]);
            command
        })
    }

    /// Starts a server under a limit of the shell's `ulimit`.
    pub(crate) fn start_with_limit(limit: &str, flags: &[&str]) -> Self {
        Self::start_with(flags, |port| {
            let mut command = Command::new("sh");
            let script = format!("ulimit {limit}; exec \"$@\"");
            command.args(["-c", &script, "sh", PROGRAM, "-p", port]);
            command
        })
    }

    /// Starts a server whose standard error is kept.
    pub(crate) fn start_heard(flags: &[&str]) -> Self {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        let server = Self::start_with(flags, |port| {
            let mut command = Command::new(PROGRAM);
            command.args(["-p", port]);
            command.stderr(writer.try_clone().expect("a handle"));
            command
        });
        let said = Arc::clone(&server.said);
        std::thread::spawn(move || {
            for line in BufReader::new(reader).lines().map_while(Result::ok) {
                eprintln!("server: {line}");
                said.lock().expect("never poisoned").push(line);
            }
        });
        server
    }

    /// Whether a server that is heard has said nothing so far.
    pub(crate) fn is_silent(&self) -> bool {
        self.said.lock().expect("never poisoned").is_empty()
    }

    fn start_with(flags: &[&str], command: impl Fn(&str) -> Command) -> Self {
        let begin = Instant::now();
        // Another process may take the port between its choice and the server's bind.
        while begin.elapsed() < HANG {
            let port = Port::take();
            let mut command = command(&port.number.to_string());
            command.args(flags).stdin(Stdio::null());
            let mut server = Self {
                child: command.spawn().expect("the program starts"),
                address: SocketAddr::from((Ipv4Addr::LOCALHOST, port.number)),
                _port: port,
                said: Arc::default(),
            };
            while server.is_running() && begin.elapsed() < HANG {
                if TcpStream::connect(server.address).is_ok() {
                    return server;
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        panic!("the server with {flags:?} accepts no connection");
    }

    /// Sends SIGTERM.
    pub(crate) fn terminate(&self) {
        let id = nix::unistd::Pid::from_raw(self.child.id() as i32);
        nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGTERM).expect("it is our child");
    }

    /// Waits for the end of the process, and returns its exit code.
    #[track_caller]
    pub(crate) fn ended(&mut self) -> Option<i32> {
        let mut status = None;
        wait_until("the server ends", || {
            status = self.child.try_wait().expect("it is our child");
            status.is_some()
        });
        status.and_then(|status| status.code())
    }

    /// Whether the process still runs.
    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("it is our child").is_none()
    }

    /// A connection whose answers are read line by line.
    pub(crate) fn connect_lines(&self) -> Lines {
        Lines(BufReader::new(self.connect().0))
    }

    /// A connection whose reads and writes fail once they take as long as a hang.
    pub(crate) fn connect(&self) -> Client {
        let stream = TcpStream::connect(self.address).expect("the server listens");
        stream.set_nodelay(true).expect("it is a TCP socket");
        stream.set_read_timeout(Some(HANG)).expect("not zero");
        stream.set_write_timeout(Some(HANG)).expect("not zero");
        Client(stream)
    }

    /// The resident memory in bytes, now and at most so far.
    #[cfg(target_os = "linux")]
    pub(crate) fn memory(&self) -> [usize; 2] {
        let status = self.read_proc("status");
        ["VmRSS:", "VmHWM:"].map(|name| {
            let mut lines = status.lines();
            let line = lines.find_map(|line| line.strip_prefix(name));
            let number = line.and_then(|line| line.split_whitespace().next());
            number.expect("Linux gives it").parse::<usize>().unwrap() << 10
        })
    }

    /// The CPU time that the server has had.
    #[cfg(target_os = "linux")]
    pub(crate) fn cpu_time(&self) -> Duration {
        let stat = self.read_proc("stat");
        // The name may have any characters. Fields 14 and 15 count hundredths of a second.
        let (_, fields) = stat.rsplit_once(')').expect("the name is in brackets");
        let fields = fields.split_whitespace().skip(11).take(2);
        let ticks: u64 = fields.map(|field| field.parse::<u64>().unwrap()).sum();
        Duration::from_millis(10 * ticks)
    }

    /// The number of open files.
    #[cfg(target_os = "linux")]
    pub(crate) fn files(&self) -> usize {
        let files = std::fs::read_dir(format!("/proc/{}/fd", self.child.id()));
        files.expect("the server runs").count()
    }

    #[cfg(target_os = "linux")]
    fn read_proc(&self, name: &str) -> String {
        let path = format!("/proc/{}/{name}", self.child.id());
        std::fs::read_to_string(path).expect("the server runs")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client's connection.
pub(crate) struct Client(pub(crate) TcpStream);

impl Client {
    /// Sends bytes, and says whether the server took them.
    pub(crate) fn try_send(&mut self, bytes: &[u8]) -> bool {
        match self.0.write_all(bytes) {
            Ok(()) => true,
            Err(error) if is_timeout(&error) => panic!("the server hangs: it reads nothing"),
            Err(_) => false,
        }
    }

    #[track_caller]
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        assert!(self.try_send(bytes.as_ref()), "the server has closed");
    }

    /// Reads bytes, which must be `wanted`.
    #[track_caller]
    pub(crate) fn demand(&mut self, wanted: impl AsRef<[u8]>) {
        let wanted = wanted.as_ref();
        let mut answer = vec![0; wanted.len()];
        let mut got = 0;
        while got < answer.len() {
            match self.0.read(&mut answer[got..]) {
                Ok(0) => break,
                Ok(n) => got += n,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => panic!("{error} after {}", shown(&answer[..got])),
            }
            if answer[..got] != wanted[..got] {
                break;
            }
        }
        assert!(
            answer[..got] == *wanted,
            "{} instead of {}",
            shown(&answer[..got]),
            shown(wanted)
        );
    }

    /// Sends a command, and demands this answer.
    #[track_caller]
    pub(crate) fn ask(&mut self, command: impl AsRef<[u8]>, wanted: impl AsRef<[u8]>) {
        self.send(command);
        self.demand(wanted);
    }

    /// Reads to the end that the server makes, by closing or by resetting the connection.
    #[track_caller]
    pub(crate) fn read_to_close(&mut self) -> Vec<u8> {
        let mut answer = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            match self.0.read(&mut buffer) {
                Ok(0) => return answer,
                Ok(n) => answer.extend_from_slice(&buffer[..n]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_timeout(&error) => {
                    panic!("the server does not close after {}", shown(&answer))
                }
                Err(_) => return answer,
            }
        }
    }
}

/// Whether a read or a write took as long as a hang.
pub(crate) fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// The beginning of some bytes, as text.
pub(crate) fn shown(bytes: &[u8]) -> String {
    let begin = &bytes[..bytes.len().min(200)];
    let more = if bytes.len() > 200 { "…" } else { "" };
    format!("{} bytes `{}{more}`", bytes.len(), begin.escape_ascii())
}

/// Tries again until it is so, or until a hang.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < HANG, "after {HANG:?} not yet: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A connection whose answers are read line by line.
pub(crate) struct Lines<S: Read + Write = TcpStream>(pub(crate) BufReader<S>);

impl<S: Read + Write> Lines<S> {
    pub(crate) fn send(&mut self, text: impl AsRef<[u8]>) {
        self.0.get_mut().write_all(text.as_ref()).unwrap();
    }

    /// Reads a line, without its end. It is empty at the end of the connection.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("an answer comes");
        line.trim_end().to_owned()
    }

    /// Sends a command, and reads one line.
    pub(crate) fn ask(&mut self, command: &str) -> String {
        self.send(format!("{command}\r\n"));
        self.line()
    }

    /// Sends a command, and reads lines up to `END`.
    pub(crate) fn lines(&mut self, command: &str) -> Vec<String> {
        self.send(format!("{command}\r\n"));
        let mut lines = Vec::new();
        loop {
            match self.line() {
                line if line == "END" => return lines,
                line => {
                    assert!(!line.is_empty(), "{command}: the connection ends");
                    lines.push(line);
                }
            }
        }
    }

    /// The value of a statistic.
    #[track_caller]
    pub(crate) fn statistic(&mut self, page: &str, name: &str) -> String {
        let lines = self.lines(page);
        let prefix = format!("STAT {name} ");
        let value = lines.iter().find_map(|line| line.strip_prefix(&prefix));
        value
            .unwrap_or_else(|| panic!("{name} in {lines:?}"))
            .to_owned()
    }

    /// Reads to the end of the connection.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        self.0.read_to_end(&mut rest).expect("the end comes");
        rest
    }
}
