//! The flags of meta commands (`mg`, `ms`, `md`, `ma`).

use super::number;
use super::text::{BAD_FORMAT, Refused, Words};
use crate::shard::Meta;
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::general_purpose::{GeneralPurpose, PAD};
use std::borrow::Cow;

const BAD_TOKEN: Refused = "CLIENT_ERROR bad token in command line format\r\n";
const BAD_MODE_LENGTH: Refused = "CLIENT_ERROR incorrect length for M token\r\n";
const BAD_INITIAL: Refused = "CLIENT_ERROR invalid numeric initial value\r\n";
const BAD_DELTA: Refused = "CLIENT_ERROR invalid numeric delta value\r\n";
const DUPLICATE: Refused = "CLIENT_ERROR duplicate flag\r\n";
const INVALID: Refused = "CLIENT_ERROR invalid flag\r\n";
/// The answer of `md` and `ma` to all of these.
const INVALID_OR_DUPLICATE: Refused = "CLIENT_ERROR invalid or duplicate flag\r\n";
const TOO_MANY: Refused = "CLIENT_ERROR options flags too long\r\n";
const TOO_MANY_OF_GET: Refused = "CLIENT_ERROR options flags are too long\r\n";
const LONG_OPAQUE: Refused = "CLIENT_ERROR opaque token too long\r\n";
const BAD_KEY: Refused = "CLIENT_ERROR error decoding key\r\n";
const BAD_MODE: Refused = "CLIENT_ERROR invalid mode for ms M token\r\n";
const BAD_ARITHMETIC_MODE: Refused = "CLIENT_ERROR invalid mode for ma M token\r\n";

/// The most words of a command, as memcached counts them: with one for the end of the line.
const MOST_WORDS: usize = 20;
/// The most bytes of an opaque token.
const LONGEST_OPAQUE: usize = 31;

/// The flags of a meta command, read once. Expiries are as the client gives them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags {
    /// `b`: the key is in base64.
    pub(crate) is_binary: bool,
    /// `v`: return the value.
    pub(crate) wants_value: bool,
    /// `q`: no ordinary answer.
    pub(crate) is_quiet: bool,
    /// `u`: not counted as a use.
    pub(crate) is_unnoticed: bool,
    /// `I`: invalidate.
    pub(crate) invalidates: bool,
    /// `N`: create an item with this expiry if there is none.
    pub(crate) vivify: Option<i32>,
    /// `R`: recache if the item expires before.
    pub(crate) recache: Option<i32>,
    /// `T`: set the expiry.
    pub(crate) expiry: Option<i32>,
    /// `C`: compare the cas.
    pub(crate) cas: Option<u64>,
    /// `F`: the client's flags.
    pub(crate) flags: u32,
    /// `M`: the mode.
    pub(crate) mode: Option<u8>,
    /// `J`: the initial number.
    pub(crate) initial: u64,
    /// `D`: the difference.
    pub(crate) delta: u64,
    /// `O`: the opaque token is too long.
    has_long_opaque: bool,
}

/// Reads the flags of `words`, whose key [`check`] has decoded if need be.
pub(crate) fn read(words: &[u8]) -> Result<Flags, Refused> {
    let is_decoded = true;
    read_with(words, || is_decoded)
}

