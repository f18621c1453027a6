//! A connection: bytes are sent in given chunks, the answer is read up to its end.
//!
//! Waiting for silence would be slow and unreliable. Instead a sentinel command follows, whose
//! answer cannot be mistaken; or the sending side is closed, and the server's end of the
//! connection ends the answer.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// How long a server may do nothing.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long one exchange may take altogether.
const LIMIT: Duration = Duration::from_secs(60);

/// Bytes that fit into the socket buffers, whatever the server does.
const SMALL: usize = 32 << 10;

/// The longest request that is sent byte by byte.
const BYTEWISE: usize = 8 << 10;

/// How the end of an answer is recognised.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Until<'a> {
    /// The answer ends with these bytes, or the server closes the connection.
    Sentinel(&'a [u8]),
    /// The client closes its sending side; the server answers and closes the connection.
    Closed,
}

/// How the bytes of a request reach the server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Delivery {
    /// One write.
    Whole,
    /// Two writes; the second begins at this byte.
    SplitAt(usize),
    /// A write for each byte; one write if the request is long.
    Bytes,
    /// Writes of random lengths, drawn from this seed.
    Random(u64),
}

impl Delivery {
    /// The ends of the chunks of `length` bytes.
    fn ends(self, length: usize) -> Vec<usize> {
        let mut ends = match self {
            Self::Whole => Vec::new(),
            Self::SplitAt(at) => vec![at.min(length)],
            Self::Bytes if length > BYTEWISE => Vec::new(),
            Self::Bytes => (1..length).collect(),
            Self::Random(seed) => {
                let mut random = crate::random::Random::new(seed);
                let mut ends: Vec<_> = (0..1 + random.below(6))
                    .map(|_| random.below(length as u64 + 1) as usize)
                    .collect();
                ends.sort_unstable();
                ends
            }
        };
        ends.push(length);
        ends
    }

    /// The time between two writes: long enough that the server usually reads them separately.
    fn pause(self) -> Duration {
        match self {
            Self::Bytes => Duration::ZERO,
            _ => Duration::from_micros(60),
        }
    }
}

/// The answer to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The bytes, without the sentinel's answer.
    pub(crate) bytes: Vec<u8>,
    /// Whether the server closed the connection.
    pub(crate) closed: bool,
}

/// A connection to a server.
pub(crate) struct Connection {
    stream: TcpStream,
}

impl Connection {
    /// Connects to a server.
    pub(crate) fn open(address: SocketAddr) -> Result<Self, String> {
        let connect = || {
            let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            Ok(Self { stream })
        };
        connect().map_err(|error: std::io::Error| format!("no connection: {error}"))
    }

    /// Sends `request`, then `sentinel`, and returns the answer.
    pub(crate) fn exchange(
        &mut self,
        request: &[u8],
        sentinel: &[u8],
        delivery: Delivery,
        until: Until<'_>,
    ) -> Result<Answer, String> {
        let ends = delivery.ends(request.len());
        let whole = [request, sentinel].concat();
        let stream = &self.stream;
        let send = move || send(stream, &whole, &ends, delivery.pause(), until);
        if request.len() <= SMALL {
            send();
            return self.receive(until);
        }
        // A server that cannot send its answers reads no more requests.
        std::thread::scope(|scope| {
            scope.spawn(send);
            self.receive(until)
        })
    }

    fn receive(&self, until: Until<'_>) -> Result<Answer, String> {
        let start = Instant::now();
        let mut bytes = Vec::new();
        let mut buffer = vec![0; 64 << 10];
        let closed = loop {
            if let Until::Sentinel(end) = until
                && bytes.ends_with(end)
            {
                bytes.truncate(bytes.len() - end.len());
                break false;
            }
            match (&self.stream).read(&mut buffer) {
                Ok(0) => break true,
                Ok(count) => bytes.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_timeout(&error) => {
                    return Err(too_slow(&bytes, PATIENCE));
                }
                // The server closed the connection and did not read everything.
                Err(_) => break true,
            }
            if start.elapsed() > LIMIT {
                return Err(too_slow(&bytes, LIMIT));
            }
        };
        Ok(Answer { bytes, closed })
    }
}

/// Sends the chunks of `whole`, which end at `ends`; what follows the last of them goes with it.
/// Stops when the server closes the connection.
fn send(mut stream: &TcpStream, whole: &[u8], ends: &[usize], pause: Duration, until: Until<'_>) {
    let mut start = 0;
    for (nth, &end) in ends.iter().enumerate() {
        let is_last = nth + 1 == ends.len();
        let end = if is_last { whole.len() } else { end };
        if stream.write_all(&whole[start..end]).is_err() {
            return;
        }
        start = end;
        if !is_last && !pause.is_zero() {
            std::thread::sleep(pause);
        }
    }
    if let Until::Closed = until {
        let _ = stream.shutdown(Shutdown::Write);
    }
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

fn too_slow(bytes: &[u8], limit: Duration) -> String {
    let start = crate::escape::show(&bytes[..bytes.len().min(2000)]);
    format!(
        "the answer has no end after {limit:?}; so far {} bytes:\n{start}",
        bytes.len()
    )
}
