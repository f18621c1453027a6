//! A client's connection.

use super::reader::Mode;
use super::service::{Client, State};
use super::slow::Watch;
use super::stream::Stream;
use super::turn::Turn;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;

/// A client's connection, as far as it has come.
pub(crate) struct Connection {
    pub(crate) stream: Stream,
    pub(crate) client: Arc<Client>,
    /// The number that tells it from earlier connections of the same place.
    pub(crate) generation: u64,
    pub(crate) mode: Mode,
    /// The bytes that have come and are not done with.
    pub(crate) input: Vec<u8>,
    /// The answers that did not go at once, and the number of bytes of them that have gone since.
    output: Vec<u8>,
    sent: usize,
    /// Requests that are on their way to other shards.
    pub(crate) turn: Option<Box<Turn>>,
    /// The time that its requests have taken, if somebody wants to know.
    pub(crate) watch: Option<Box<Watch>>,
    /// The socket may have more to read.
    pub(crate) may_read: bool,
    /// The client sends nothing more. After that no event tells of what is left to read.
    pub(crate) is_ending: bool,
    /// Nothing more will come: what has come is still done.
    pub(crate) has_gone: bool,
    /// The server ends: the connection is closed as soon as all commands that came are answered.
    pub(crate) is_last: bool,
    /// It is among the connections that are to be looked at again.
    pub(crate) is_queued: bool,
}

/// The outcome of a read or a write.
pub(crate) enum Outcome {
    /// So many bytes.
    Some(usize),
    /// The socket is not ready.
    Later,
    /// The client has gone.
    Gone,
}

fn outcome(result: io::Result<usize>) -> Outcome {
    match result {
        Ok(0) => Outcome::Gone,
        Ok(n) => Outcome::Some(n),
        Err(error) => match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::Interrupted => Outcome::Later,
            _ => Outcome::Gone,
        },
    }
}

impl Connection {
    pub(crate) fn new(stream: Stream, generation: u64, client: Arc<Client>, mode: Mode) -> Self {
        Self {
            stream,
            client,
            generation,
            mode,
            input: Vec::new(),
            output: Vec::new(),
            sent: 0,
            turn: None,
            watch: None,
            may_read: true,
            is_ending: false,
            has_gone: false,
            is_last: false,
            is_queued: false,
        }
    }

    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Outcome {
        outcome(self.stream.read(buffer))
    }

    /// Whether bytes wait to be sent.
    pub(crate) fn has_output(&self) -> bool {
        self.sent < self.output.len() || self.stream.has_output()
    }

    /// Sends `out`, and keeps what does not go. Returns false if the client has gone.
    pub(crate) fn write(&mut self, out: &[u8]) -> bool {
        debug_assert!(self.sent == self.output.len());
        match outcome(self.stream.write(out)) {
            Outcome::Some(n) if n == out.len() => true,
            Outcome::Some(n) => {
                self.keep(&out[n..]);
                // An encrypted stream may have taken a part only because it takes no more at a time.
                !self.stream.is_encrypted() || self.write_kept()
            }
            Outcome::Later => {
                self.keep(out);
                true
            }
            Outcome::Gone => false,
        }
    }

    /// The bytes that were kept and have not been sent.
    pub(crate) fn kept(&self) -> usize {
        self.output.len() - self.sent
    }

    fn keep(&mut self, out: &[u8]) {
        self.output = out.to_vec();
        self.sent = 0;
    }

    /// Sends what was kept. Returns false if the client has gone.
    pub(crate) fn write_kept(&mut self) -> bool {
        while self.sent < self.output.len() {
            match outcome(self.stream.write(&self.output[self.sent..])) {
                Outcome::Some(n) => self.sent += n,
                Outcome::Later => return true,
                Outcome::Gone => return false,
            }
        }
        self.output = Vec::new();
        self.sent = 0;
        match self.stream.flush() {
            Err(error) => error.kind() == ErrorKind::WouldBlock,
            Ok(()) => true,
        }
    }

    /// Keeps what has come and is not done with.
    pub(crate) fn keep_input(&mut self, left: &[u8]) {
        if left.is_empty() {
            self.input = Vec::new();
        } else {
            self.input.clear();
            self.input.extend_from_slice(left);
        }
    }

    /// Whether the server may end: the client has no command under way, and nothing more has come.
    pub(crate) fn may_end(&self) -> bool {
        self.is_last && !self.may_read && self.input.is_empty() && self.mode.is_between_commands()
    }

    /// Tells other threads what the connection waits for.
    pub(crate) fn tell_state(&self) {
        let state = if self.turn.is_some() {
            State::Waiting
        } else if self.has_output() {
            State::Writing
        } else if self.mode.has_value_to_come() {
            State::ReadingValue
        } else {
            State::Reading
        };
        self.client.set_state(state);
    }
}
