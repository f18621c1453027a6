//! The requests of a load, drawn one by one: a key by Zipf's law or with equal chances, and whether
//! it is a get or a set.
//!
//! Ranks of Zipf's law are scattered over the keys. Keys are filled in order, so without that the
//! most popular ones would share the server's memory pages and cache lines.

use super::options::{Options, Scan};
use corelay_lab_measure::workload::zipf::Zipf;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Get,
    /// A get of a key that is never asked for again.
    Scan,
    Set,
    /// A set of a key that a get has missed.
    Refill,
}

/// A request: a kind and a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) kind: Kind,
    pub(super) key: u64,
}

/// A share from 0 to 1, as a bound on random numbers of 53 bits.
#[derive(Clone, Copy, Debug)]
struct Share(u64);

impl Share {
    fn of(share: f64) -> Self {
        Self((share * (1u64 << 53) as f64) as u64)
    }

    #[inline]
    fn draws(self, random: &mut Xoshiro256PlusPlus) -> bool {
        // Shares of all and nothing need no number.
        match self.0 {
            0 => false,
            bound => bound == 1 << 53 || random.next_u64() >> 11 < bound,
        }
    }
}

/// A permutation of `0..n`: a multiplication and a shift within the next power of two, again if the
/// result is not below `n`.
#[derive(Clone, Copy, Debug)]
struct Scatter {
    n: u64,
    mask: u64,
    shift: u32,
}

impl Scatter {
    fn new(n: u64) -> Self {
        let bits = digits_of_two(n);
        Self {
            n,
            mask: (1 << bits) - 1,
            shift: (bits / 2).max(1),
        }
    }

    #[inline]
    fn place(self, rank: u64) -> u64 {
        let mut at = rank;
        loop {
            // An odd factor permutes the numbers below a power of two, and so does the shift.
            at = at.wrapping_mul(0x9e37_79b9_7f4a_7c15) & self.mask;
            at ^= at >> self.shift;
            if at < self.n {
                return at;
            }
        }
    }
}

/// Bits of the largest number below `n`.
fn digits_of_two(n: u64) -> u32 {
    64 - (n - 1).leading_zeros()
}

/// The requests of one load thread, without end.
#[derive(Debug)]
pub(super) struct Draw {
    random: Xoshiro256PlusPlus,
    keys: u64,
    zipf: Option<Zipf>,
    scatter: Scatter,
    gets: Share,
    hot: Share,
    scan: Option<Scanning>,
}

/// The state of a thread's scans.
#[derive(Debug)]
struct Scanning {
    bursts: Scan,
    /// Requests until the next burst begins.
    until: u64,
    /// Keys left of the present burst.
    left: u64,
    /// The next key; those of other threads lie between it and the one after it.
    next: u64,
    step: u64,
}

impl Draw {
    /// The requests of load thread `thread`.
    pub(super) fn new(options: &Options, thread: usize) -> Self {
        let seed = options.seed ^ (thread as u64).rotate_left(40);
        let keys = options.keys;
        Self {
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            keys,
            zipf: (options.zipf > 0.0).then(|| Zipf::new(keys, options.zipf)),
            scatter: Scatter::new(keys),
            gets: Share::of(options.get_ratio),
            hot: Share::of(options.hot),
            scan: options.scan.map(|bursts| Scanning {
                bursts,
                until: bursts.every,
                left: 0,
                next: keys + thread as u64,
                step: options.threads as u64,
            }),
        }
    }

    /// Draws the next request.
    #[inline]
    pub(super) fn next(&mut self) -> Request {
        if let Some(key) = self.scan.as_mut().and_then(Scanning::next) {
            return Request {
                kind: Kind::Scan,
                key,
            };
        }
        let rank = match (&self.zipf, self.hot.draws(&mut self.random)) {
            (_, true) => 0,
            (Some(zipf), false) => zipf.sample(&mut self.random),
            (None, false) => {
                ((u128::from(self.random.next_u64()) * u128::from(self.keys)) >> 64) as u64
            }
        };
        let key = self.scatter.place(rank);
        let kind = match self.gets.draws(&mut self.random) {
            true => Kind::Get,
            false => Kind::Set,
        };
        Request { kind, key }
    }
}

