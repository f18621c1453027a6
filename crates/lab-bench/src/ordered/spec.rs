//! The ordered workloads and their parameters.

use super::database::{Tape, tpcc, ycsb};
use super::kept;
use corelay_lab_measure::schema::{Extra, Size};
use corelay_lab_measure::workload::operation::WorkloadInfo;
pub use corelay_txn::store::Isolation;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// An ordered workload with its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bench {
    /// Every thread draws one time after the other.
    Timestamp,
    /// One sorted linked list.
    List {
        /// Number of keys in the list, out of twice as many possible keys.
        size: usize,
        /// Percentage of operations that insert or remove a key, half of them each.
        updates: u32,
    },
    /// A hash table of sorted linked lists.
    Hash {
        /// Number of lists.
        buckets: usize,
        /// Number of keys in each list.
        size: usize,
        /// Percentage of operations that insert or remove a key, half of them each.
        updates: u32,
    },
    /// Transactions that move 1 from one variable to another, both chosen at random.
    Transfer {
        /// Number of variables.
        variables: usize,
    },
    /// Transactions that sum up variables chosen at random.
    Read {
        /// Number of variables.
        variables: usize,
        /// Number of variables that a transaction reads.
        reads: usize,
        /// Percentage of transactions that move 1 between the two variables of a pair instead. If
        /// there are any, the others read both variables of each pair, so that the sum is known.
        updates: u32,
    },
    /// A reverse map, which says who has mapped each page.
    Rmap {
        /// Number of pages.
        pages: usize,
        /// Updates by a thread between two of its reads of the whole map.
        reads_every: u64,
    },
    /// Requests to the rows of one table, some in a transaction.
    Ycsb {
        /// The mix, and the sizes.
        shape: ycsb::Shape,
        /// The isolation of multi-version stores.
        isolation: Isolation,
        /// The place for the history, if it is recorded.
        tape: Option<&'static Tape>,
    },
    /// Transactions of wholesale suppliers, who have warehouses.
    Tpcc {
        /// The mix, and the sizes.
        shape: tpcc::Shape,
        /// The isolation of multi-version stores.
        isolation: Isolation,
    },
    /// Transactions that are on disk before they are answered.
    Kept {
        /// The sizes.
        shape: kept::Shape,
        /// The folder in which each contender makes one of its own.
        dir: &'static Path,
    },
    /// Openings of a store that has a log.
    Recover {
        /// The sizes.
        shape: kept::LogShape,
        /// The folder in which each contender makes one of its own.
        dir: &'static Path,
    },
}

/// A workload, and the factor of its clocks' boundary (O10).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spec {
    /// The workload.
    pub bench: Bench,
    /// The factor of the boundary, for clocks that have one.
    pub scale: Scale,
}

/// A factor by which a clock's boundary is multiplied, to see how much depends on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale(f64);

impl Scale {
    /// The factor of the boundary as measured.
    pub const ONE: Self = Self(1.0);

    /// The factors of the sweep (O10): 1/8 to 8.
    pub const SWEEP: [Self; 7] = [
        Self(0.125),
        Self(0.25),
        Self(0.5),
        Self::ONE,
        Self(2.0),
        Self(4.0),
        Self(8.0),
    ];

    /// The factor as a number.
    pub fn factor(self) -> f64 {
        self.0
    }

    /// Whether the boundary is below the measured one. Comparisons that the clock calls certain may
    /// then be wrong.
    pub(crate) fn is_too_small(self) -> bool {
        self.0 < 1.0
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let below = 1.0 / self.0;
        if self.is_too_small() && below == below.round() {
            return write!(f, "1/{below}");
        }
        write!(f, "{}", self.0)
    }
}

impl FromStr for Scale {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.trim().parse::<f64>().ok();
        let factor = match text.split_once('/') {
            None => number(text),
            Some((top, bottom)) => number(top).zip(number(bottom)).map(|(t, b)| t / b),
        };
        match factor {
            Some(factor) if (1.0 / 1024.0..=1024.0).contains(&factor) => Ok(Self(factor)),
            _ => Err(format!(
                "`{text}` is not a number from 1/1024 to 1024; write 1/8 or 2, for example"
            )),
        }
    }
}

