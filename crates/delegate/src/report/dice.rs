//! When to take a sample.

use std::cell::Cell;

/// How many turns go by for one sample, on average.
pub(crate) const SAMPLE_EVERY: u32 = 64;

/// Says now and then "this one". The gaps are random: a program that does the same things in
/// the same order, round after round, would otherwise have the same one sampled each time.
#[derive(Debug)]
pub(crate) struct Dice {
    /// Turns until the next sample.
    left: Cell<u32>,
    /// Of a xorshift generator (Marsaglia 2003), never 0.
    state: Cell<u32>,
}

impl Default for Dice {
    /// The first turn is a sample.
    fn default() -> Self {
        Self {
            left: Cell::new(0),
            state: Cell::new(0x9e37_79b9),
        }
    }
}

impl Dice {
    /// True where this turn is to be sampled.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        let left = self.left.get();
        if left > 0 {
            self.left.set(left - 1);
            return false;
        }
        // 0 to 2 × 63: on average 63 turns go by between two samples.
        self.left.set(self.below(2 * SAMPLE_EVERY - 1));
        true
    }

    /// A number below `n`, which is not 0.
    #[cold]
    pub(crate) fn below(&self, n: u32) -> u32 {
        let mut x = self.state.get();
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        self.state.set(x);
        x % n
    }
}

#[cfg(all(test, not(any(corelay_loom, corelay_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn one_in_sixty_four_at_irregular_times() {
        let dice = Dice::default();
        let turns = 1_000_000;
        let due: Vec<u32> = (0..turns).filter(|_| dice.is_due()).collect();
        assert_eq!(due[0], 0);
        let expected = turns / SAMPLE_EVERY;
        assert!(due.len().abs_diff(expected as usize) < expected as usize / 20);
        // Whatever comes round in a program, all of it is sampled.
        for period in [2, 64, 128] {
            let mut seen = vec![false; period];
            due.iter()
                .for_each(|turn| seen[*turn as usize % period] = true);
            assert!(seen.into_iter().all(|seen| seen), "period {period}");
        }
    }
}
