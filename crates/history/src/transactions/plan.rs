//! Random programs of transactions.

/// A recipe for random transactions: what each thread does to which keys.
///
/// ```
/// use corelay_history::transactions::{Access, Plan};
///
/// let plan = Plan { threads: 2, transactions: 100, ..Plan::default() };
/// let programs = plan.programs();
/// assert_eq!((programs.len(), programs[0].len()), (2, 100));
/// for access in &programs[0][0] {
///     match access {
///         Access::Read(key) => println!("read {key}"),
///         Access::Write(key) => println!("write {key}"), // or append
///     }
/// }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The same seed makes the same programs.
    pub seed: u64,
    /// The number of threads.
    pub threads: usize,
    /// Transactions of each thread.
    pub transactions: usize,
    /// The most operations of a transaction; they have 1 to so many, each as often.
    pub operations: u64,
    /// The number of keys in use at one time, 1 or more.
    pub keys: u64,
    /// How much the first key in use is preferred: a key is `keys · u ^ skew`, with `u` uniform from
    /// 0 to 1. 1.0 prefers none.
    pub skew: f64,
    /// The share of reads among the operations: 0.0 to 1.0.
    pub reads: f64,
    /// Writes of a key before a fresh one takes its place, 1 or more. It keeps lists short.
    pub writes_per_key: u64,
}

/// An operation of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// Read this key.
    Read(u64),
    /// Write this key, or append to it.
    Write(u64),
}

impl Default for Plan {
    /// Few keys, half of the operations reads, short transactions: where isolation fails it shows.
    fn default() -> Self {
        Self {
            seed: 1,
            threads: 4,
            transactions: 1_000,
            operations: 4,
            keys: 5,
            skew: 1.0,
            reads: 0.5,
            writes_per_key: 64,
        }
    }
}

impl Plan {
    /// The programs: for each thread its transactions, each a list of operations.
    ///
    /// # Panics
    /// If there are no operations or no keys.
    pub fn programs(&self) -> Vec<Vec<Vec<Access>>> {
        assert!(self.operations > 0, "operations is 0; give at least 1");
        assert!(self.keys > 0, "keys is 0; give at least 1");
        let mut random = Random(self.seed);
        let mut programs = vec![Vec::with_capacity(self.transactions); self.threads];
        let mut keys: Vec<(u64, u64)> = (0..self.keys).map(|key| (key, 0)).collect();
        let mut fresh = self.keys;
        for _ in 0..self.transactions {
            // Threads in turn, so that they come to fresh keys at about the same time.
            for program in &mut programs {
                let length = 1 + (random.unit() * self.operations as f64) as u64;
                let access = |_| {
                    let at = random.unit().powf(self.skew) * self.keys as f64;
                    let (key, writes) = &mut keys[at as usize];
                    if random.unit() < self.reads {
                        return Access::Read(*key);
                    }
                    *writes += 1;
                    let access = Access::Write(*key);
                    if *writes >= self.writes_per_key {
                        (*key, *writes) = (fresh, 0);
                        fresh += 1;
                    }
                    access
                };
                program.push((0..length).map(access).collect());
            }
        }
        programs
    }
}

/// SplitMix64 (Steele, Lea and Flood 2014).
struct Random(u64);

impl Random {
    /// A number from 0 to 1, less than 1.
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}
