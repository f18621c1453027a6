//! The binary protocol: the header of a request, the command that it asks for, and answers.
//!
//! ```text
//! byte  0       1      2..4     4         5      6..8      8..12    12..16   16..24
//!       │ magic │ code │ key's  │ extras' │ data │ vbucket │ body's │ opaque │ cas │
//!       │       │      │ length │ length  │ type │         │ length │        │     │
//! ```
//! A body follows: extras, key and value. Numbers are big-endian. An answer has a status in place of
//! the vbucket. As in memcached, a request's data type and vbucket mean nothing.

use super::text::{LONGEST_KEY, Verb};

/// The first byte of a request, by which a connection's protocol is known.
pub(crate) const REQUEST: u8 = 0x80;
/// The first byte of an answer.
const ANSWER: u8 = 0x81;
/// The bytes of a header.
pub(crate) const HEADER: usize = 24;
/// The expiry of a count that is not to be created.
const NEVER: u32 = u32::MAX;

/// Commands by their codes. Those that end in `Q` are quiet.
mod code {
    pub(super) const GET: u8 = 0x00;
    pub(super) const SET: u8 = 0x01;
    pub(super) const ADD: u8 = 0x02;
    pub(super) const REPLACE: u8 = 0x03;
    pub(super) const DELETE: u8 = 0x04;
    pub(super) const INCREMENT: u8 = 0x05;
    pub(super) const DECREMENT: u8 = 0x06;
    pub(super) const QUIT: u8 = 0x07;
    pub(super) const FLUSH: u8 = 0x08;
    pub(super) const GETQ: u8 = 0x09;
    pub(super) const NOOP: u8 = 0x0a;
    pub(super) const VERSION: u8 = 0x0b;
    pub(super) const GETK: u8 = 0x0c;
    pub(super) const GETKQ: u8 = 0x0d;
    pub(super) const APPEND: u8 = 0x0e;
    pub(super) const PREPEND: u8 = 0x0f;
    pub(super) const STAT: u8 = 0x10;
    pub(super) const SETQ: u8 = 0x11;
    pub(super) const ADDQ: u8 = 0x12;
    pub(super) const REPLACEQ: u8 = 0x13;
    pub(super) const DELETEQ: u8 = 0x14;
    pub(super) const INCREMENTQ: u8 = 0x15;
    pub(super) const DECREMENTQ: u8 = 0x16;
    pub(super) const QUITQ: u8 = 0x17;
    pub(super) const FLUSHQ: u8 = 0x18;
    pub(super) const APPENDQ: u8 = 0x19;
    pub(super) const PREPENDQ: u8 = 0x1a;
    pub(super) const TOUCH: u8 = 0x1c;
    pub(super) const GAT: u8 = 0x1d;
    pub(super) const GATQ: u8 = 0x1e;
    pub(super) const SASL_MECHANISMS: u8 = 0x20;
    pub(super) const SASL_AUTHENTICATE: u8 = 0x21;
    pub(super) const SASL_STEP: u8 = 0x22;
    pub(super) const GATK: u8 = 0x23;
    pub(super) const GATKQ: u8 = 0x24;
}

/// The outcome of a request in its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum Status {
    NotFound = 0x01,
    Exists = 0x02,
    TooLarge = 0x03,
    Invalid = 0x04,
    NotStored = 0x05,
    NotNumber = 0x06,
    Forbidden = 0x20,
    UnknownCommand = 0x81,
    NoMemory = 0x82,
}

impl Status {
    /// The value of an answer with this status.
    fn text(self) -> &'static str {
        match self {
            Self::NotFound => "Not found",
            Self::Exists => "Data exists for key.",
            Self::TooLarge => "Too large.",
            Self::Invalid => "Invalid arguments",
            Self::NotStored => "Not stored.",
            Self::NotNumber => "Non-numeric server-side value for incr or decr",
            Self::Forbidden => "Auth failure.",
            Self::UnknownCommand => "Unknown command",
            Self::NoMemory => "Out of memory",
        }
    }
}

