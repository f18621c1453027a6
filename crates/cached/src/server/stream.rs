//! Sockets: TCP or Unix, encrypted or not.

use super::service::Peer;
use crate::tls::Tls;
use mio::event::Source;
use mio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use mio::{Interest, Registry, Token};
use rustls::ServerConnection;
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;

/// A socket that accepts clients.
pub(crate) enum Listener {
    /// It listens on this address.
    Tcp(TcpListener, SocketAddr),
    Unix(UnixListener),
}

impl Listener {
    /// The address that clients come to.
    pub(crate) fn address(&self) -> Peer {
        match self {
            Self::Tcp(_, address) => Peer::Tcp(*address),
            Self::Unix(_) => Peer::Unix,
        }
    }

    /// Accepts a client.
    pub(crate) fn accept(&self) -> io::Result<(Stream, Peer)> {
        match self {
            Self::Tcp(listener, _) => {
                let (stream, address) = listener.accept()?;
                // Answers go at once. A socket that refuses that is slower and no worse.
                let _ = stream.set_nodelay(true);
                Ok((Stream::Tcp(stream), Peer::Tcp(address)))
            }
            Self::Unix(listener) => {
                let (stream, _) = listener.accept()?;
                Ok((Stream::Unix(stream), Peer::Unix))
            }
        }
    }

    /// The socket, to be watched.
    pub(crate) fn source(&mut self) -> &mut dyn Source {
        match self {
            Self::Tcp(listener, _) => listener,
            Self::Unix(listener) => listener,
        }
    }
}

/// A client's socket.
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Encrypted(Box<Encrypted>),
}

impl Stream {
    /// Begins to encrypt.
    pub(crate) fn encrypted(self, tls: &Tls) -> io::Result<Self> {
        let session = tls.session().map_err(io::Error::other)?;
        let socket = self;
        Ok(Self::Encrypted(Box::new(Encrypted { session, socket })))
    }

    /// Whether there may be bytes to read that no event tells of.
    pub(crate) fn is_encrypted(&self) -> bool {
        matches!(self, Self::Encrypted(_))
    }

    /// Whether bytes that have been written wait for the socket.
    pub(crate) fn has_output(&self) -> bool {
        match self {
            Self::Encrypted(encrypted) => encrypted.session.wants_write(),
            _ => false,
        }
    }

    /// Lets the events of the socket come.
    pub(crate) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        match self {
            Self::Tcp(stream) => registry.register(stream, token, interest),
            Self::Unix(stream) => registry.register(stream, token, interest),
            Self::Encrypted(encrypted) => encrypted.socket.register(registry, token),
        }
    }

    /// The file descriptor.
    pub(crate) fn number(&self) -> i32 {
        match self {
            Self::Tcp(stream) => stream.as_raw_fd(),
            Self::Unix(stream) => stream.as_raw_fd(),
            Self::Encrypted(encrypted) => encrypted.socket.number(),
        }
    }

    /// Tells an encrypted client that nothing more comes, as far as the socket takes it.
    pub(crate) fn end(&mut self) {
        if let Self::Encrypted(encrypted) = self {
            encrypted.session.send_close_notify();
            let _ = encrypted.send();
        }
    }
}

impl Read for Stream {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
            Self::Encrypted(encrypted) => encrypted.read(buffer),
        }
    }
}

impl Write for Stream {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
            Self::Encrypted(encrypted) => encrypted.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Encrypted(encrypted) => encrypted.send(),
            _ => Ok(()),
        }
    }
}

/// A socket with a TLS session.
pub(crate) struct Encrypted {
    session: ServerConnection,
    socket: Stream,
}

impl Encrypted {
    /// Sends what the session has to send, or fails with `WouldBlock`.
    fn send(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            self.session.write_tls(&mut self.socket)?;
        }
        Ok(())
    }

    /// Reads and decrypts. It does so until something is there to be read: a client that sends more than 32
    /// records without content is refused by the session.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.session.reader().read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                result => return result,
            }
            if self.session.read_tls(&mut self.socket)? == 0 {
                return Ok(0);
            }
            let processed = self.session.process_new_packets();
            // An alert, or a part of the handshake.
            match self.send() {
                Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
                _ => {}
            }
            processed.map_err(io::Error::other)?;
        }
    }

    /// Encrypts `bytes`, as many as the session holds at a time, once those before have gone.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.send()?;
        let n = self.session.writer().write(bytes)?;
        match self.send() {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
            _ => Ok(n),
        }
    }
}
