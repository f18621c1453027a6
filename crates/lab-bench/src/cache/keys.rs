//! Names of keys, sizes and contents of values. All follow from a key's number, so that an answer
//! can be checked by whoever knows what was asked.
//!
//! ```text
//! key 0xf4240 in 12 bytes   0000000f4240      hexadecimal digits, `k` in front of the 16th
//! value                     a piece of one random text, which begins at a place that the key tells
//! ```

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::SplitMix64;

/// Hexadecimal digits of the largest key.
const DIGITS: usize = 16;

/// Places in the text at which values begin.
const STARTS: usize = 64;

/// Number of hexadecimal digits that write `number`, at least 1.
pub(super) fn digits(number: u64) -> usize {
    (64 - number.leading_zeros() as usize).div_ceil(4).max(1)
}

/// Eight hexadecimal digits as they stand in text.
#[inline]
fn hex8(number: u32) -> [u8; 8] {
    // Spreads the eight nibbles over the bytes of a word, the highest first.
    let mut word = u64::from(number);
    word = (word | word << 16) & 0x0000_ffff_0000_ffff;
    word = (word | word << 8) & 0x00ff_00ff_00ff_00ff;
    word = (word | word << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    // 1 in each byte that holds a letter's digit: 10 + 6 carries into the high nibble.
    let letters = (word + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101;
    let ascii = word + 0x3030_3030_3030_3030 + letters * u64::from(b'a' - b'0' - 10);
    ascii.to_be_bytes()
}

/// Writes the name of `key` into all of `place`: its last bytes are digits, the others are left as
/// they are.
#[inline]
pub(super) fn write_key(key: u64, place: &mut [u8]) {
    let mut text = [0; DIGITS];
    text[..8].copy_from_slice(&hex8((key >> 32) as u32));
    text[8..].copy_from_slice(&hex8(key as u32));
    let written = place.len().min(DIGITS);
    let at = place.len() - written;
    place[at..].copy_from_slice(&text[DIGITS - written..]);
}

/// A number that looks random, and follows from a key.
#[inline]
fn mix(key: u64) -> u64 {
    let mixed = (key ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ mixed >> 32).wrapping_mul(0x94d0_49bb_1331_11eb)
}

/// Lengths of values: one, or a range of which each length is as likely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    low: usize,
    high: usize,
}

impl Sizes {
    /// The same length for all values.
    pub fn of(size: usize) -> Self {
        Self {
            low: size,
            high: size,
        }
    }

    /// Lengths from `low` to `high`, both included; `None` if they are in the wrong order.
    pub fn between(low: usize, high: usize) -> Option<Self> {
        (low <= high).then_some(Self { low, high })
    }

    /// The length of all values, if they have the same.
    pub(super) fn only(self) -> Option<usize> {
        (self.low == self.high).then_some(self.low)
    }

    /// The longest length.
    pub fn high(self) -> usize {
        self.high
    }

    /// The length of the value of `key`.
    #[inline]
    pub(super) fn size(self, key: u64) -> usize {
        if self.low == self.high {
            return self.low;
        }
        let choices = (self.high - self.low) as u128 + 1;
        self.low + ((u128::from(mix(key)) * choices) >> 64) as usize
    }
}

impl std::fmt::Display for Sizes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.low == self.high {
            true => write!(f, "{}", self.low),
            false => write!(f, "{}..{}", self.low, self.high),
        }
    }
}

/// The contents of all values.
#[derive(Debug)]
pub(super) struct Values {
    text: Box<[u8]>,
}

impl Values {
    /// Contents for values of at most `longest` bytes.
    pub(super) fn new(longest: usize) -> Self {
        let mut random = SplitMix64::seed_from_u64(0xc0de);
        let text = (0..longest + STARTS).map(|_| b'A' + (random.next_u64() >> 60) as u8);
        Self {
            text: text.collect(),
        }
    }

    /// The content of the value of `key`, from its byte `from` on, at most `bytes` of it. Shorter than
    /// that if values were never so long.
    #[inline]
    pub(super) fn content(&self, key: u64, from: usize, bytes: usize) -> &[u8] {
        let start = (mix(key) as usize % STARTS).saturating_add(from);
        let end = start.saturating_add(bytes).min(self.text.len());
        self.text.get(start..end).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_key_is_written_in_hexadecimal(key: u64, length in 1usize..40) {
            let mut place = vec![b'k'; length];
            write_key(key, &mut place);
            let text = format!("{:k>40}", format!("{key:016x}"));
            prop_assert_eq!(&place, &text.as_bytes()[40 - length..]);
        }

        #[test]
        fn a_size_lies_within_its_range(key: u64, low in 0usize..100, more in 0usize..100) {
            let sizes = Sizes::between(low, low + more).unwrap();
            prop_assert!((low..=low + more).contains(&sizes.size(key)));
            prop_assert_eq!(Sizes::of(low).size(key), low);
        }
    }

    #[test]
    fn digits_count_hexadecimal_ones() {
        let counts = [0, 15, 16, 255, 256, u64::MAX].map(digits);
        assert_eq!(counts, [1, 1, 2, 2, 3, 16]);
    }

    #[test]
    fn every_length_of_a_range_occurs() {
        let sizes = Sizes::between(3, 12).unwrap();
        let seen: std::collections::BTreeSet<usize> = (0..1000).map(|k| sizes.size(k)).collect();
        assert_eq!(seen.len(), 10);
        assert_eq!(Sizes::between(2, 1), None);
    }

    #[test]
    fn pieces_of_a_value_make_the_value() {
        let values = Values::new(100);
        for key in 0..200 {
            let whole = values.content(key, 0, 100);
            assert_eq!(whole.len(), 100);
            let pieces = [values.content(key, 0, 33), values.content(key, 33, 67)];
            assert_eq!(pieces.concat(), whole);
            assert!(values.content(key, usize::MAX, 1).is_empty());
        }
        assert_ne!(values.content(1, 0, 100), values.content(2, 0, 100));
    }
}
