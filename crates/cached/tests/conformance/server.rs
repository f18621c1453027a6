//! Servers as child processes.

use crate::port::Port;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The version that corelay-cached is compared to.
const VERSION: &str = "memcached 1.6.18";

/// How long a server may take until it accepts connections.
const START: Duration = Duration::from_secs(10);

/// A program to start servers from, with arguments that every server gets.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    command: Vec<String>,
}

impl Program {
    /// The server under test: `CORELAY_CACHED` if set, else the binary of this package.
    pub(crate) fn subject() -> Self {
        let command = std::env::var("CORELAY_CACHED");
        Self::new(
            command
                .as_deref()
                .unwrap_or(env!("CARGO_BIN_EXE_corelay-cached")),
        )
    }

    /// The server that the subject is compared to: `CORELAY_REFERENCE` if set, else `memcached`
    /// if it is installed in the version whose answers are recorded.
    pub(crate) fn reference() -> Option<Self> {
        if let Ok(command) = std::env::var("CORELAY_REFERENCE") {
            return Some(Self::new(&command));
        }
        let output = Command::new("memcached").arg("-V").output().ok()?;
        let version = String::from_utf8_lossy(&output.stdout);
        (version.trim() == VERSION).then(|| Self::new("memcached"))
    }

    /// The same server with more arguments.
    pub(crate) fn with(mut self, arguments: &[&str]) -> Self {
        self.command
            .extend(arguments.iter().copied().map(str::to_owned));
        self
    }

    fn new(command: &str) -> Self {
        let command = command.split_whitespace().map(str::to_owned).collect();
        Self { command }
    }

    /// Starts a server with these additional flags.
    pub(crate) fn start(&self, flags: &[String]) -> Result<Server, String> {
        let mut last = String::new();
        // Another process may take the port between its choice and the server's bind.
        for _ in 0..5 {
            match self.try_start(flags) {
                Ok(server) => return Ok(server),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn try_start(&self, flags: &[String]) -> Result<Server, String> {
        let port = Port::take();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port.number));
        let (program, arguments) = self.command.split_first().ok_or("the command is empty")?;
        let mut command = Command::new(program);
        command.args(["-l", "127.0.0.1", "-U", "0", "-t", "1", "-m", "64", "-p"]);
        command.arg(port.number.to_string());
        // memcached refuses to run as root unless it is told the user.
        if std::fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0) {
            command.args(["-u", "root"]);
        }
        command.args(arguments).args(flags);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = command
            .spawn()
            .map_err(|error| format!("{program} cannot be started: {error}"))?;
        let mut server = Server {
            child,
            address,
            _port: port,
            name: program.clone(),
        };
        let start = Instant::now();
        while TcpStream::connect(address).is_err() {
            if let Some(end) = server.end() {
                return Err(format!("{end} at start, with {flags:?}"));
            }
            if start.elapsed() > START {
                return Err(format!("{program} accepts no connection after {START:?}"));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(server)
    }
}

/// A running server. Dropping it kills the process.
pub(crate) struct Server {
    child: Child,
    address: SocketAddr,
    _port: Port,
    name: String,
}

impl Server {
    /// The address that the server listens on.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// A sentence about how the process ended, if it did.
    pub(crate) fn end(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok()??;
        Some(format!("{} ended: {status}", self.name))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
