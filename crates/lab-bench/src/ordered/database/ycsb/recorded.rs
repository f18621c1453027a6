//! Transactions whose reads and writes are recorded.
//!
//! A field is a register. Beside the number that counts its updates, it has the value of the last
//! recorded transaction that updated it: each of them writes a value of its own. A transaction that is
//! not recorded leaves the values as they are, so that the recorded ones are a history by themselves.

use super::{Action, Done, Fields, Request, Rows, Ycsb, number, set_number};
use crate::ordered::database::contender::Procedure;
use crate::ordered::database::engine::{Engine, Transaction};
use crate::ordered::database::host::Session;
use corelay_history::transactions::{Outcome, Recorder};
use std::sync::{Mutex, PoisonError};

/// The recorder of a client, and the attempts that it has room for.
pub(super) struct Recording {
    recorder: Mutex<Recorder>,
    left: u64,
}

/// A transaction, with the recorder of its client.
struct Recorded<'a, 'r> {
    requests: &'a [Request],
    is_read_only: bool,
    notes: &'a Mutex<Notes<'r>>,
}

struct Notes<'a> {
    recorder: &'a mut Recorder,
    attempts: u64,
}

impl Recording {
    pub(super) fn new(attempts: u64) -> Self {
        Self {
            recorder: Mutex::default(),
            left: attempts,
        }
    }

    /// Whether there is room for a transaction.
    pub(super) fn has_room(&self) -> bool {
        self.left > 0
    }

    /// Runs the requests as a transaction, and records it.
    pub(super) fn run(
        &mut self,
        requests: &[Request],
        is_read_only: bool,
        session: &mut impl Session<Ycsb>,
    ) -> Option<Done> {
        let recorder = self
            .recorder
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        recorder.begin();
        let notes = Mutex::new(Notes {
            recorder,
            attempts: 0,
        });
        let done = session.run(&Recorded {
            requests,
            is_read_only,
            notes: &notes,
        });
        let notes = notes.into_inner().unwrap_or_else(PoisonError::into_inner);
        notes.recorder.end(match done {
            Some(_) => Outcome::Committed,
            None => Outcome::Aborted,
        });
        self.left = self.left.saturating_sub(notes.attempts);
        done
    }

    /// Takes what was recorded.
    pub(super) fn take(&self) -> Recorder {
        let mut recorder = self.recorder.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut recorder)
    }
}

impl Procedure<Ycsb> for Recorded<'_, '_> {
    type Answer = Done;

    fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    fn run<E: Engine>(
        &self,
        tx: &mut impl Transaction<E>,
        Rows(table): &Rows<E>,
    ) -> Result<Done, E::Stop> {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        let Notes { recorder, attempts } = &mut *notes;
        recorder.retry();
        let mut done = Done::default();
        for (at, &Request { key, field, action }) in self.requests.iter().enumerate() {
            let field = usize::from(field);
            let register = key * 10 + field as u64;
            if matches!(action, Action::Read | Action::ReadAndUpdate) {
                let read = |row: &Fields| (number(row, field), value(row, field));
                let (number, seen) = tx.read(table, &key, read)?.expect("the row is there");
                recorder.read(register, seen);
                done.sum += number;
            }
            if matches!(action, Action::Update | Action::ReadAndUpdate) {
                let written = recorder.fresh();
                let seen = tx.update(table, &key, |row| {
                    let seen = value(row, field);
                    set_number(row, field, number(row, field) + 1);
                    set_value(row, field, written);
                    seen
                })?;
                recorder.read(register, seen.expect("the row is there"));
                recorder.write(register, written);
                done.updates += 1;
            }
            // An attempt that ends before its first note leaves nothing.
            *attempts += u64::from(at == 0);
        }
        Ok(done)
    }
}

/// The value of the last recorded transaction that updated the field, if any.
fn value(row: &Fields, field: usize) -> Option<u64> {
    let bytes = row[field][8..].first_chunk();
    let value = bytes.map_or(0, |&bytes| u64::from_le_bytes(bytes));
    (value > 0).then_some(value)
}

fn set_value(row: &mut Fields, field: usize, value: u64) {
    row[field][8..16].copy_from_slice(&value.to_le_bytes());
}
