//! Zipf's law, sampled exactly in O(1) and a few nanoseconds.
//!
//! Samplers that invert the distribution function pay for two powers and a logarithm per draw;
//! that is more than most of the measured methods take for an operation. A full alias table costs a
//! cache line per draw and competes with the variables for the cache. So the two are combined:
//!
//! ```text
//! ranks    1  2  3 … 256 | 257 … 272 | 273 … 289 | … n
//!          one cell each    classes, each 1/16 longer than the previous one
//! ```
//!
//! A cell is drawn by the alias method (Walker 1977; Vose, "A linear algorithm for generating
//! random numbers with a given distribution", 1991). A class is drawn as if all its ranks were as
//! likely as its first. A rank in it is then kept with probability `(first / rank)^θ`, which makes
//! the result exact (von Neumann's rejection). The power is rarely computed: any rank is kept if
//! the random number is below the class's smallest such probability (a squeeze). The table takes
//! some 10 KiB, whatever the number of variables.

use rand_core::Rng;

/// Number of ranks that have a cell of their own.
const HEAD: u64 = 256;

/// The first rank of a class divided by its length: classes of the tail are 1/16 of their first
/// rank long.
const WIDTH: u64 = 16;

/// A sampler of ranks `0..n` with probabilities proportional to `1 / (rank + 1)^θ`.
#[derive(Clone, Debug)]
pub struct Zipf {
    theta: f64,
    cells: Box<[Cell]>,
    classes: Box<[Class]>,
}

/// A column of the alias table. A draw below `cut` yields the column's own cell, another `alias`.
#[derive(Clone, Copy, Debug)]
struct Cell {
    cut: u64,
    alias: u32,
}

/// A class: the ranks `first..first + len` (counted from 1).
#[derive(Clone, Copy, Debug)]
struct Class {
    first: u64,
    len: u64,
    /// Probability that the class's last rank is kept, in units of 2^-64.
    squeeze: u64,
}

impl Zipf {
    /// A sampler of `n` ranks with skew `theta`.
    ///
    /// # Panics
    /// `n` is 0, or `theta` is negative or not finite.
    pub fn new(n: u64, theta: f64) -> Self {
        assert!(n > 0, "a Zipf distribution has at least one rank");
        assert!(
            theta >= 0.0 && theta.is_finite(),
            "the skew of a Zipf distribution is a number ≥ 0"
        );
        let weight = |rank: u64| (rank as f64).powf(-theta);
        let head = n.min(HEAD);
        let mut weights: Vec<f64> = (1..=head).map(weight).collect();
        let mut classes = Vec::new();
        let mut first = head + 1;
        while first <= n {
            let len = (first / WIDTH).min(n - first + 1);
            let squeeze = fraction(weight(first + len - 1) / weight(first));
            classes.push(Class {
                first,
                len,
                squeeze,
            });
            weights.push(weight(first) * len as f64);
            first += len;
        }
        Self {
            theta,
            cells: alias_table(&weights),
            classes: classes.into(),
        }
    }

    /// Draws the next rank, from 0.
    #[inline]
    pub fn sample(&self, rng: &mut impl Rng) -> u64 {
        loop {
            // The product's high half is a uniform column, its low half a uniform fraction.
            let product = u128::from(rng.next_u64()) * self.cells.len() as u128;
            let (column, fraction) = ((product >> 64) as usize, product as u64);
            let cell = &self.cells[column];
            let drawn = if fraction < cell.cut {
                column
            } else {
                cell.alias as usize
            };
            if drawn < HEAD as usize {
                return drawn as u64;
            }
            if let Some(rank) = self.rank_in(&self.classes[drawn - HEAD as usize], rng) {
                return rank;
            }
        }
    }

    /// Draws a rank of a class; `None` if it is rejected.
    #[inline]
    fn rank_in(&self, class: &Class, rng: &mut impl Rng) -> Option<u64> {
        let product = u128::from(rng.next_u64()) * u128::from(class.len);
        let (offset, kept) = ((product >> 64) as u64, product as u64);
        let rank = class.first + offset;
        let keep = kept < class.squeeze || kept < self.keep_probability(class.first, rank);
        keep.then_some(rank - 1)
    }