/// Reads the flags of `words`. A flag that is unknown, or that is there twice, comes before bad tokens, of
/// which the last one is told. A key that `decodes` refuses is one of them.
fn read_with(words: &[u8], mut decodes: impl FnMut() -> bool) -> Result<Flags, Refused> {
    let mut flags = Flags {
        delta: 1,
        ..Flags::default()
    };
    let (mut seen, mut error) = (0u128, None);
    for (name, token) in each(words) {
        if name >= 127 || seen & (1 << name) != 0 {
            return Err(DUPLICATE);
        }
        seen |= 1 << name;
        let read = match name {
            b'N' => number::expiry(token)
                .map(|n| flags.vivify = Some(n))
                .ok_or(BAD_TOKEN),
            b'T' => number::expiry(token)
                .map(|n| flags.expiry = Some(n))
                .ok_or(BAD_TOKEN),
            b'R' => number::expiry(token)
                .map(|n| flags.recache = Some(n))
                .ok_or(BAD_TOKEN),
            b'C' => number::u64(token)
                .map(|n| flags.cas = Some(n))
                .ok_or(BAD_TOKEN),
            b'F' => number::u32(token)
                .map(|n| flags.flags = n)
                .ok_or(BAD_FORMAT),
            b'J' => number::u64(token)
                .map(|n| flags.initial = n)
                .ok_or(BAD_INITIAL),
            b'D' => number::u64(token).map(|n| flags.delta = n).ok_or(BAD_DELTA),
            b'M' => match token {
                [mode] => {
                    flags.mode = Some(*mode);
                    Ok(())
                }
                _ => Err(BAD_MODE_LENGTH),
            },
            b'b' => {
                flags.is_binary = true;
                decodes().then_some(()).ok_or(BAD_KEY)
            }
            b'v' | b'q' | b'u' | b'I' => {
                let flag = match name {
                    b'v' => &mut flags.wants_value,
                    b'q' => &mut flags.is_quiet,
                    b'u' => &mut flags.is_unnoticed,
                    _ => &mut flags.invalidates,
                };
                *flag = true;
                Ok(())
            }
            b'O' => {
                flags.has_long_opaque = token.len() > LONGEST_OPAQUE;
                Ok(())
            }
            b'P' | b'L' | b'k' | b's' | b't' | b'c' | b'f' | b'l' | b'h' => Ok(()),
            _ => return Err(INVALID),
        };
        // As in memcached, that of the client's flags is told only if there is no other.
        error = if name == b'F' {
            error.or(read.err())
        } else {
            read.err().or(error)
        };
    }
    error.map_or(Ok(flags), Err)
}

/// Checks the number of a command's flags.
pub(crate) fn check_count(command: Meta, words: &[u8]) -> Result<(), Refused> {
    let before = if command == Meta::Set { 3 } else { 2 };
    if Words(words).count() + before < MOST_WORDS {
        return Ok(());
    }
    let is_get = command == Meta::Get;
    Err(if is_get { TOO_MANY_OF_GET } else { TOO_MANY })
}

/// Checks a command's flags, and decodes its key if it is in base64.
pub(crate) fn check<'k>(
    command: Meta,
    key: &'k [u8],
    words: &[u8],
) -> Result<Cow<'k, [u8]>, Refused> {
    if command == Meta::Debug {
        // It knows no other flag, and ignores them.
        let is_binary = each(words).next().is_some_and(|(name, _)| name == b'b');
        return if is_binary {
            decode(key).ok_or(BAD_FORMAT)
        } else {
            Ok(Cow::Borrowed(key))
        };
    }
    check_count(command, words)?;
    let mut name = Cow::Borrowed(key);
    let checked = read_with(words, || decode(key).map(|key| name = key).is_some());
    let flags = checked.map_err(|refused| match command {
        Meta::Delete | Meta::Arithmetic => INVALID_OR_DUPLICATE,
        _ => refused,
    })?;
    match (command, flags.mode) {
        (Meta::Set, Some(mode)) if !b"EAPRS".contains(&mode) => Err(BAD_MODE),
        (Meta::Arithmetic, Some(mode)) if !b"ID+-".contains(&mode) => Err(BAD_ARITHMETIC_MODE),
        // As in memcached, this comes last.
        _ if flags.has_long_opaque => Err(LONG_OPAQUE),
        _ => Ok(name),
    }
}

/// The code of keys in base64. As in memcached, the last digit's bits that belong to no byte may be set.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, PAD.with_decode_allow_trailing_bits(true));

fn decode(key: &[u8]) -> Option<Cow<'static, [u8]>> {
    let key = BASE64.decode(key).ok()?;
    (!key.is_empty()).then_some(Cow::Owned(key))
}

/// The flags of `words` with their tokens.
pub(crate) fn each(words: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    Words(words).filter_map(|word| word.split_first().map(|(&name, token)| (name, token)))
}
