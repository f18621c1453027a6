//! The flags of meta commands (`mg`, `ms`, `md`, `ma`).

use super::number;
use super::text::{Refused, Words};

const INVALID: Refused = "CLIENT_ERROR invalid or duplicate flag\r\n";

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
    for (name, token) in each(words) {
        if name >= 127 || seen & (1 << name) != 0 {
            return Err(INVALID);
        }
        seen |= 1 << name;
        let i32 = || number::expiry(token).ok_or(INVALID);
        let u64 = || number::u64(token).ok_or(INVALID);
        match name {
            b'N' => flags.vivify = Some(i32()?),
            b'T' => flags.expiry = Some(i32()?),
            b'R' => flags.recache = Some(i32()?),
            b'b' => flags.is_binary = true,
            b'v' => flags.wants_value = true,
            b'q' => flags.is_quiet = true,
            b'u' => flags.is_unnoticed = true,
            b'I' => flags.invalidates = true,
            b'F' => flags.flags = number::u32(token).ok_or(INVALID)?,
            b'C' => flags.cas = Some(u64()?),
            b'M' => match token {
                [mode] => flags.mode = Some(*mode),
                _ => return Err(INVALID),
            },
            b'J' => flags.initial = u64()?,
            b'D' => flags.delta = u64()?,
            b'O' | b'P' | b'L' | b'k' | b's' | b't' | b'c' | b'f' | b'l' | b'h' => {}
            _ => return Err(INVALID),
        }
    }
    Ok(flags)
}

/// The flags of `words` with their tokens.
pub(crate) fn each(words: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    Words(words).filter_map(|word| word.split_first().map(|(&name, token)| (name, token)))
}
