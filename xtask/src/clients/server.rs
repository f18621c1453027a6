//! A server as a child process.

use anyhow::{Context, Result, bail};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server that does not accept connections after that time never will.
const START: Duration = Duration::from_secs(60);

/// A running server. It is killed when this is dropped.
pub(super) struct Server {
    child: Child,
    pub(super) port: u16,
}

impl Server {
    /// Starts a server on a free port.
    pub(super) fn start(command: &[String]) -> Result<Self> {
        let begin = Instant::now();
        // Another process may take the port between its choice and the server's bind.
        while begin.elapsed() < START {
            let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
                .local_addr()?
                .port();
            let child = Command::new(&command[0])
                .args(&command[1..])
                .args(["-p", &port.to_string()])
                .stdin(Stdio::null())
                .spawn()
                .with_context(|| format!("cannot start {}", command[0]))?;
            let mut server = Self { child, port };
            while server.child.try_wait()?.is_none() && begin.elapsed() < START {
                if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
                    return Ok(server);
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        bail!("{} accepts no connection", command.join(" "))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