/// A command on one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyCommand {
    /// Retrieve an item, with its key; and set its expiry.
    Get {
        with_key: bool,
        touches: bool,
    },
    /// Set an item's expiry.
    Touch,
    /// Write the value. A cas in the header makes `Set`, `Add` and `Replace` a [`Verb::Cas`].
    Store(Verb),
    Delete,
    Arithmetic {
        is_increment: bool,
    },
}

/// A command whose lengths are as it wants them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Key { command: KeyCommand, is_quiet: bool },
    Flush { is_quiet: bool },
    Stat,
    Noop,
    Version,
    Quit { is_quiet: bool },
}

/// A request that is refused by its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) status: Status,
    /// The bytes that are swallowed before the answer.
    pub(crate) left: u64,
    /// Whether the connection ends after the answer.
    pub(crate) ends: bool,
}

/// The header of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    code: u8,
    /// The lengths of the key, the extras, and the body with both of them, as the client gives them.
    pub(crate) key: u16,
    pub(crate) extras: u8,
    body: u32,
    opaque: u32,
    /// The cas that the item has to have; 0 if any will do.
    pub(crate) cas: u64,
}

fn read_u32(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes[..4].try_into().expect("four bytes"))
}

fn read_u64(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(bytes[..8].try_into().expect("eight bytes"))
}

/// The code of the same command that is not quiet, and whether `code` is quiet.
fn loud(code: u8) -> (u8, bool) {
    let loud = match code {
        code::GETQ => code::GET,
        code::GETKQ => code::GETK,
        code::GATQ => code::GAT,
        code::GATKQ => code::GATK,
        code::SETQ => code::SET,
        code::ADDQ => code::ADD,
        code::REPLACEQ => code::REPLACE,
        code::APPENDQ => code::APPEND,
        code::PREPENDQ => code::PREPEND,
        code::DELETEQ => code::DELETE,
        code::INCREMENTQ => code::INCREMENT,
        code::DECREMENTQ => code::DECREMENT,
        code::FLUSHQ => code::FLUSH,
        code::QUITQ => code::QUIT,
        _ => return (code, false),
    };
    (loud, true)
}

impl Header {
    /// Reads a header, whose magic is [`REQUEST`].
    #[inline]
    pub(crate) fn read(bytes: &[u8; HEADER]) -> Self {
        Self {
            code: bytes[1],
            key: u16::from_be_bytes([bytes[2], bytes[3]]),
            extras: bytes[4],
            body: read_u32(&bytes[8..]),
            opaque: read_u32(&bytes[12..]),
            cas: read_u64(&bytes[16..]),
        }
    }

    /// The bytes of the key and the extras.
    pub(crate) fn before_value(&self) -> usize {
        usize::from(self.key) + usize::from(self.extras)
    }

    /// The bytes of the value; 0 if the body is shorter than key and extras.
    pub(crate) fn value(&self) -> usize {
        (self.body as usize).saturating_sub(self.before_value())
    }

