//! What clients leave behind at the end of a slice.

use corelay_lab_measure::schema::Counts;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Counts of the clients since they were last taken, and what they have found to be wrong.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pages: Mutex<Pages>,
}

#[derive(Debug, Default)]
struct Pages {
    counts: Counts,
    /// What the structure itself had counted when it was last asked.
    before: Counts,
    /// What was wrong first, and how often anything was.
    wrong: Option<(String, u64)>,
}

impl Ledger {
    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client's counts at its end.
    pub(super) fn enter(&self, counts: Counts) {
        self.pages().counts += counts;
    }

    /// A client has found so many things to be wrong, of which this is one.
    pub(super) fn accuse(&self, times: u64, what: impl FnOnce() -> String) {
        if times == 0 {
            return;
        }
        let mut pages = self.pages();
        let (_, sum) = pages.wrong.get_or_insert_with(|| (what(), 0));
        *sum += times;
    }

    /// The counts since this was asked last: those of the clients, and those of a structure that has
    /// counted so much since it was made.
    pub(super) fn take(&self, so_far: Counts) -> Counts {
        let mut pages = self.pages();
        let before = std::mem::replace(&mut pages.before, so_far);
        let mut counts = std::mem::take(&mut pages.counts);
        counts += so_far - before;
        counts
    }

    /// Fine where no client has found anything.
    ///
    /// # Errors
    /// What the first one found, and how often any did.
    pub(super) fn verdict(&self) -> Result<(), String> {
        match &self.pages().wrong {
            None => Ok(()),
            Some((what, 1)) => Err(what.clone()),
            Some((what, times)) => Err(format!("{what} ({times} times)")),
        }
    }
}
