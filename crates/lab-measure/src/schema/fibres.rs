//! The result of one run of a fibre benchmark.

use serde::{Deserialize, Serialize};

/// The counts and times of one run of a fibre benchmark.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FibreResult {
    /// Operations of all fibres; for `transfer`, the leaders that all other fibres have seen.
    pub operations: u64,
    /// Wall time from the start of the fibres to their stop, in seconds.
    pub wall_s: f64,
    /// CPU time of the whole process meanwhile, in seconds.
    pub cpu_s: f64,
    /// Operations per fibre; for `transfer`, how often each fibre was the leader.
    pub per_fibre: PerFibre,
    /// Operations per processor, if they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_processor: Option<Vec<u64>>,
    /// The number of times that a fibre continued on another processor, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fibre_migrations: Option<u64>,
    /// `locality` only: the number of times that an array was touched on another processor than
    /// before, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_migrations: Option<u64>,
    /// `transfer` only: the number of times that a follower looked and found no new leader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rechecks: Option<u64>,
    /// The chains of migrations, if the fibres have noted them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chains: Option<MigrationChains>,
    /// Whether the run completed. It does not if a leader of `transfer` made no progress for
    /// `NO_PROGRESS`; that is a result, not an error.
    #[serde(default = "yes")]
    pub completed: bool,
    /// A remark for the reader, if the method's form of the benchmark is not equivalent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

fn yes() -> bool {
    true
}

/// Chains of migrations: maximal runs in which each migration, of whichever fibre, follows the one
/// before within a certain time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MigrationChains {
    /// The longest pause within a chain, in microseconds.
    pub within_us: f64,
    /// The time over which migrations were noted, in seconds.
    pub over_s: f64,
    /// Number of migrations in that time.
    pub migrations: u64,
    /// Number of chains.
    pub chains: u64,
    /// Number of chains of one migration, which no other follows.
    pub alone: u64,
    /// Median length of a chain, in migrations; the lower middle of an even number.
    pub median: u64,
    /// Length of the longest chain, in migrations.
    pub longest: u64,
    /// The most fibres that migrated in one chain.
    pub most_fibres: u64,
    /// The most processors that the migrations of one chain left or reached.
    pub most_processors: u64,
}

impl MigrationChains {
    /// The number of migrations that followed another one in their chain.
    ///
    /// ```
    /// use corelay_lab_measure::schema::fibres::MigrationChains;
    /// let found = MigrationChains { migrations: 10, chains: 4, ..MigrationChains::default() };
    /// assert_eq!(found.followers(), 6);
    /// ```
    pub fn followers(&self) -> u64 {
        self.migrations.saturating_sub(self.chains)
    }

    /// The share of migrations that would follow another one by chance, 0 to 1: if as many had
    /// happened in the same time independently of one another (a Poisson process).
    ///
    /// ```
    /// use corelay_lab_measure::schema::fibres::MigrationChains;
    /// let mut found = MigrationChains { within_us: 100.0, over_s: 1.0, ..Default::default() };
    /// found.migrations = 100;
    /// assert!((found.by_chance() - 0.00995).abs() < 1e-4);
    /// ```
    pub fn by_chance(&self) -> f64 {
        if self.over_s <= 0.0 {
            return 0.0;
        }
        1.0 - (-(self.migrations as f64) / self.over_s * self.within_us * 1e-6).exp()
    }
}

/// A summary of the operations per fibre.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PerFibre {
    /// Number of fibres.
    pub fibres: u64,
    /// Operations of the fibre with the fewest.
    pub min: u64,
    /// Median operations per fibre; the lower middle of an even number.
    pub median: u64,
    /// Operations of the fibre with the most.
    pub max: u64,
    /// Operations of all fibres, as in [`FibreResult::operations`].
    pub sum: u64,
}

impl PerFibre {
    /// Summarizes `counts`, the operations of each fibre.
    ///
    /// ```
    /// use corelay_lab_measure::schema::fibres::PerFibre;
    /// let counts = PerFibre::of(vec![4, 1, 3, 2]);
    /// assert_eq!((counts.min, counts.median, counts.max, counts.sum), (1, 2, 4, 10));
    /// ```
    pub fn of(mut counts: Vec<u64>) -> Self {
        counts.sort_unstable();
        let at = |index: Option<usize>| index.map_or(0, |index| counts[index]);
        let last = counts.len().checked_sub(1);
        Self {
            fibres: counts.len() as u64,
            min: at(last.map(|_| 0)),
            median: at(last.map(|last| last / 2)),
            max: at(last),
            sum: counts.iter().sum(),
        }
    }
}