impl Scanning {
    /// The next key of a burst; `None` between bursts.
    fn next(&mut self) -> Option<u64> {
        if self.left == 0 {
            if self.until > 0 {
                self.until -= 1;
                return None;
            }
            (self.left, self.until) = (self.bursts.length, self.bursts.every);
        }
        self.left -= 1;
        let key = self.next;
        self.next += self.step;
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(options: &Options, n: usize) -> Vec<Request> {
        let mut draw = Draw::new(options, 0);
        (0..n).map(|_| draw.next()).collect()
    }

    #[test]
    fn scatter_permutes_the_keys() {
        for n in [1, 2, 3, 64, 1000, 4096, 5000] {
            let scatter = Scatter::new(n);
            let mut places: Vec<u64> = (0..n).map(|rank| scatter.place(rank)).collect();
            places.sort_unstable();
            assert!(places.iter().copied().eq(0..n), "{n}");
        }
    }

    #[test]
    fn keys_follow_zipfs_law() {
        let (keys, draws) = (1000, 200_000);
        let options = Options {
            keys,
            ..Options::default()
        };
        let mut counts = vec![0u64; keys as usize];
        for request in draw(&options, draws) {
            counts[request.key as usize] += 1;
        }
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let weights: Vec<f64> = (1..=keys).map(|rank| (rank as f64).powf(-0.99)).collect();
        let total: f64 = weights.iter().sum();
        for rank in [0, 1, 9, 99] {
            let (count, expected) = (counts[rank] as f64, weights[rank] / total * draws as f64);
            // Some five standard deviations; the seed is fixed.
            let most = 5.0 * expected.sqrt() + 10.0;
            assert!(
                (count - expected).abs() < most,
                "{rank}: {count}, {expected}"
            );
        }
    }

    #[test]
    fn equal_chances_reach_all_keys() {
        let options = Options {
            keys: 100,
            zipf: 0.0,
            ..Options::default()
        };
        let mut counts = [0; 100];
        for request in draw(&options, 100_000) {
            counts[request.key as usize] += 1;
        }
        assert!(counts.iter().all(|&count| (850..1150).contains(&count)));
    }

    #[test]
    fn kinds_follow_the_ratio() {
        let gets = |get_ratio| {
            let options = Options {
                get_ratio,
                ..Options::default()
            };
            let all = draw(&options, 10_000);
            all.iter().filter(|r| r.kind == Kind::Get).count()
        };
        assert_eq!((gets(0.0), gets(1.0)), (0, 10_000));
        assert!((8_800..9_200).contains(&gets(0.9)));
    }

    #[test]
    fn hot_key_gets_its_share() {
        let options = Options {
            keys: 1_000_000,
            zipf: 0.0,
            hot: 0.25,
            ..Options::default()
        };
        let all = draw(&options, 10_000);
        let hot = Scatter::new(options.keys).place(0);
        let hits = all.iter().filter(|r| r.key == hot).count();
        assert!((2_300..2_700).contains(&hits), "{hits}");
    }

    #[test]
    fn scans_are_bursts_of_new_keys() {
        let options = Options {
            keys: 100,
            threads: 2,
            scan: Some(Scan {
                every: 5,
                length: 3,
            }),
            ..Options::default()
        };
        let mut second = Draw::new(&options, 1);
        let drawn: Vec<Request> = (0..24).map(|_| second.next()).collect();
        let is_scan = |r: &&Request| r.kind == Kind::Scan;
        let scanned: Vec<u64> = drawn.iter().filter(is_scan).map(|r| r.key).collect();
        assert_eq!(scanned, [101, 103, 105, 107, 109, 111, 113, 115, 117]);
        let places: Vec<usize> = (0..24).filter(|&i| is_scan(&&drawn[i])).collect();
        assert_eq!(places, [5, 6, 7, 13, 14, 15, 21, 22, 23]);
    }

    #[test]
    fn requests_follow_from_the_seed_and_threads_differ() {
        let options = Options::default();
        let of = |thread| {
            let mut draw = Draw::new(&options, thread);
            (0..10).map(|_| draw.next()).collect::<Vec<_>>()
        };
        assert_eq!(of(0), of(0));
        assert_ne!(of(0), of(1));
    }
}
