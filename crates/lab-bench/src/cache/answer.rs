//! Answers as bytes, however they are split.
//!
//! ```text
//! get   VALUE key flags bytes\r\n data \r\nEND\r\n   |   END\r\n
//! set   STORED\r\n
//! both  ERROR … \r\n   CLIENT_ERROR …   SERVER_ERROR …   NOT_STORED …
//! ```
//! A line is parsed when all of it is there. Data is compared piece by piece as it comes, and never
//! gathered.

use super::draw::{Kind, Request};
use super::request::Requests;
use memchr::memchr;

/// The longest line of an answer, in bytes. A longer one is no answer.
pub(super) const MAX_LINE: usize = 2048;

/// The end of a value.
const TAIL: &[u8] = b"\r\nEND\r\n";

/// A whole answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Hit,
    Miss,
    Stored,
    /// An error, or a value that was not stored.
    Refused,
    /// A value of another key, or not the value that this key was given.
    Wrong,
}

/// The outcome of parsing the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    /// An answer that ends after so many bytes.
    Answer(Answer, usize),
    /// A part of an answer, of which so many bytes need not be shown again.
    Part(usize),
    /// No answer of the protocol.
    Garbage,
}

/// The parser of a connection's answers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Parser {
    value: Option<Value>,
}

/// A value whose line was parsed.
#[derive(Clone, Copy, Debug)]
struct Value {
    seen: usize,
    bytes: usize,
    is_right: bool,
}

impl Parser {
    /// Parses the answer to `asked` from the start of `input`, or what there is of it.
    #[inline]
    pub(super) fn parse(&mut self, input: &[u8], asked: Request, requests: &Requests) -> Parsed {
        match self.value {
            Some(value) => self.data(value, input, 0, asked.key, requests),
            None => self.line(input, asked, requests),
        }
    }

    #[inline]
    fn line(&mut self, input: &[u8], asked: Request, requests: &Requests) -> Parsed {
        let Some(end) = memchr(b'\n', input) else {
            return match input.len() > MAX_LINE {
                true => Parsed::Garbage,
                false => Parsed::Part(0),
            };
        };
        let (line, used) = (&input[..=end], end + 1);
        let answer = match asked.kind {
            Kind::Get | Kind::Scan if line.starts_with(b"VALUE ") => {
                let Some(bytes) = length(line) else {
                    return Parsed::Garbage;
                };
                let value = Value {
                    seen: 0,
                    bytes,
                    is_right: requests.names(line, asked.key),
                };
                return self.data(value, input, used, asked.key, requests);
            }
            Kind::Get | Kind::Scan if line == b"END\r\n" => Answer::Miss,
            Kind::Set | Kind::Refill if line == b"STORED\r\n" => Answer::Stored,
            _ if is_refusal(line) => Answer::Refused,
            _ => return Parsed::Garbage,
        };
        Parsed::Answer(answer, used)
    }

    /// Takes the data of `value` from `at` on.
    #[inline]
    fn data(
        &mut self,
        mut value: Value,
        input: &[u8],
        at: usize,
        key: u64,
        requests: &Requests,
    ) -> Parsed {
        let piece = &input[at..];
        let piece = &piece[..piece.len().min(value.bytes - value.seen)];
        let content = requests.values.content(key, value.seen, piece.len());
        value.is_right &= piece == content;
        value.seen += piece.len();
        let used = at + piece.len();
        let rest = &input[used..];
        if value.seen < value.bytes || rest.len() < TAIL.len() {
            self.value = Some(value);
            return Parsed::Part(used);
        }
        self.value = None;
        match (rest.starts_with(TAIL), value.is_right) {
            (false, _) => Parsed::Garbage,
            (true, true) => Parsed::Answer(Answer::Hit, used + TAIL.len()),
            (true, false) => Parsed::Answer(Answer::Wrong, used + TAIL.len()),
        }
    }
}

/// The length of the value whose line is `VALUE key flags bytes\r\n`, perhaps with more words.
#[inline]
fn length(line: &[u8]) -> Option<usize> {
    let line = line.strip_suffix(b"\r\n")?;
    let mut words = line.split(|&byte| byte == b' ').skip(3);
    let digits = words.next()?;
    let is_number = !digits.is_empty() && digits.len() <= 10;
    let mut bytes = 0;
    for digit in digits {
        let digit = digit.is_ascii_digit().then(|| usize::from(digit - b'0'))?;
        bytes = bytes * 10 + digit;
    }
    is_number.then_some(bytes)
}