    /// The command, if it is known and its lengths are as it wants them.
    #[inline]
    pub(crate) fn command(&self) -> Result<Command, Refused> {
        let refused = |status| Refused {
            status,
            left: self.before_value() as u64,
            ends: true,
        };
        if self.before_value() > self.body as usize {
            return Err(refused(Status::UnknownCommand));
        }
        if usize::from(self.key) > LONGEST_KEY {
            return Err(refused(Status::Invalid));
        }
        let (code, is_quiet) = loud(self.code);
        let (has_key, has_value) = (self.key > 0, self.value() > 0);
        let bare = self.body == 0;
        let on_key = |command| Command::Key { command, is_quiet };
        let get = |with_key, touches| on_key(KeyCommand::Get { with_key, touches });
        let store = |verb| on_key(KeyCommand::Store(verb));
        let add = |is_increment| on_key(KeyCommand::Arithmetic { is_increment });
        let (command, fits) = match code {
            code::GET => (get(false, false), self.is_key_alone()),
            code::GETK => (get(true, false), self.is_key_alone()),
            // memcached reads a value after these as the next request: see `Reader::read_request`.
            code::GAT => (get(false, true), has_key && self.extras == 4),
            code::GATK => (get(true, true), has_key && self.extras == 4),
            code::TOUCH => (on_key(KeyCommand::Touch), has_key && self.extras == 4),
            code::SET => (store(Verb::Set), has_key && self.extras == 8),
            code::ADD => (store(Verb::Add), has_key && self.extras == 8),
            code::REPLACE => (store(Verb::Replace), has_key && self.extras == 8),
            code::APPEND => (store(Verb::Append), has_key && self.extras == 0),
            code::PREPEND => (store(Verb::Prepend), has_key && self.extras == 0),
            code::DELETE => (on_key(KeyCommand::Delete), self.is_key_alone()),
            code::INCREMENT | code::DECREMENT => (
                add(code == code::INCREMENT),
                has_key && self.extras == 20 && !has_value,
            ),
            code::FLUSH => (
                Command::Flush { is_quiet },
                !has_key && matches!(self.extras, 0 | 4) && !has_value,
            ),
            code::STAT => (Command::Stat, self.extras == 0),
            code::NOOP => (Command::Noop, bare),
            code::VERSION => (Command::Version, bare),
            code::QUIT => (Command::Quit { is_quiet }, bare),
            code::SASL_MECHANISMS if !bare => return Err(refused(Status::Invalid)),
            code::SASL_AUTHENTICATE | code::SASL_STEP if !has_key || self.extras > 0 => {
                return Err(refused(Status::Invalid));
            }
            // There is no SASL.
            code::SASL_MECHANISMS | code::SASL_AUTHENTICATE | code::SASL_STEP => {
                return Err(Refused {
                    status: Status::UnknownCommand,
                    left: u64::from(self.body),
                    ends: false,
                });
            }
            _ => return Err(self.refuse_unknown()),
        };
        if fits {
            Ok(command)
        } else {
            Err(refused(Status::Invalid))
        }
    }

    fn is_key_alone(&self) -> bool {
        self.key > 0 && self.extras == 0 && self.value() == 0
    }

    /// Refuses an unknown command. memcached swallows its key and its extras twice, and then takes the
    /// middle of a request for the beginning of one. Here the connection ends instead.
    #[cold]
    fn refuse_unknown(&self) -> Refused {
        let before_value = self.before_value() as u64;
        Refused {
            status: Status::UnknownCommand,
            left: before_value + u64::from(self.body),
            ends: before_value > 0,
        }
    }
}

/// The header of a request and its extras: all that a shard has to know besides the key and the value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head<'a> {
    pub(crate) header: Header,
    extras: &'a [u8],
}

impl<'a> Head<'a> {
    /// Reads a header and the extras after it. `None` if the header has not come whole.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<Self> {
        let (header, extras) = bytes.split_first_chunk()?;
        let header = Header::read(header);
        Some(Self { header, extras })
    }

    /// The client's flags and the expiry of an item that is to be written. Commands without extras keep
    /// those of the item.
    pub(crate) fn stored(&self) -> (u32, u32) {
        match self.extras.len() {
            8 => (read_u32(self.extras), read_u32(&self.extras[4..])),
            _ => (0, 0),
        }
    }

    /// The expiry of `touch` and `gat`, or the delay of `flush`: 0 without extras.
    pub(crate) fn time(&self) -> u32 {
        match self.extras.len() {
            4 => read_u32(self.extras),
            _ => 0,
        }
    }

    /// The difference of a count, and the number and the expiry with which one is created.
    pub(crate) fn counted(&self) -> (u64, Option<(u64, u32)>) {
        if self.extras.len() != 20 {
            return (0, None);
        }
        let expiry = read_u32(&self.extras[16..]);
        let initial = (expiry != NEVER).then(|| (read_u64(&self.extras[8..]), expiry));
        (read_u64(self.extras), initial)
    }
}

/// The parts of an answer without an error.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Answer<'a> {
    pub(crate) extras: &'a [u8],
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
    pub(crate) cas: u64,
}