impl Bench {
    /// The name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Timestamp => "timestamp",
            Self::List { .. } => "rlu-list",
            Self::Hash { .. } => "rlu-hash",
            Self::Transfer { .. } => "stm-transfer",
            Self::Read { .. } => "stm-read",
            Self::Rmap { .. } => "oplog-rmap",
            Self::Ycsb { .. } => "ycsb",
            Self::Tpcc { .. } => "tpcc",
            Self::Kept { .. } => "kept",
            Self::Recover { .. } => "recover",
        }
    }

    /// Checks that the parameters allow a run.
    ///
    /// ```
    /// use corelay_lab_bench::ordered::spec::Bench;
    /// assert_eq!(Bench::Transfer { variables: 2 }.check(), Ok(()));
    /// assert!(Bench::Transfer { variables: 1 }.check().unwrap_err().contains("two"));
    /// ```
    ///
    /// # Errors
    /// A sentence that names the parameters at fault.
    pub fn check(self) -> Result<(), String> {
        match self {
            Self::Transfer { variables: 0 | 1 } => {
                Err("--vars 1: a transfer is between two variables; it needs at least 2".to_owned())
            }
            Self::Read {
                variables,
                reads,
                updates: 1..,
            } if variables % 2 + reads % 2 > 0 => Err(format!(
                "--vars {variables} --reads {reads}: where there are updates, variables are \
                 read in pairs; both must be even"
            )),
            Self::Ycsb {
                shape: ycsb::Shape { requests, rows, .. },
                ..
            }
            | Self::Kept {
                shape: kept::Shape { requests, rows, .. },
                ..
            } if requests as u64 > rows => Err(format!(
                "--requests {requests} is more than --rows {rows}, and the rows of a transaction \
                 differ; give fewer requests or more rows"
            )),
            _ => Ok(()),
        }
    }

    /// An estimate of the bytes that a contender takes when it begins, for workloads that take
    /// many.
    pub fn bytes(self) -> u64 {
        match self {
            // A row, and the version and the record around it.
            Self::Ycsb { shape, tape, .. } => {
                // The reads and writes of an attempt, and what the checker makes of them.
                let per_attempt = 200 * shape.requests as u64;
                let history = tape.map_or(0, |tape| tape.limit() * per_attempt);
                shape.rows * 1_200 + history
            }
            Self::Tpcc { shape, .. } => shape.bytes(),
            // A row and its key, in a cache or in the map, twice.
            Self::Kept { shape, .. } => shape.rows * (2 * shape.bytes as u64 + 200),
            Self::Recover { shape, .. } => {
                shape.rows * (2 * shape.bytes as u64 + 200) + shape.log_bytes
            }
            _ => 0,
        }
    }
}

impl WorkloadInfo for Spec {
    fn name(self) -> &'static str {
        self.bench.name()
    }

    /// False: the methods check their objects themselves.
    fn counts(self) -> bool {
        false
    }

    fn extra(self) -> Extra {
        let number = |n: usize| Some(n as u64);
        let percent = |updates: u32| Some(u64::from(updates));
        match self.bench {
            Bench::Timestamp => Extra::default(),
            Bench::List { size, updates } => Extra {
                size: Some(Size::Keys(size as u64)),
                updates: percent(updates),
                ..Extra::default()
            },
            Bench::Hash {
                buckets,
                size,
                updates,
            } => Extra {
                buckets: number(buckets),
                size: Some(Size::Keys(size as u64)),
                updates: percent(updates),
                ..Extra::default()
            },
            Bench::Transfer { variables } => Extra {
                variables: number(variables),
                ..Extra::default()
            },
            Bench::Read {
                variables,
                reads,
                updates,
            } => Extra {
                variables: number(variables),
                reads: number(reads),
                updates: percent(updates),
                ..Extra::default()
            },
            Bench::Rmap { pages, reads_every } => Extra {
                reads_every: Some(reads_every),
                ..Extra::from([("pages", pages.into())])
            },
            Bench::Ycsb {
                shape, isolation, ..
            } => Extra {
                mix: Some(shape.mix.to_string()),
                rows: Some(shape.rows),
                requests: number(shape.requests),
                theta: Some(shape.theta),
                ..Extra::from([("isolation", isolation_name(isolation).into())])
            },
            Bench::Tpcc { shape, isolation } => Extra {
                mix: Some(shape.mix.to_string()),
                warehouses: Some(shape.warehouses.into()),
                shrink: Some(shape.shrink.into()).filter(|&by| by > 1),
                ..Extra::from([("isolation", isolation_name(isolation).into())])
            },
            Bench::Kept { shape, dir } => Extra {
                bytes: number(shape.bytes),
                rows: Some(shape.rows),
                requests: number(shape.requests),
                ..Extra::from([("dir", dir.display().to_string().into())])
            },
            Bench::Recover { shape, dir } => Extra {
                bytes: number(shape.bytes),
                rows: Some(shape.rows),
                log_bytes: Some(shape.log_bytes),
                ..Extra::from([
                    ("dir", dir.display().to_string().into()),
                    ("cold", shape.is_cold.into()),
                ])
            },
        }
    }
}

/// The name of an isolation on the command line and in results.
pub fn isolation_name(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::Snapshot => "snapshot",
        Isolation::Serializable => "serializable",
        Isolation::StrictlySerializable => "strict",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scale_below_one_is_too_small_and_shown_as_a_fraction() {
        let scale: Scale = "1/8".parse().unwrap();
        assert!(scale.is_too_small() && !Scale::ONE.is_too_small());
        assert_eq!(scale.to_string(), "1/8");
    }

    #[test]
    fn scales_round_trip_through_text() {
        for scale in Scale::SWEEP {
            assert_eq!(scale.to_string().parse(), Ok(scale));
        }
        assert_eq!("0.125".parse(), Ok(Scale::SWEEP[0]));
        for text in ["", "0", "-1", "1/0", "2000", "x", "1/", "NaN", "inf"] {
            let error = text.parse::<Scale>().unwrap_err();
            assert!(error.contains("1/1024"), "{text}: {error}");
        }
    }
}
