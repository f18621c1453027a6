//! The text protocol: a line, and what it asks for.

use super::{meta, number};
use crate::shard::Meta;
use memchr::memchr;

/// The most bytes of a key.
pub(crate) const LONGEST_KEY: usize = 250;

/// A line that is no command, with the answer that says so.
pub(crate) type Refused = &'static str;

/// No answer.
const SILENCE: Refused = "";
pub(crate) const ERROR: Refused = "ERROR\r\n";
pub(crate) const BAD_FORMAT: Refused = "CLIENT_ERROR bad command line format\r\n";
pub(crate) const BAD_CHUNK: Refused = "CLIENT_ERROR bad data chunk\r\n";
const NO_WATCHING: Refused = "CLIENT_ERROR watch commands not allowed\r\n";
const NO_DUMP: Refused = "ERROR metadump not allowed\r\n";
const BAD_DELETE: Refused =
    "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n";
const BAD_DELTA: Refused = "CLIENT_ERROR invalid numeric delta argument\r\n";
pub(crate) const BAD_EXPIRY: Refused = "CLIENT_ERROR invalid exptime argument\r\n";

/// A way to write a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Set,
    Add,
    Replace,
    Append,
    Prepend,
    /// Write if the item's cas is this.
    Cas(u64),
}

/// A command. Keys and the rest of the line are borrowed from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command<'a> {
    /// Retrieve the keys of the rest of the line; with their cas numbers; and set their expiry.
    Get {
        keys: &'a [u8],
        with_cas: bool,
        expiry: Option<i32>,
    },
    /// A block of `len` bytes and an end of line follow.
    Store {
        verb: Verb,
        key: &'a [u8],
        flags: u32,
        expiry: i32,
        len: usize,
        is_quiet: bool,
    },
    Arithmetic {
        key: &'a [u8],
        delta: u64,
        is_increment: bool,
        is_quiet: bool,
    },
    Touch {
        key: &'a [u8],
        expiry: i32,
        is_quiet: bool,
    },
    Delete {
        key: &'a [u8],
        is_quiet: bool,
    },
    /// Without a delay if that was no number.
    FlushAll {
        delay: Option<i32>,
        is_quiet: bool,
    },
    Verbosity {
        is_quiet: bool,
    },
    /// A meta command on a key, with its flags.
    Meta {
        command: Meta,
        key: &'a [u8],
        words: &'a [u8],
    },
    /// A meta command with flags, after which a block of `len` bytes and an end of line follow.
    MetaSet {
        key: &'a [u8],
        words: &'a [u8],
        len: usize,
    },
    Stats(&'a [u8]),
    Version,
    Noop,
    ShutDown,
    /// Read the certificate and its key again.
    RenewCertificates,
    Quit,
}

/// The words of a line.
#[derive(Clone)]
pub(crate) struct Words<'a>(pub(crate) &'a [u8]);

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let begin = self.0.iter().position(|&byte| byte != b' ')?;
        let text = &self.0[begin..];
        let end = text
            .iter()
            .position(|&byte| byte == b' ')
            .unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        self.0 = rest;
        Some(word)
    }
}

/// The words after a command, of which there are so many as it allows.
struct Arguments<'a> {
    words: [&'a [u8]; 7],
    len: usize,
}

impl<'a> Arguments<'a> {
    fn read(words: Words<'a>) -> Self {
        let mut arguments = Self {
            words: [&[]; 7],
            len: 0,
        };
        for word in words.take(7) {
            arguments.words[arguments.len] = word;
            arguments.len += 1;
        }
        arguments
    }

    fn demand(&self, range: std::ops::RangeInclusive<usize>) -> Result<(), Refused> {
        if range.contains(&self.len) {
            Ok(())
        } else {
            Err(ERROR)
        }
    }

    /// Whether the last word asks for no answer.
    fn is_quiet(&self) -> bool {
        self.len > 0 && self.words[self.len - 1] == b"noreply"
    }

    fn key(&self) -> Result<&'a [u8], Refused> {
        key(self.words[0])
    }

    /// Demands so many words, and hands them to `read`. A command that asks for no answer gets none
    /// to its errors, either.
    fn read_with<T>(
        words: Words<'a>,
        range: std::ops::RangeInclusive<usize>,
        read: impl FnOnce(&Self) -> Result<T, Refused>,
    ) -> Result<T, Refused> {
        let arguments = Self::read(words);
        arguments.demand(range)?;
        let refused = |refused| {
            if arguments.is_quiet() {
                SILENCE
            } else {
                refused
            }
        };
        read(&arguments).map_err(refused)
    }
}

