//! The hottest keys of a shard, by samples.

use std::sync::{Mutex, PoisonError};

/// One request in so many is a sample.
pub(crate) const SAMPLED: u32 = 64;
/// The keys that are watched.
const KEYS: usize = 32;
/// The keys that are told.
const TOLD: usize = 8;

/// A key with its share.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Share {
    pub(crate) key: Box<[u8]>,
    /// The requests for the key in a second, by samples.
    pub(crate) rate: f64,
}

/// The hottest keys of a shard, as all threads see them.
#[derive(Debug, Default)]
pub(crate) struct Hottest(Mutex<Vec<Share>>);

impl Hottest {
    /// The keys as of the last second, the hottest first.
    pub(crate) fn shares(&self) -> Vec<Share> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Counts of sampled keys: the algorithm *Space-Saving* (Metwally, Agrawal, El Abbadi, ICDT 2005, section
/// 3.1), with counts that decay so that keys that were hot go.
#[derive(Debug, Default)]
pub(crate) struct Sampler {
    /// The requests until the next sample.
    left: u32,
    /// The state of a linear congruential generator.
    random: u32,
    /// Keys with their hashes and counts.
    counts: Vec<(u64, Box<[u8]>, f64)>,
}

impl Sampler {
    /// Notes a request, which may become a sample.
    #[inline]
    pub(crate) fn note(&mut self, hash: u64, key: &[u8]) {
        match self.left.checked_sub(1) {
            Some(left) => self.left = left,
            None => self.sample(hash, key),
        }
    }

    #[cold]
    fn sample(&mut self, hash: u64, key: &[u8]) {
        // Not always the same distance, which a client's own rhythm could meet.
        self.random = self
            .random
            .wrapping_mul(1_664_525)
            .wrapping_add(1_013_904_223);
        self.left = SAMPLED / 2 + (self.random >> 16) % SAMPLED;
        if let Some((.., count)) = self.counts.iter_mut().find(|(other, ..)| *other == hash) {
            *count += 1.0;
            return;
        }
        if self.counts.len() < KEYS {
            self.counts.push((hash, key.into(), 1.0));
            return;
        }
        // The new key inherits the count of the one whose place it takes.
        let least = self.counts.iter_mut().min_by(|a, b| a.2.total_cmp(&b.2));
        if let Some((of, name, count)) = least {
            (*of, *name) = (hash, key.into());
            *count += 1.0;
        }
    }

    /// Tells the hottest keys, once a second, and lets the counts decay.
    pub(crate) fn tell(&mut self, hottest: &Hottest) {
        /// A count is the sum of the rates of the last seconds, each with so much of the next one's weight.
        const DECAY: f64 = 0.75;
        self.counts.sort_by(|a, b| b.2.total_cmp(&a.2));
        let to_rate = f64::from(SAMPLED) * (1.0 - DECAY);
        let shares = self.counts.iter().take(TOLD).map(|(_, key, count)| Share {
            key: key.clone(),
            rate: count * to_rate,
        });
        *hottest.0.lock().unwrap_or_else(PoisonError::into_inner) = shares.collect();
        for (.., count) in &mut self.counts {
            *count *= DECAY;
        }
        self.counts.retain(|(.., count)| *count > 0.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hottest_key_is_told_first_and_forgotten_later() {
        let (mut sampler, hottest) = (Sampler::default(), Hottest::default());
        for second in 0..20 {
            for n in 0..64_000u64 {
                // A quarter of all requests are for one key.
                let key = if n % 4 == 1 {
                    7
                } else {
                    1000 + second * 64_000 + n
                };
                sampler.note(key.wrapping_mul(0x9e37_79b9_7f4a_7c15), &key.to_le_bytes());
            }
            sampler.tell(&hottest);
        }
        let first = hottest.shares().remove(0);
        assert_eq!(&*first.key, &7u64.to_le_bytes());
        assert!((8_000.0..32_000.0).contains(&first.rate), "{}", first.rate);
        for _ in 0..40 {
            sampler.tell(&hottest);
        }
        assert_eq!(hottest.shares(), []);
    }
}
