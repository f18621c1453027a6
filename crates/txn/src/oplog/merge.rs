//! A merge: taking all logs at one moment, and applying their operations in the order of their
//! times.

#![forbid(unsafe_code)]

use super::error::Poisoned;
use super::log::{Entry, Taken};
use super::operation::{Commutes, Operation};
use super::slots::Slots;
use corelay_clock::{Clock, Time, is_exact};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

/// The state, with buffers for the operations that a merge takes out of the logs.
#[derive(Debug)]
pub(super) struct Merged<S, Op> {
    pub(super) state: S,
    /// Buffers to exchange for those of the logs; all empty between merges.
    taken: Vec<Taken<Op>>,
    /// Operations to be sorted; empty between merges.
    batch: Vec<Entry<Op>>,
    /// The log that has operations of a key, by the key's hash; or [`SEVERAL`].
    owners: Vec<u8>,
}

/// No log has an operation of this key.
const NONE: u8 = 0;
/// More than one log has operations of this key, or one whose number is too large.
const SEVERAL: u8 = u8::MAX;

impl<S, Op: Operation<S>> Merged<S, Op> {
    pub(super) fn new(state: S) -> Self {
        Self {
            state,
            taken: Vec::new(),
            batch: Vec::new(),
            owners: Vec::new(),
        }
    }

    /// Applies the operations that are pending now in any log of `slots`.
    pub(super) fn merge<C: Clock>(
        &mut self,
        slots: &Slots<Op>,
        times: &Times<'_, C>,
    ) -> Result<Looks, Poisoned> {
        self.take(slots)?;
        Ok(match Op::COMMUTES {
            Commutes::Always => {
                self.apply_each();
                Looks::default()
            }
            Commutes::AcrossKeys if self.own() => self.apply_each_but_shared(times),
            Commutes::AcrossKeys | Commutes::Never => self.apply_sorted(times),
        })
    }

    /// Exchanges the buffers of all logs. It does nothing more: while it lasts, no session updates.
    fn take(&mut self, slots: &Slots<Op>) -> Result<(), Poisoned> {
        slots.with_all(|index, log| {
            if index == self.taken.len() {
                self.taken.push(Taken::default());
            }
            log.swap(&mut self.taken[index]);
        })
    }

    /// Applies one log after the other.
    fn apply_each(&mut self) {
        for taken in &mut self.taken {
            taken.begin_anew();
            for entry in taken.entries.drain(..) {
                entry.op.apply(&mut self.state);
            }
        }
    }

    /// Applies one log after the other, except for keys of which several logs have operations:
    /// those are applied in the order of their times.
    fn apply_each_but_shared<C: Clock>(&mut self, times: &Times<'_, C>) -> Looks {
        for taken in &mut self.taken {
            taken.begin_anew();
            for entry in taken.entries.drain(..) {
                let owner = entry
                    .op
                    .key()
                    .map(|key| self.owners[place(&self.owners, key)]);
                if owner == Some(SEVERAL) {
                    self.batch.push(entry);
                } else {
                    entry.op.apply(&mut self.state);
                }
            }
        }
        self.apply_batch(times)
    }

    /// Applies all logs in the order of their times.
    fn apply_sorted<C: Clock>(&mut self, times: &Times<'_, C>) -> Looks {
        for taken in &mut self.taken {
            taken.begin_anew();
            self.batch.append(&mut taken.entries);
        }
        self.apply_batch(times)
    }

    /// Applies the batch in the order of its times. Equal times go by the order of the slots, which
    /// is the same for all that is taken at once.
    fn apply_batch<C: Clock>(&mut self, times: &Times<'_, C>) -> Looks {
        // The sort finds the runs that the logs are, and merges them; a single run it leaves as it
        // is.
        self.batch.sort_by_key(|entry| entry.time);
        let looks = times.look(self.batch.iter().map(|entry| entry.time));
        for entry in self.batch.drain(..) {
            entry.op.apply(&mut self.state);
        }
        looks
    }

    /// Finds out which log owns each key. Returns false if that does not help: a log has lost the
    /// order within a key, or an operation has no key.
    fn own(&mut self) -> bool {
        if self.taken.iter().any(|taken| taken.scrambled) {
            return false;
        }
        let pending: usize = self.taken.iter().map(|taken| taken.entries.len()).sum();
        self.owners.clear();
        // Four slots for each operation, so that few keys share one by chance.
        self.owners.resize((4 * pending).next_power_of_two(), NONE);
        for (index, taken) in self.taken.iter().enumerate() {
            let log = u8::try_from(index + 1).unwrap_or(SEVERAL);
            for entry in &taken.entries {
                let Some(key) = entry.op.key() else {
                    return false;
                };
                let at = place(&self.owners, key);
                let owner = &mut self.owners[at];
                *owner = if *owner == NONE || *owner == log {
                    log
                } else {
                    SEVERAL
                };
            }
        }
        true
    }
}

/// The clock, as a merge uses it. A clock may be any code, and may panic; while a merge is under
/// way this asks nothing of it that would stop the merge.
pub(super) struct Times<'a, C> {
    clock: &'a C,
    /// The boundary; `None` if no time is uncertain and the clock cannot be wrong.
    boundary: Option<u64>,
}

/// Findings about the times of a merge.
#[derive(Debug, Default)]
pub(super) struct Looks {
    /// Pairs of neighbours of which the clock does not say who was first.
    pub(super) uncertain: u64,
    /// The newest time of all, and a time drawn after that had been seen, or the panic of that
    /// draw.
    pub(super) newest: Option<(Time, thread::Result<Time>)>,
}

impl<'a, C: Clock> Times<'a, C> {
    pub(super) fn of(clock: &'a C) -> Self {
        Self {
            boundary: (!is_exact(clock)).then(|| clock.boundary()),
            clock,
        }
    }

    /// Examines sorted times.
    fn look(&self, sorted: impl DoubleEndedIterator<Item = Time> + Clone) -> Looks {
        let Some((boundary, newest)) = self.boundary.zip(sorted.clone().next_back()) else {
            return Looks::default();
        };
        let pairs = sorted.clone().zip(sorted.skip(1));
        let uncertain = pairs.filter(|(a, b)| b.raw() - a.raw() <= boundary).count();
        let now = catch_unwind(AssertUnwindSafe(|| self.clock.read_time()));
        Looks {
            uncertain: uncertain as u64,
            newest: Some((newest, now)),
        }
    }
}

/// The slot of a key in `owners`, by other bits than those that a log's index uses.
#[inline(always)]
fn place(owners: &[u8], key: u64) -> usize {
    key as usize & (owners.len() - 1)
}
