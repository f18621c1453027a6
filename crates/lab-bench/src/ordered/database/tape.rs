//! Histories of what transactions have read and written, judged by `corelay-history`.

use corelay_history::transactions::{History, Level, Recorder, check, usable};
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// A place for the history of one contender.
pub struct Tape {
    limit: u64,
    taped: Mutex<Option<Taped>>,
}

/// A history and the checker's verdict on it.
#[derive(Debug)]
pub struct Taped {
    /// The history.
    pub history: History,
    /// The checker's verdict, in a sentence.
    pub found: String,
    /// A picture of each anomaly; `None` if there are none.
    pub anomalies: Option<String>,
}

impl Tape {
    /// A tape with room for so many attempts of transactions, of all clients together.
    pub fn new(limit: u64) -> Self {
        Self {
            limit,
            taped: Mutex::default(),
        }
    }

    /// The room in attempts of transactions.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// Takes the history, if a run has ended and was checked.
    pub fn take(&self) -> Option<Taped> {
        let mut taped = self.taped.lock().unwrap_or_else(PoisonError::into_inner);
        taped.take()
    }

    /// Puts the clients' histories on the tape, and judges them. `is_whole` says whether all
    /// transactions are on it.
    ///
    /// # Errors
    /// A sentence, if the history does not keep `level`.
    pub(super) fn put(
        &self,
        recorders: impl Iterator<Item = Recorder>,
        level: Level,
        is_whole: bool,
    ) -> Result<(), String> {
        let history: History = recorders.collect();
        usable(&history).map_err(|why| format!("the history cannot be judged: {why}"))?;
        let recorded = match is_whole {
            true => format!("all {} attempts of transactions", history.len()),
            false => format!(
                "the first {} attempts of transactions, which is the limit; later ones are left out",
                history.len()
            ),
        };
        let (verdict, anomalies) = match check(&history, level) {
            Ok(by) => {
                let said = format!(
                    "{level}, by {} that have committed; known dependencies: {} ww, {} wr, {} rw",
                    by.committed, by.ww, by.wr, by.rw
                );
                (said, None)
            }
            Err(anomalies) => {
                let counts = anomalies.counts();
                let kinds = counts.map(|(kind, times)| format!("{kind} ({times})"));
                let kinds: Vec<String> = kinds.collect();
                let said = format!("NOT {level}: {}", kinds.join(", "));
                (said, Some(anomalies.to_string()))
            }
        };
        let is_wrong = anomalies.is_some();
        let taped = Taped {
            history,
            found: format!("history of {recorded}: {verdict}"),
            anomalies,
        };
        *self.taped.lock().unwrap_or_else(PoisonError::into_inner) = Some(taped);
        match is_wrong {
            true => Err(format!("the history is {verdict}")),
            false => Ok(()),
        }
    }
}

/// Whether they are the same tape.
impl PartialEq for Tape {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl fmt::Debug for Tape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut tape = f.debug_struct("Tape");
        tape.field("limit", &self.limit).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corelay_history::transactions::Outcome::Committed;

    #[test]
    fn a_lost_update_is_found_and_the_history_is_kept() {
        let mut recorders = [Recorder::new(), Recorder::new()];
        recorders.iter_mut().for_each(Recorder::begin);
        for recorder in &mut recorders {
            recorder.read(7, None);
            let value = recorder.fresh();
            recorder.write(7, value);
            recorder.end(Committed);
        }
        let tape = Tape::new(2);
        let wrong = tape.put(recorders.into_iter(), Level::SnapshotIsolation, true);
        let wrong = wrong.unwrap_err();
        assert!(
            wrong.contains("NOT snapshot isolation: lost update (1)"),
            "{wrong}"
        );
        let taped = tape.take().unwrap();
        assert_eq!(taped.history.len(), 2);
        assert!(taped.anomalies.unwrap().contains('7'));
        assert!(tape.take().is_none());
    }
}