pub(crate) fn key(word: &[u8]) -> Result<&[u8], Refused> {
    if word.len() > LONGEST_KEY {
        return Err(BAD_FORMAT);
    }
    Ok(word)
}

/// Reads a line, without its end.
#[inline]
pub(crate) fn read(line: &[u8]) -> Result<Command<'_>, Refused> {
    // A line ends at a zero, as C's strings do.
    let line = memchr(0, line).map_or(line, |zero| &line[..zero]);
    if let Some(keys) = line.strip_prefix(b"get ")
        && !keys.is_empty()
        && keys[0] != b' '
    {
        return Ok(Command::Get {
            keys,
            with_cas: false,
            expiry: None,
        });
    }
    read_any(line)
}

/// Whether one of the keys in a line is too long.
#[cold]
pub(crate) fn has_long_key(line: &[u8]) -> bool {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    Words(line).any(|word| word.len() > LONGEST_KEY)
}

/// Whether a line is the first one of an HTTP request.
pub(crate) fn is_http(line: &[u8]) -> bool {
    Words(line)
        .last()
        .is_some_and(|word| word.starts_with(b"HTTP/"))
}

fn read_any(line: &[u8]) -> Result<Command<'_>, Refused> {
    let mut words = Words(line);
    let Some(name) = words.next() else {
        return Err(ERROR);
    };
    match name {
        b"get" | b"gets" | b"bget" => {
            let keys = words.0;
            words.next().ok_or(ERROR)?;
            Ok(Command::Get {
                keys,
                with_cas: name == b"gets",
                expiry: None,
            })
        }
        b"gat" | b"gats" => {
            let expiry = words.next().ok_or(ERROR)?;
            Ok(Command::Get {
                keys: words.0,
                with_cas: name == b"gats",
                expiry: Some(number::expiry(expiry).ok_or(BAD_EXPIRY)?),
            })
        }
        b"set" => read_store(Verb::Set, words),
        b"add" => read_store(Verb::Add, words),
        b"replace" => read_store(Verb::Replace, words),
        b"append" => read_store(Verb::Append, words),
        b"prepend" => read_store(Verb::Prepend, words),
        b"cas" => read_store(Verb::Cas(0), words),
        b"incr" | b"decr" => Arguments::read_with(words, 2..=3, |arguments| {
            Ok(Command::Arithmetic {
                key: arguments.key()?,
                delta: number::u64(arguments.words[1]).ok_or(BAD_DELTA)?,
                is_increment: name == b"incr",
                is_quiet: arguments.is_quiet(),
            })
        }),
        b"touch" => Arguments::read_with(words, 2..=3, |arguments| {
            Ok(Command::Touch {
                key: arguments.key()?,
                expiry: number::expiry(arguments.words[1]).ok_or(BAD_EXPIRY)?,
                is_quiet: arguments.is_quiet(),
            })
        }),
        b"delete" => Arguments::read_with(words, 1..=3, read_delete),
        b"flush_all" => Arguments::read_with(words, 0..=2, |arguments| {
            let is_quiet = arguments.is_quiet();
            let delay = if arguments.len == usize::from(is_quiet) {
                Some(0)
            } else {
                number::expiry(arguments.words[0])
            };
            Ok(Command::FlushAll { delay, is_quiet })
        }),
        b"verbosity" => Arguments::read_with(words, 1..=2, |arguments| {
            number::u64(arguments.words[0]).ok_or(BAD_FORMAT)?;
            Ok(Command::Verbosity {
                is_quiet: arguments.is_quiet(),
            })
        }),
        b"shutdown" => Ok(Command::ShutDown),
        b"refresh_certs" => Ok(Command::RenewCertificates),
        b"watch" => Err(if words.all(is_kind_of_event) {
            NO_WATCHING
        } else {
            ERROR
        }),
        b"mg" => read_meta(Meta::Get, words),
        b"md" => read_meta(Meta::Delete, words),
        b"ma" => read_meta(Meta::Arithmetic, words),
        b"me" => read_meta(Meta::Debug, words),
        b"ms" => read_meta_set(words),
        b"lru_crawler" if words.next() == Some(b"metadump") => Err(NO_DUMP),
        b"stats" => Ok(Command::Stats(words.0)),
        b"version" => Ok(Command::Version),
        b"mn" => Ok(Command::Noop),
        b"quit" => Ok(Command::Quit),
        _ => Err(ERROR),
    }
}

