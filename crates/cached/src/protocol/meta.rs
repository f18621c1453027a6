//! The flags of meta commands (`mg`, `ms`, `md`, `ma`).

use super::number;
use super::text::{Refused, Words};

const BAD_TOKEN: Refused = "CLIENT_ERROR bad token in command line format\r\n";
const BAD_MODE_LENGTH: Refused = "CLIENT_ERROR incorrect length for M token\r\n";
const BAD_INITIAL: Refused = "CLIENT_ERROR invalid numeric initial value\r\n";
const BAD_DELTA: Refused = "CLIENT_ERROR invalid numeric delta value\r\n";
const DUPLICATE: Refused = "CLIENT_ERROR duplicate flag\r\n";
const INVALID: Refused = "CLIENT_ERROR invalid flag\r\n";

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
}

/// Reads the flags of `words`.
pub(crate) fn read(words: &[u8]) -> Result<Flags, Refused> {
    let mut flags = Flags {
        delta: 1,
        ..Flags::default()
    };
    let mut seen = 0u128;
    let mut error = None;
    for word in Words(words) {
        let (&name, token) = word.split_first().ok_or(INVALID)?;
        if name >= 127 || seen & (1 << name) != 0 {
            return Err(DUPLICATE);
        }
        seen |= 1 << name;
        let mut i32 = || {
            number::i32(token)
                .ok_or(BAD_TOKEN)
                .map_err(|e| error = Some(e))
                .ok()
        };
        match name {
            b'N' => flags.vivify = i32(),
            b'T' => flags.expiry = i32(),
            b'R' => flags.recache = i32(),
            b'b' => flags.is_binary = true,
            b'v' => flags.wants_value = true,
            b'q' => flags.is_quiet = true,
            b'u' => flags.is_unnoticed = true,
            b'I' => flags.invalidates = true,
            b'F' => match number::u32(token) {
                Some(number) => flags.flags = number,
                None => error = Some(BAD_TOKEN),
            },
            b'C' => match number::u64(token) {
                Some(number) => flags.cas = Some(number),
                None => error = Some(BAD_TOKEN),
            },
            b'M' => match token {
                [mode] => flags.mode = Some(*mode),
                _ => error = Some(BAD_MODE_LENGTH),
            },
            b'J' => match number::u64(token) {
                Some(number) => flags.initial = number,
                None => error = Some(BAD_INITIAL),
            },
            b'D' => match number::u64(token) {
                Some(number) => flags.delta = number,
                None => error = Some(BAD_DELTA),
            },
            b'O' | b'P' | b'L' | b'k' | b's' | b't' | b'c' | b'f' | b'l' | b'h' => {}
            _ => return Err(INVALID),
        }
    }
    error.map_or(Ok(flags), Err)
}

/// The flags of `words` with their tokens.
pub(crate) fn each(words: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    Words(words).filter_map(|word| word.split_first().map(|(&name, token)| (name, token)))
}
