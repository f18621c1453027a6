//! The address of a server, and streams to it.

use mio::event::Source;
use mio::{Interest, Registry, Token};
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

/// Time for a connection to be accepted.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// An address of the internet, with a port.
    Tcp(SocketAddr),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

impl Address {
    /// Reads `host:port`, or the path of a Unix socket, which has a slash in it.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn read(text: &str) -> Result<Self, String> {
        if text.contains('/') {
            return match cfg!(unix) {
                true => Ok(Self::Unix(text.into())),
                false => Err(format!("{text}: this system has no Unix sockets")),
            };
        }
        let why = match text.to_socket_addrs() {
            Ok(mut found) => match found.next() {
                Some(address) => return Ok(Self::Tcp(address)),
                None => "no such host".to_owned(),
            },
            Err(error) => error.to_string(),
        };
        Err(format!(
            "`{text}` is neither host:port nor the path of a Unix socket (with a slash): {why}"
        ))
    }

    /// Connects, and waits for that.
    pub(super) fn connect(&self) -> io::Result<Blocking> {
        match self {
            Self::Tcp(address) => {
                let stream = std::net::TcpStream::connect_timeout(address, CONNECT_TIME)?;
                stream.set_nodelay(true)?;
                Ok(Blocking::Tcp(stream))
            }
            #[cfg(unix)]
            Self::Unix(path) => std::os::unix::net::UnixStream::connect(path).map(Blocking::Unix),
            #[cfg(not(unix))]
            Self::Unix(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

/// A stream whose reads and writes wait.
#[derive(Debug)]
pub(super) enum Blocking {
    Tcp(std::net::TcpStream),
    #[cfg(unix)]
    Unix(std::os::unix::net::UnixStream),
}

impl Blocking {
    /// Limits the time that a read or a write waits.
    pub(super) fn limit(&self, time: Duration) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => {
                stream.set_read_timeout(Some(time))?;
                stream.set_write_timeout(Some(time))
            }
            #[cfg(unix)]
            Self::Unix(stream) => {
                stream.set_read_timeout(Some(time))?;
                stream.set_write_timeout(Some(time))
            }
        }
    }

    /// The same stream, whose reads and writes do not wait.
    pub(super) fn into_polled(self) -> io::Result<Stream> {
        match self {
            Self::Tcp(stream) => {
                stream.set_nonblocking(true)?;
                Ok(Stream::Tcp(mio::net::TcpStream::from_std(stream)))
            }
            #[cfg(unix)]
            Self::Unix(stream) => {
                stream.set_nonblocking(true)?;
                Ok(Stream::Unix(mio::net::UnixStream::from_std(stream)))
            }
        }
    }
}

impl Read for Blocking {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            #[cfg(unix)]
            Self::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Blocking {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            #[cfg(unix)]
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A stream that is polled: reads and writes do not wait.
#[derive(Debug)]
pub(super) enum Stream {
    Tcp(mio::net::TcpStream),
    #[cfg(unix)]
    Unix(mio::net::UnixStream),
}

impl Stream {
    /// Reports readiness under `token`, each time that it begins.
    pub(super) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        let source: &mut dyn Source = match self {
            Self::Tcp(stream) => stream,
            #[cfg(unix)]
            Self::Unix(stream) => stream,
        };
        registry.register(source, token, Interest::READABLE | Interest::WRITABLE)
    }

    #[inline]
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            #[cfg(unix)]
            Self::Unix(stream) => stream.read(buffer),
        }
    }

    #[inline]
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            #[cfg(unix)]
            Self::Unix(stream) => stream.write(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let tcp = Address::read("127.0.0.1:11211").unwrap();
        assert_eq!(tcp.to_string(), "127.0.0.1:11211");
        if cfg!(unix) {
            let unix = Address::read("./socket").unwrap();
            assert_eq!(unix, Address::Unix("./socket".into()));
        }
        for wrong in [
            "127.0.0.1",
            "socket",
            "127.0.0.1:port",
            "127.0.0.1:70000",
            "",
        ] {
            let why = Address::read(wrong).unwrap_err();
            assert!(why.contains(&format!("`{wrong}`")), "{why}");
        }
    }
}
