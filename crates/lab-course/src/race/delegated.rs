//! Delegated: one of the threads owns the number; the others send it their updates.
//!
//! There is no lock and no atomic number, because only the owner touches the number.

use super::Counter;
use corelay::{StartError, Team, Trust, Trustees};

/// The handle of the number and its team, whose first thread owns it. The handle is dropped
/// first.
pub(super) struct Delegated {
    hits: Trust<u64>,
    team: Team,
}

impl Delegated {
    /// Starts as many threads as `cpus`. Each sends updates, and serves others while it waits.
    pub(super) fn start(cpus: &[Option<usize>]) -> Result<Self, StartError> {
        let pinned = cpus.iter().copied().flatten();
        let team = Trustees::flat(cpus.len()).pin(pinned).start()?;
        let hits = team.entrust_on(0, 0);
        Ok(Self { hits, team })
    }
}

impl Counter for Delegated {
    fn count(&self, updates: u64) {
        for _ in 0..updates {
            self.hits.post(|n| *n += 1); // no answer wanted, so many travel together
        }
        corelay::barrier().expect("adding one does not panic"); // now all are done
    }

    fn total(&self) -> u64 {
        self.hits.apply(|n| *n)
    }

    fn team(&self) -> Option<&Team> {
        Some(&self.team)
    }
}