impl Answer<'_> {
    /// Appends the answer to a request.
    #[inline]
    pub(crate) fn write(&self, header: &Header, out: &mut Vec<u8>) {
        self.write_with(0, header, out);
    }

    #[inline]
    fn write_with(&self, status: u16, header: &Header, out: &mut Vec<u8>) {
        let body = self.extras.len() + self.key.len() + self.value.len();
        out.reserve(HEADER + body);
        out.extend_from_slice(&[ANSWER, header.code]);
        out.extend_from_slice(&(self.key.len() as u16).to_be_bytes());
        out.extend_from_slice(&[self.extras.len() as u8, 0]);
        out.extend_from_slice(&status.to_be_bytes());
        out.extend_from_slice(&(body as u32).to_be_bytes());
        out.extend_from_slice(&header.opaque.to_be_bytes());
        out.extend_from_slice(&self.cas.to_be_bytes());
        out.extend_from_slice(self.extras);
        out.extend_from_slice(self.key);
        out.extend_from_slice(self.value);
    }
}

/// Appends an answer with an error.
pub(crate) fn write_error(status: Status, header: &Header, out: &mut Vec<u8>) {
    let answer = Answer {
        value: status.text().as_bytes(),
        ..Answer::default()
    };
    answer.write_with(status as u16, header, out);
}

