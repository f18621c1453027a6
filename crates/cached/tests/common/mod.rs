//! Servers as child processes, for the tests of the whole program.

// Each test uses a part of it.
#![allow(dead_code)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A time in which anything must have happened. A hang is a failure with a name.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A port that nothing listens on.
pub(crate) fn free_port() -> u16 {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    free.local_addr().unwrap().port()
}

/// Waits until `is_so`.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "{what} does not happen");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The program with arguments. Its errors are to be read.
pub(crate) fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_corelay-cached"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// A server, which ends with this.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) port: u16,
}

impl Server {
    /// Starts a server with arguments on a free port.
    #[track_caller]
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let port = free_port();
        let child = program(arguments).args(["-p", &port.to_string()]).spawn();
        let mut server = Self {
            child: child.expect("it starts"),
            port,
        };
        wait_until("the start", || {
            let ended = server.child.try_wait().unwrap();
            assert!(ended.is_none(), "{ended:?} with {arguments:?}");
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        server
    }

    /// Connects a client.
    pub(crate) fn connect(&self) -> Client {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Client(BufReader::new(stream))
    }

    /// Sends SIGTERM.
    pub(crate) fn terminate(&self) {
        let id = nix::unistd::Pid::from_raw(self.child.id() as i32);
        nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGTERM).unwrap();
    }

    /// Waits for the end of the process.
    #[track_caller]
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        wait_until("the end", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client's end of a connection.
pub(crate) struct Client<S: Read + Write = TcpStream>(pub(crate) BufReader<S>);

impl<S: Read + Write> Client<S> {
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