/// Whether memcached's `watch` knows a kind of events.
fn is_kind_of_event(word: &[u8]) -> bool {
    let kinds = [&b"fetchers"[..], b"mutations", b"evictions", b"connevents"];
    kinds.contains(&word)
}

fn read_meta(command: Meta, mut words: Words<'_>) -> Result<Command<'_>, Refused> {
    let missing = if command == Meta::Debug {
        BAD_FORMAT
    } else {
        ERROR
    };
    let key = key(words.next().ok_or(missing)?)?;
    Ok(Command::Meta {
        command,
        key,
        words: words.0,
    })
}

fn read_meta_set(mut words: Words<'_>) -> Result<Command<'_>, Refused> {
    let key = key(words.next().ok_or(ERROR)?)?;
    let len = words.next().ok_or(BAD_FORMAT)?;
    meta::check_count(Meta::Set, words.0)?;
    let len = number::i32(len).filter(|&len| len <= i32::MAX - 2);
    Ok(Command::MetaSet {
        key,
        len: len.and_then(|len| len.try_into().ok()).ok_or(BAD_FORMAT)?,
        words: words.0,
    })
}

fn read_delete<'a>(arguments: &Arguments<'a>) -> Result<Command<'a>, Refused> {
    let is_quiet = arguments.len > 1 && arguments.is_quiet();
    let is_good = match &arguments.words[1..arguments.len] {
        [] => true,
        [word] => *word == b"0" || is_quiet,
        [hold, _] => *hold == b"0" && is_quiet,
        _ => false,
    };
    if !is_good {
        return Err(BAD_DELETE);
    }
    Ok(Command::Delete {
        key: arguments.key()?,
        is_quiet,
    })
}

fn read_store(verb: Verb, words: Words<'_>) -> Result<Command<'_>, Refused> {
    let fixed = if matches!(verb, Verb::Cas(_)) { 5 } else { 4 };
    Arguments::read_with(words, fixed..=fixed + 1, |arguments| {
        let words = &arguments.words;
        let verb = match verb {
            Verb::Cas(_) => Verb::Cas(number::u64(words[4]).ok_or(BAD_FORMAT)?),
            verb => verb,
        };
        let len = number::i32(words[3]).ok_or(BAD_FORMAT)?;
        if len > i32::MAX - 2 {
            return Err(BAD_FORMAT);
        }
        Ok(Command::Store {
            verb,
            key: arguments.key()?,
            flags: number::u32(words[1]).ok_or(BAD_FORMAT)?,
            expiry: number::expiry(words[2]).ok_or(BAD_FORMAT)?,
            len: usize::try_from(len).map_err(|_| BAD_FORMAT)?,
            is_quiet: arguments.is_quiet(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_commands() {
        let set = Command::Store {
            verb: Verb::Set,
            key: b"k",
            flags: 7,
            expiry: -1,
            len: 5,
            is_quiet: true,
        };
        assert_eq!(read(b"set k 7 -1 5 noreply"), Ok(set));
        assert_eq!(read(b"set  k  7 -1 5 noreply "), Ok(set));
        let keys = |line| match read(line) {
            Ok(Command::Get { keys, .. }) => Words(keys).count(),
            other => panic!("{other:?}"),
        };
        assert_eq!(
            [keys(b"get a"), keys(b"get  a b "), keys(b"gats 0 a b c")],
            [1, 2, 3]
        );
        assert_eq!(
            read(b"delete k 0 noreply").unwrap(),
            Command::Delete {
                key: b"k",
                is_quiet: true
            }
        );
        assert_eq!(
            read(b"flush_all noreply").unwrap(),
            Command::FlushAll {
                delay: Some(0),
                is_quiet: true
            }
        );
    }

    #[test]
    fn lines_that_are_no_commands_are_refused() {
        for line in [
            &b""[..],
            b" ",
            b"get",
            b"get ",
            b"gat",
            b"set k 0 0",
            b"bogus",
            b"incr k",
        ] {
            assert_eq!(read(line), Err(ERROR), "{}", line.escape_ascii());
        }
        let bad = [
            &b"set k x 0 1"[..],
            b"set k 0 0 -1",
            b"set k 0 0 2147483646",
            b"set k 0 0 4294967301",
            b"set k 4294967296 0 1",
            b"cas k 0 0 1 x",
        ];
        for line in bad {
            assert_eq!(read(line), Err(BAD_FORMAT), "{}", line.escape_ascii());
        }
        assert_eq!(read(b"delete k 5"), Err(BAD_DELETE));
        assert_eq!(read(b"incr k x"), Err(BAD_DELTA));
    }
}