/// Appends the answer that there is no item of `key`, which it names.
pub(crate) fn write_miss(key: &[u8], header: &Header, out: &mut Vec<u8>) {
    let answer = Answer {
        key,
        ..Answer::default()
    };
    answer.write_with(Status::NotFound as u16, header, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(code: u8, key: u16, extras: u8, body: u32) -> Header {
        Header {
            code,
            key,
            extras,
            body,
            opaque: 0,
            cas: 0,
        }
    }

    #[track_caller]
    fn demand(header: Header, status: Status, left: u64, ends: bool) {
        let refused = Refused { status, left, ends };
        assert_eq!(header.command(), Err(refused), "{header:?}");
    }

    #[test]
    fn a_header_is_read() {
        let mut bytes = [0; HEADER];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = at as u8 + 0x80;
        }
        let read = Header::read(&bytes);
        let wanted = Header {
            code: 0x81,
            key: 0x8283,
            extras: 0x84,
            body: 0x8889_8a8b,
            opaque: 0x8c8d_8e8f,
            cas: 0x9091_9293_9495_9697,
        };
        assert_eq!(read, wanted);
    }

    #[test]
    fn quiet_commands_are_the_loud_ones() {
        let loud = [
            (code::SET, 1, 8, 10),
            (code::APPEND, 1, 0, 2),
            (code::DELETE, 1, 0, 1),
            (code::INCREMENT, 1, 20, 21),
            (code::DECREMENT, 1, 20, 21),
            (code::GET, 1, 0, 1),
            (code::GETK, 1, 0, 1),
            (code::GAT, 1, 4, 5),
            (code::GATK, 1, 4, 5),
        ];
        let quiet = [
            code::SETQ,
            code::APPENDQ,
            code::DELETEQ,
            code::INCREMENTQ,
            code::DECREMENTQ,
            code::GETQ,
            code::GETKQ,
            code::GATQ,
            code::GATKQ,
        ];
        for ((loud, key, extras, body), quiet) in loud.into_iter().zip(quiet) {
            let command = |code| match header(code, key, extras, body).command() {
                Ok(Command::Key { command, is_quiet }) => (command, is_quiet),
                other => panic!("{code:#x}: {other:?}"),
            };
            let (wanted, is_quiet) = command(loud);
            assert!(!is_quiet);
            assert_eq!(command(quiet), (wanted, true));
        }
        let quit = header(code::QUITQ, 0, 0, 0).command();
        assert_eq!(quit, Ok(Command::Quit { is_quiet: true }));
        let flush = header(code::FLUSHQ, 0, 4, 4).command();
        assert_eq!(flush, Ok(Command::Flush { is_quiet: true }));
    }

    #[test]
    fn lengths_that_do_not_fit_are_refused() {
        // A body shorter than its key, than its extras, and than both.
        demand(header(code::GET, 2, 0, 1), Status::UnknownCommand, 2, true);
        demand(
            header(code::SET, 1, 255, 254),
            Status::UnknownCommand,
            256,
            true,
        );
        demand(
            header(code::SET, 5, 8, 12),
            Status::UnknownCommand,
            13,
            true,
        );
        demand(
            header(code::SET, u16::MAX, u8::MAX, 0),
            Status::UnknownCommand,
            65_790,
            true,
        );
        // A key that is too long, missing, or too much.
        demand(header(code::GET, 251, 0, 251), Status::Invalid, 251, true);
        demand(
            header(code::SET, u16::MAX, 8, u32::MAX),
            Status::Invalid,
            65_543,
            true,
        );
        demand(header(code::SET, 0, 8, 9), Status::Invalid, 8, true);
        demand(header(code::NOOP, 1, 0, 1), Status::Invalid, 1, true);
        // A value that is too much: it is not waited for.
        demand(header(code::GET, 1, 0, u32::MAX), Status::Invalid, 1, true);
        demand(header(code::NOOP, 0, 0, u32::MAX), Status::Invalid, 0, true);
        // Unknown commands, and those of SASL.
        demand(header(0x1f, 0, 0, 9), Status::UnknownCommand, 9, false);
        demand(header(0x1b, 0, 4, 4), Status::UnknownCommand, 8, true);
        demand(
            header(0xff, 0, 0, u32::MAX),
            Status::UnknownCommand,
            u64::from(u32::MAX),
            false,
        );
        demand(
            header(code::SASL_STEP, 5, 0, 9),
            Status::UnknownCommand,
            9,
            false,
        );
    }

    #[test]
    fn the_largest_body_is_a_value() {
        let largest = header(code::SET, 1, 8, u32::MAX);
        assert!(largest.command().is_ok());
        assert_eq!(largest.value(), u32::MAX as usize - 9);
    }

    #[test]
    fn an_answer_has_its_lengths() {
        let mut out = Vec::new();
        let answer = Answer {
            extras: &[1, 2],
            key: b"key",
            value: b"value",
            cas: 0x0102_0304_0506_0708,
        };
        let to = Header {
            opaque: 0xdead_beef,
            ..header(code::GETK, 3, 0, 3)
        };
        answer.write(&to, &mut out);
        let wanted = b"\x81\x0c\0\x03\x02\0\0\0\0\0\0\x0a\xde\xad\xbe\xef\x01\x02\x03\x04\x05\x06\
                       \x07\x08\x01\x02keyvalue";
        assert_eq!(out, wanted);
        out.clear();
        write_error(Status::TooLarge, &to, &mut out);
        assert_eq!(out[..12], *b"\x81\x0c\0\0\0\0\0\x03\0\0\0\x0a");
        assert_eq!(out[HEADER..], *b"Too large.");
    }

    proptest! {
        /// No header makes a command of a key that no store takes, or of extras that are too short.
        #[test]
        fn commands_have_the_parts_that_they_want(bytes in any::<[u8; HEADER]>(), code in 0u8..0x26) {
            let mut bytes = bytes;
            bytes[1] = code;
            // Short lengths, so that some headers are good.
            (bytes[2], bytes[4], bytes[8], bytes[9], bytes[10]) = (bytes[2] & 1, bytes[4] & 0x1c, 0, 0, bytes[10] & 1);
            let header = Header::read(&bytes);
            match header.command() {
                Ok(Command::Key { command, .. }) => {
                    prop_assert!((1..=250).contains(&header.key));
                    let extras = match command {
                        KeyCommand::Get { touches: false, .. } | KeyCommand::Delete => 0,
                        KeyCommand::Get { .. } | KeyCommand::Touch => 4,
                        KeyCommand::Store(Verb::Append | Verb::Prepend) => 0,
                        KeyCommand::Store(_) => 8,
                        KeyCommand::Arithmetic { .. } => 20,
                    };
                    prop_assert_eq!(header.extras, extras);
                    prop_assert!(header.body as usize >= header.before_value());
                }
                Ok(_) => prop_assert!(header.before_value() <= 250),
                Err(refused) => prop_assert!(refused.ends || refused.status == Status::UnknownCommand),
            }
        }
    }
}
