//! Runs cases on the servers of one program.

use crate::case::Case;
use crate::escape::{self, Piece};
use crate::exchange::{Answer, Connection, Delivery, Until};
use crate::normal::Numbers;
use crate::server::{Program, Server};
use std::net::SocketAddr;

/// How often a case is tried when a tick of a clock may have changed an answer.
const TRIES: usize = 4;

/// The cas number that is sent when the wanted one has not been answered.
const UNKNOWN: u64 = 999_999_999_999;

/// Bytes that no answer ends with.
const NEVER: &[u8] = b"this is the end of no answer";

/// A command that has no effect, and its answer, which no other command gives.
pub(crate) fn sentinel(number: usize) -> (Vec<u8>, Vec<u8>) {
    let key = format!("sentinel-{number}-of-the-conformance-suite");
    let (ask, answer) = (format!("mg {key} k\r\n"), format!("EN k{key}\r\n"));
    (ask.into_bytes(), answer.into_bytes())
}

/// Runs a case on the server at `address`.
pub(crate) fn run(address: SocketAddr, case: &Case, delivery: Delivery) -> Result<Answer, String> {
    let mut connection = Connection::open(address)?;
    let mut numbers = Numbers::default();
    let mut answer = Answer {
        bytes: Vec::new(),
        closed: false,
    };
    let mut offset = 0;
    for (nth, segment) in case.segments.iter().enumerate() {
        std::thread::sleep(segment.wait);
        let bytes = resolve(&segment.pieces, &numbers);
        let part = match delivery {
            Delivery::SplitAt(at) if !(offset..offset + bytes.len()).contains(&at) => {
                Delivery::Whole
            }
            Delivery::SplitAt(at) => Delivery::SplitAt(at - offset),
            Delivery::Random(seed) => Delivery::Random(seed.wrapping_add(nth as u64)),
            other => other,
        };
        offset += bytes.len();
        let is_last = nth + 1 == case.segments.len();
        let (ask, end) = sentinel(nth);
        let more = if let Some(end) = &segment.end {
            let until = Until::Sentinel(end.as_bytes());
            let mut more = connection.exchange(&bytes, b"", part, until)?;
            if !more.closed {
                more.bytes.extend_from_slice(end.as_bytes());
            }
            more
        } else if is_last && case.open {
            connection.exchange(&bytes, b"", part, Until::Closed)?
        } else if is_last && case.closes {
            connection.exchange(&bytes, b"", part, Until::Sentinel(NEVER))?
        } else {
            connection.exchange(&bytes, &ask, part, Until::Sentinel(&end))?
        };
        answer.bytes.extend(numbers.text(&more.bytes, &case.stats));
        answer.closed = more.closed;
        if more.closed {
            break;
        }
    }
    Ok(answer)
}

/// Fills in the numbers that depend on earlier answers.
pub(crate) fn resolve(pieces: &[Piece], numbers: &Numbers) -> Vec<u8> {
    let mut bytes = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Bytes(more) => bytes.extend_from_slice(more),
            Piece::Now(plus) => {
                bytes.extend((escape::unix_time() + plus).to_string().into_bytes());
            }
            Piece::Cas(n, plus) => {
                let cas = numbers.nth(*n).unwrap_or(UNKNOWN);
                bytes.extend(cas.wrapping_add_signed(*plus).to_string().into_bytes());
            }
        }
    }
    bytes
}

/// The servers of one program: one that the cases share, and others for those that need it.
pub(crate) struct Fleet {
    program: Program,
    shared: Server,
    control: Connection,
}

impl Fleet {
    /// Starts the shared server.
    pub(crate) fn start(program: Program) -> Result<Self, String> {
        Self::start_with(program, &[])
    }

    /// Starts the shared server with additional flags.
    pub(crate) fn start_with(program: Program, flags: &[String]) -> Result<Self, String> {
        let shared = program.start(flags)?;
        let control = Connection::open(shared.address())?;
        Ok(Self {
            program,
            shared,
            control,
        })
    }

    /// The address of the shared server.
    pub(crate) fn address(&self) -> SocketAddr {
        self.shared.address()
    }

    /// Empties the shared server.
    pub(crate) fn reset(&mut self) -> Result<(), String> {
        let until = Until::Sentinel(b"OK\r\n");
        let answer = self
            .control
            .exchange(b"flush_all\r\n", b"", Delivery::Whole, until);
        match answer {
            Ok(answer) if !answer.closed && answer.bytes.is_empty() => Ok(()),
            other => {
                let error = format!("flush_all is not answered by OK: {other:?}");
                let error = self.explain(error);
                if let Ok(control) = Connection::open(self.shared.address()) {
                    self.control = control;
                }
                Err(error)
            }
        }
    }

    /// Runs a case on an empty server. Cases that wait share the server: their keys differ.
    pub(crate) fn run(&mut self, case: &Case, delivery: Delivery) -> Result<Answer, String> {
        if case.own {
            let mut server = self.program.start(&case.flags)?;
            let answer = run(server.address(), case, delivery);
            return answer.map_err(|error| match server.end() {
                Some(end) => format!("{error} ({end})"),
                None => error,
            });
        }
        self.reset()?;
        let answer = run(self.shared.address(), case, delivery);
        answer.map_err(|error| self.explain(error))
    }

    /// Runs a case that should give `wanted`. Returns the answer that differs, if one does.
    pub(crate) fn check(
        &mut self,
        case: &Case,
        delivery: Delivery,
        wanted: &Answer,
    ) -> Result<(), String> {
        let tries = if case.retry { TRIES } else { 1 };
        let mut difference = String::new();
        for _ in 0..tries {
            match self.run(case, delivery) {
                Ok(answer) if answer == *wanted => return Ok(()),
                Ok(answer) => difference = differ(wanted, &answer),
                Err(error) => return Err(error),
            }
        }
        Err(difference)
    }

    /// Adds to an error that the shared server has ended, if it has.
    pub(crate) fn explain(&mut self, error: String) -> String {
        match self.shared.end() {
            Some(end) => format!("{error} ({end})"),
            None => error,
        }
    }
}

/// Shows how two answers differ.
pub(crate) fn differ(wanted: &Answer, answer: &Answer) -> String {
    let (wanted, answer) = (
        crate::recorded::shown(wanted),
        crate::recorded::shown(answer),
    );
    let same = wanted
        .lines()
        .zip(answer.lines())
        .take_while(|(a, b)| a == b)
        .count();
    let rest = |text: &str| {
        let lines: Vec<&str> = text.lines().skip(same).take(6).collect();
        if lines.is_empty() {
            "(nothing)".to_owned()
        } else {
            lines.join("\n    ")
        }
    };
    format!(
        "after {same} equal lines\n  wanted:\n    {}\n  answered:\n    {}",
        rest(&wanted),
        rest(&answer)
    )
}