/// Whether the server says that it did not do what was asked.
fn is_refusal(line: &[u8]) -> bool {
    let words: [&[u8]; 4] = [b"ERROR", b"CLIENT_ERROR", b"SERVER_ERROR", b"NOT_STORED"];
    let after = words.iter().find_map(|word| line.strip_prefix(*word));
    after.is_some_and(|rest| rest.ends_with(b"\n") && b" \r\n".contains(&rest[0]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::keys::Sizes;

    const KEY: u64 = 0x2a;

    fn requests() -> Requests {
        Requests::new(4, Sizes::of(20))
    }

    fn request(kind: Kind) -> Request {
        Request { kind, key: KEY }
    }

    fn value(requests: &Requests) -> Vec<u8> {
        let data = requests.values.content(KEY, 0, 20);
        [b"VALUE 002a 0 20\r\n", data, TAIL].concat()
    }

    /// Shows a parser `input` in two parts, the first of them `cut` long, then what it has not used.
    fn split(input: &[u8], cut: usize, kind: Kind, requests: &Requests) -> Parsed {
        let (mut parser, mut from) = (Parser::default(), 0);
        for end in [cut, input.len()] {
            match parser.parse(&input[from..end], request(kind), requests) {
                Parsed::Part(used) => from += used,
                Parsed::Answer(answer, used) => return Parsed::Answer(answer, from + used),
                Parsed::Garbage => return Parsed::Garbage,
            }
        }
        Parsed::Part(from)
    }

    #[test]
    fn answers_are_parsed_however_they_are_split() {
        let requests = requests();
        let hit = value(&requests);
        let mut other = hit.clone();
        other[20] ^= 1;
        let mut named = hit.clone();
        named[9] = b'b';
        let cases: [(&[u8], Kind, Answer); 9] = [
            (&hit, Kind::Get, Answer::Hit),
            (&hit, Kind::Scan, Answer::Hit),
            (&other, Kind::Get, Answer::Wrong),
            (&named, Kind::Get, Answer::Wrong),
            (b"END\r\n", Kind::Get, Answer::Miss),
            (b"STORED\r\n", Kind::Set, Answer::Stored),
            (b"NOT_STORED\r\n", Kind::Refill, Answer::Refused),
            (
                b"SERVER_ERROR out of memory\r\n",
                Kind::Set,
                Answer::Refused,
            ),
            (b"ERROR\r\n", Kind::Get, Answer::Refused),
        ];
        for (input, kind, answer) in cases {
            let more = [input, b"VALUE next"].concat();
            for cut in 0..=more.len() {
                let parsed = split(&more, cut, kind, &requests);
                assert_eq!(parsed, Parsed::Answer(answer, input.len()), "{cut}");
            }
            // Byte by byte.
            let (mut parser, mut from) = (Parser::default(), 0);
            for end in 1..=input.len() {
                match parser.parse(&input[from..end], request(kind), &requests) {
                    Parsed::Part(used) => from += used,
                    Parsed::Answer(got, _) => assert_eq!((got, end), (answer, input.len())),
                    Parsed::Garbage => panic!("{end} of {input:?}"),
                }
            }
        }
    }

    #[test]
    fn a_value_of_another_length_is_right_if_its_bytes_are() {
        let requests = requests();
        let data = requests.values.content(KEY, 0, 7);
        let short = [b"VALUE 002a 0 7 99\r\n", data, TAIL].concat();
        let parsed = split(&short, 0, Kind::Get, &requests);
        assert_eq!(parsed, Parsed::Answer(Answer::Hit, short.len()));
        let long = [b"VALUE 002a 0 500\r\n", &[b'A'; 500][..], TAIL].concat();
        let parsed = split(&long, 30, Kind::Get, &requests);
        assert_eq!(parsed, Parsed::Answer(Answer::Wrong, long.len()));
    }

    #[test]
    fn garbage_is_no_answer() {
        let requests = requests();
        let cases: [(&[u8], Kind); 11] = [
            (b"STORED\r\n", Kind::Get),
            (b"END\r\n", Kind::Set),
            (b"VALUE 002a 0 20\r\n", Kind::Set),
            (b"VALUE 002a 0\r\n", Kind::Get),
            (b"VALUE 002a 0 many\r\n", Kind::Get),
            (b"VALUE 002a 0 99999999999\r\n", Kind::Get),
            (b"VALUE 002a 0 2\r\nABxxxxxxx", Kind::Get),
            (b"HTTP/1.1 400 Bad Request\r\n", Kind::Get),
            (b"ERRORS\r\n", Kind::Get),
            (b"\n", Kind::Get),
            (&[b'x'; MAX_LINE + 1], Kind::Get),
        ];
        for (input, kind) in cases {
            let parsed = split(input, 0, kind, &requests);
            assert_eq!(parsed, Parsed::Garbage, "{input:?}");
        }
    }
}
