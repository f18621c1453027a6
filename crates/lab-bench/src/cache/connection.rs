//! A connection with its requests in flight.

use super::address::Stream;
use super::answer::{Answer, MAX_LINE, Parsed, Parser};
use super::draw::{Kind, Request};
use super::request::Requests;
use super::tally::Tally;
use std::io::{self, ErrorKind};
use std::sync::Arc;

/// The writer of a load thread's requests, and all that it notes of their answers.
#[derive(Debug)]
pub(super) struct Book {
    pub(super) requests: Arc<Requests>,
    pub(super) tally: Tally,
    /// The first error that the server answered.
    pub(super) refusal: Option<String>,
    /// Whether a key that was missed is to be set.
    pub(super) sets_missed: bool,
}

/// A request in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) request: Request,
    /// The moment from which its latency counts, in nanoseconds since the block began.
    pub(super) since_ns: u64,
}

/// A connection. Between two turns its buffers are empty unless the server is slow.
#[derive(Debug)]
pub(super) struct Connection {
    stream: Stream,
    parser: Parser,
    /// The requests of the batch in flight; those before `answered` have been.
    asked: Vec<Asked>,
    answered: usize,
    /// The start of a line whose end has not arrived.
    carried: Vec<u8>,
    /// Bytes that the system would not take yet.
    unsent: Vec<u8>,
    /// Keys that were missed and are to be set.
    pub(super) missed: Vec<u64>,
}

/// The reason why a connection is of no more use.
#[derive(Debug)]
pub(super) enum Broken {
    Closed,
    /// The server sent this, which is no answer.
    Garbage(String),
    System(io::Error),
}

impl Connection {
    pub(super) fn new(stream: Stream, pipeline: usize) -> Self {
        Self {
            stream,
            parser: Parser::default(),
            asked: Vec::with_capacity(pipeline),
            answered: 0,
            carried: Vec::with_capacity(MAX_LINE),
            unsent: Vec::new(),
            missed: Vec::with_capacity(pipeline),
        }
    }

    /// The requests in flight.
    pub(super) fn in_flight(&self) -> usize {
        self.asked.len() - self.answered
    }

    /// Appends a request to the next batch, and its bytes to `output`.
    #[inline]
    pub(super) fn ask(&mut self, asked: Asked, requests: &Requests, output: &mut Vec<u8>) {
        requests.write(asked.request, output);
        self.asked.push(asked);
    }

    /// Sends a batch in one write; what the system does not take is sent when it does.
    #[inline]
    pub(super) fn send(&mut self, output: &[u8], tally: &mut Tally) -> Result<(), Broken> {
        tally.counts.sent += output.len() as u64;
        if !self.unsent.is_empty() {
            self.unsent.extend_from_slice(output);
            return Ok(());
        }
        let taken = write(&mut self.stream, output)?;
        if taken < output.len() {
            self.unsent.extend_from_slice(&output[taken..]);
        }
        Ok(())
    }

    /// Sends what the system did not take before.
    pub(super) fn flush(&mut self) -> Result<(), Broken> {
        if !self.unsent.is_empty() {
            let taken = write(&mut self.stream, &self.unsent)?;
            self.unsent.drain(..taken);
        }
        Ok(())
    }

    /// Reads what has arrived, once, or up to the end if `to_end`. Enters the answers into `book`, at the
    /// time that `now_ns` tells after each read. Returns the number of answers.
    #[inline]
    pub(super) fn receive(
        &mut self,
        buffer: &mut [u8],
        to_end: bool,
        book: &mut Book,
        mut now_ns: impl FnMut() -> u64,
    ) -> Result<usize, Broken> {
        let mut answers = 0;
        loop {
            let carried = self.carried.len();
            let read = match self.stream.read(&mut buffer[carried..]) {
                Ok(0) => return Err(Broken::Closed),
                Ok(read) => read,
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => return Ok(answers),
                    ErrorKind::Interrupted => continue,
                    ErrorKind::ConnectionReset => return Err(Broken::Closed),
                    _ => return Err(Broken::System(error)),
                },
            };
            book.tally.counts.received += read as u64;
            buffer[..carried].copy_from_slice(&self.carried);
            self.carried.clear();
            let input = &buffer[..carried + read];
            let (taken, used) = self.take(input, book, now_ns())?;
            answers += taken;
            self.carried.extend_from_slice(&input[used..]);
            // A read that did not fill the buffer has left nothing; what comes later is reported.
            if input.len() < buffer.len() && !to_end {
                return Ok(answers);
            }
        }
    }

    /// Takes the answers from `input`. Returns their number and that of the bytes used.
    #[inline]
    fn take(
        &mut self,
        input: &[u8],
        book: &mut Book,
        now_ns: u64,
    ) -> Result<(usize, usize), Broken> {
        let (mut answers, mut used) = (0, 0);
        while used < input.len() {
            let rest = &input[used..];
            let Some(&asked) = self.asked.get(self.answered) else {
                return Err(Broken::Garbage(first_line(rest)));
            };
            match self.parser.parse(rest, asked.request, &book.requests) {
                Parsed::Part(part) => {
                    used += part;
                    break;
                }
                Parsed::Garbage => return Err(Broken::Garbage(first_line(rest))),
                Parsed::Answer(answer, bytes) => {
                    used += bytes;
                    answers += 1;
                    self.answered += 1;
                    if answer == Answer::Refused && book.refusal.is_none() {
                        book.refusal = Some(first_line(rest));
                    }
                    book.tally.record(now_ns.saturating_sub(asked.since_ns));
                    let is_miss = count(answer, asked.request.kind, &mut book.tally);
                    if is_miss && book.sets_missed {
                        self.missed.push(asked.request.key);
                    }
                }
            }
        }
        if self.answered == self.asked.len() {
            self.asked.clear();
            self.answered = 0;
        }
        Ok((answers, used))
    }
}

/// Counts an answer. Returns whether it is a miss.
#[inline]
fn count(answer: Answer, kind: Kind, tally: &mut Tally) -> bool {
    let counts = &mut tally.counts;
    match kind {
        Kind::Get => {
            counts.gets += 1;
            counts.hits += u64::from(answer == Answer::Hit);
            counts.misses += u64::from(answer == Answer::Miss);
        }
        Kind::Scan => counts.scans += 1,
        Kind::Set => counts.sets += 1,
        Kind::Refill => counts.refills += 1,
    }
    counts.refused += u64::from(answer == Answer::Refused);
    counts.wrong += u64::from(answer == Answer::Wrong);
    answer == Answer::Miss
}

/// Writes once. Returns the number of bytes that were taken, 0 if the system takes none now.
#[inline]
fn write(stream: &mut Stream, bytes: &[u8]) -> Result<usize, Broken> {
    loop {
        match stream.write(bytes) {
            Ok(taken) => return Ok(taken),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock => return Ok(0),
                ErrorKind::Interrupted => {}
                ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => return Err(Broken::Closed),
                _ => return Err(Broken::System(error)),
            },
        }
    }
}

/// The first line of what a server sent, as text, at most 60 characters of it.
pub(super) fn first_line(bytes: &[u8]) -> String {
    let line = bytes
        .split(|&byte| byte == b'\n')
        .next()
        .unwrap_or_default();
    let text = String::from_utf8_lossy(line);
    let shown = |c: char| if c.is_control() { '.' } else { c };
    text.trim_end().chars().take(60).map(shown).collect()
}
