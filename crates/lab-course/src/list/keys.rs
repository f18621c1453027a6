//! Keys in no particular order, and the check that each is in the list once.
//!
//! The `n`-th key is `n`, scrambled by a function that can be undone. So a list of millions is
//! checked with one bit for each key.

/// Returns the `n`-th key: the finisher of splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
pub(crate) fn key(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

/// Returns the `n` of a key: [`key`], undone step by step.
pub(crate) fn number(key: u64) -> u64 {
    let n = key ^ (key >> 31) ^ (key >> 62);
    let n = n.wrapping_mul(0x3196_42b2_d24d_8ec3);
    let n = n ^ (n >> 27) ^ (n >> 54);
    let n = n.wrapping_mul(0x96de_1b17_3f11_9089);
    n ^ (n >> 30) ^ (n >> 60)
}

/// The set of keys that have been seen, out of the first so many.
#[derive(Debug)]
pub(crate) struct Seen {
    bits: Vec<u64>,
    keys: u64,
    count: u64,
    twice: u64,
    foreign: u64,
}

impl Seen {
    /// Makes a set for `keys` keys, none of them seen yet.
    pub(crate) fn none_of(keys: u64) -> Self {
        Self {
            bits: vec![0; keys.div_ceil(64) as usize],
            keys,
            count: 0,
            twice: 0,
            foreign: 0,
        }
    }

    /// Marks a key as seen.
    pub(crate) fn see(&mut self, key: u64) {
        let n = number(key);
        if n >= self.keys {
            self.foreign += 1;
            return;
        }
        let (word, bit) = (&mut self.bits[(n / 64) as usize], 1 << (n % 64));
        self.twice += u64::from(*word & bit != 0);
        self.count += u64::from(*word & bit == 0);
        *word |= bit;
    }

    /// Checks that each key was seen once, and no other.
    ///
    /// # Errors
    /// A sentence that counts lost, doubled and foreign keys.
    pub(crate) fn check(&self) -> Result<(), String> {
        let lost = self.keys - self.count;
        if (lost, self.twice, self.foreign) == (0, 0, 0) {
            return Ok(());
        }
        Err(format!(
            "of {} keys {lost} are lost, {} are in the list twice, and {} were never inserted",
            self.keys, self.twice, self.foreign
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_tells_its_number() {
        for n in (0..10_000).chain([u64::MAX, 1 << 40, u64::MAX / 3]) {
            assert_eq!(number(key(n)), n);
        }
    }

    #[test]
    fn lost_doubled_and_foreign_keys_are_counted() {
        let check = |keys: &[u64]| {
            let mut seen = Seen::none_of(3);
            keys.iter().for_each(|&n| seen.see(key(n)));
            seen.check()
        };
        assert_eq!(check(&[2, 0, 1]), Ok(()));
        let told = |lost: u32, twice: u32, foreign: u32| {
            Err(format!(
                "of 3 keys {lost} are lost, {twice} are in the list twice, and {foreign} were never inserted"
            ))
        };
        assert_eq!(check(&[2, 0]), told(1, 0, 0));
        assert_eq!(check(&[2, 0, 1, 1]), told(0, 1, 0));
        assert_eq!(check(&[2, 2, 3]), told(2, 1, 1));
    }
}