    /// The probability that `rank` of the class starting at `first` is kept, in units of 2^-64.
    #[cold]
    fn keep_probability(&self, first: u64, rank: u64) -> u64 {
        fraction((first as f64 / rank as f64).powf(self.theta))
    }
}

/// A probability in units of 2^-64, saturating.
fn fraction(p: f64) -> u64 {
    // 2^64 as a float; the cast saturates.
    (p * 18_446_744_073_709_551_616.0) as u64
}

/// Builds an alias table (Vose): every column holds at most two cells, and all are equally likely.
fn alias_table(weights: &[f64]) -> Box<[Cell]> {
    let n = weights.len();
    let mean = weights.iter().sum::<f64>() / n as f64;
    let mut share: Vec<f64> = weights.iter().map(|w| w / mean).collect();
    let mut cells: Vec<Cell> = (0..n as u32)
        .map(|i| Cell {
            cut: u64::MAX,
            alias: i,
        })
        .collect();
    let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..n).partition(|&i| share[i] < 1.0);
    while let (Some(poor), Some(&rich)) = (small.pop(), large.last()) {
        cells[poor] = Cell {
            cut: fraction(share[poor]),
            alias: rich as u32,
        };
        share[rich] -= 1.0 - share[poor];
        if share[rich] < 1.0 {
            large.pop();
            small.push(rich);
        }
    }
    // The remaining columns are full, but for rounding.
    cells.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand_core::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;

    /// The chi-square statistic divided by its degrees of freedom, of 400,000 draws in `bins` bins
    /// of equal probability.
    fn chi_square(n: u64, theta: f64, bins: usize) -> f64 {
        const DRAWS: usize = 400_000;
        let zipf = Zipf::new(n, theta);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(n ^ theta.to_bits());
        let weights: Vec<f64> = (1..=n).map(|k| (k as f64).powf(-theta)).collect();
        let total: f64 = weights.iter().sum();
        let (mut bin_of, mut expected) = (Vec::new(), vec![0.0]);
        for w in &weights {
            if *expected.last().unwrap() >= 1.0 / bins as f64 {
                expected.push(0.0);
            }
            *expected.last_mut().unwrap() += w / total;
            bin_of.push(expected.len() - 1);
        }
        let mut counts = vec![0.0; expected.len()];
        for _ in 0..DRAWS {
            counts[bin_of[zipf.sample(&mut rng) as usize]] += 1.0;
        }
        let terms = counts.iter().zip(&expected).map(|(c, p)| {
            let e = p * DRAWS as f64;
            (c - e) * (c - e) / e
        });
        terms.sum::<f64>() / (expected.len() - 1) as f64
    }

    #[test]
    fn draws_follow_zipfs_law_in_head_and_tail() {
        // With 50 degrees of freedom, 2.0 is exceeded once in 25,000 runs; the seed is fixed.
        for (n, theta) in [
            (2, 1.0),
            (64, 0.99),
            (256, 0.5),
            (257, 0.5),
            (300, 1.0),
            (5_000, 0.99),
            (100_000, 0.6),
        ] {
            let statistic = chi_square(n, theta, 50);
            assert!(statistic < 2.0, "n = {n}, θ = {theta}: {statistic}");
        }
    }

    #[test]
    fn zero_skew_is_uniform() {
        assert!(chi_square(10_000, 0.0, 100) < 1.7);
    }

    #[test]
    fn single_rank_is_always_drawn() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        assert!((0..100).all(|_| Zipf::new(1, 0.99).sample(&mut rng) == 0));
    }

    proptest! {
        #[test]
        fn ranks_stay_in_range(n in 1u64..1 << 32, theta in 0.01f64..16.0, seed: u64) {
            let zipf = Zipf::new(n, theta);
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            for _ in 0..64 {
                prop_assert!(zipf.sample(&mut rng) < n);
            }
        }
    }
}
