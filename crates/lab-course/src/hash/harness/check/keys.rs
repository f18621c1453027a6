//! Keys of many kinds: close together, far apart, and such that many hash functions put them in
//! one place.

use turns::{Dice, mix};

/// The inverse of the multiplier of Fibonacci hashing: multiples of it have small hashes.
const INVERSE: u64 = 0xF1DE_83E1_9937_733D;

/// Keys at the borders of number types, which a table may have given a meaning of its own.
const BORDERS: [u64; 16] = [
    u64::MAX,
    0,
    1 << 32,
    (1 << 32) - 1,
    u64::MAX - 1,
    1 << 63,
    (1 << 63) - 1,
    (1 << 32) + 1,
    (1 << 63) + 1,
    1,
    1 << 31,
    (1 << 31) - 1,
    1 << 48,
    (1 << 16) - 1,
    1 << 16,
    u64::MAX << 32,
];

/// A way to number keys. Different numbers below 2^32 have different keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// 0, 1, 2, …
    Dense,
    /// Random ones, which differ from table to table.
    Random(u64),
    /// The largest numbers.
    Last,
    /// Multiples of a power of two, or numbers whose bits lie at both ends: all other bits are
    /// equal, whichever these are.
    Rotated(u32),
    /// Equal upper and lower halves.
    Halves,
    /// Keys with small Fibonacci hashes.
    SmallHashes,
    /// Keys whose Fibonacci hashes have equal lower halves.
    EqualHashes,
    /// The borders of number types, and random keys after them.
    Borders(u64),
}

impl Keys {
    /// Chooses a kind. Only keys that spread well are chosen for `many` keys: a table may be slow
    /// with others.
    pub fn any(dice: &mut Dice, many: bool) -> Self {
        let random = dice.next();
        match dice.below(if many { 6 } else { 14 }) {
            0..3 => Self::Dense,
            3 | 4 => Self::Random(random),
            5 => Self::Last,
            6 => Self::Rotated(32),
            7 | 8 => Self::Rotated(dice.below(64) as u32),
            9 => Self::Halves,
            10 => Self::SmallHashes,
            11 => Self::EqualHashes,
            _ => Self::Borders(random),
        }
    }

    /// Returns the key of a number.
    pub fn of(self, number: u64) -> u64 {
        match self {
            Self::Dense => number,
            Self::Random(salt) => mix(salt.wrapping_add(number)),
            Self::Last => u64::MAX - number,
            Self::Rotated(bits) => number.rotate_left(bits),
            Self::Halves => (number << 32) | number,
            Self::SmallHashes => number.wrapping_mul(INVERSE),
            Self::EqualHashes => (number << 32).wrapping_mul(INVERSE),
            Self::Borders(salt) => match BORDERS.get(number as usize) {
                Some(&border) => border,
                None => {
                    // A border is no random key, too.
                    let key = mix(salt.wrapping_add(number));
                    if BORDERS.contains(&key) {
                        key ^ 0x5555_0000
                    } else {
                        key
                    }
                }
            },
        }
    }
}
