//! Taking all logs at one moment, and doing what is in them in the order of its times.

#![forbid(unsafe_code)]

use super::error::Poisoned;
use super::log::{Entry, Taken};
use super::operation::{Commutes, Operation};
use super::slots::Slots;
use corelay_clock::{Clock, Order, is_exact};

/// The state, and room for what is taken out of the logs.
#[derive(Debug)]
pub(super) struct Merged<S, Op> {
    pub(super) state: S,
    /// Buffers to exchange for those of the logs; all empty between merges.
    taken: Vec<Taken<Op>>,
    /// What is to be sorted; empty between merges.
    batch: Vec<Entry<Op>>,
    /// By key: the log that has operations of it, or [`SEVERAL`].
    owners: Vec<u8>,
}

/// No log has such an operation.
const NONE: u8 = 0;
/// More than one log has such an operation, or one whose number is too large.
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

    /// Applies what is pending now in any log of `slots`. Answers how many neighbours in the order of
    /// their times the clock could not tell apart.
    pub(super) fn merge<C: Clock>(
        &mut self,
        slots: &Slots<Op>,
        clock: &C,
    ) -> Result<u64, Poisoned> {
        self.take(slots)?;
        Ok(match Op::COMMUTES {
            Commutes::Always => {
                self.apply_each();
                0
            }
            Commutes::AcrossKeys if self.own() => self.apply_each_but_shared(clock),
            Commutes::AcrossKeys | Commutes::Never => self.apply_sorted(clock),
        })
    }

    /// Only exchanges buffers: as long as this takes, nobody updates.
    fn take(&mut self, slots: &Slots<Op>) -> Result<(), Poisoned> {
        slots.with_all(|index, log| {
            if index == self.taken.len() {
                self.taken.push(Taken::default());
            }
            log.swap(&mut self.taken[index]);
        })
    }

    /// One log after the other.
    fn apply_each(&mut self) {
        for taken in &mut self.taken {
            taken.begin_anew();
            for entry in taken.entries.drain(..) {
                entry.op.apply(&mut self.state);
            }
        }
    }

    /// One log after the other, but what several have of one key in the order of its times.
    fn apply_each_but_shared<C: Clock>(&mut self, clock: &C) -> u64 {
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
        self.apply_batch(clock)
    }

    /// All logs in the order of their times.
    fn apply_sorted<C: Clock>(&mut self, clock: &C) -> u64 {
        for taken in &mut self.taken {
            taken.begin_anew();
            self.batch.append(&mut taken.entries);
        }
        self.apply_batch(clock)
    }

    /// Equal times stand in the order of the slots, which is the same for all that is taken at once.
    fn apply_batch<C: Clock>(&mut self, clock: &C) -> u64 {
        // The sort finds the runs that the logs are, and merges them; of one alone it does nothing.
        self.batch.sort_by_key(|entry| entry.time);
        let uncertain = self.uncertain(clock);
        for entry in self.batch.drain(..) {
            entry.op.apply(&mut self.state);
        }
        uncertain
    }

    /// Neighbours in the sorted batch of which the clock leaves open who was first.
    fn uncertain<C: Clock>(&self, clock: &C) -> u64 {
        if is_exact(clock) {
            return 0;
        }
        let neighbours = self.batch.windows(2);
        let is_open = |two: &&[Entry<Op>]| clock.cmp(two[0].time, two[1].time) == Order::Uncertain;
        neighbours.filter(is_open).count() as u64
    }

    /// Finds out which log each key is of. False where that does not help: where a log has lost the
    /// order within a key, or an operation has none.
    fn own(&mut self) -> bool {
        if self.taken.iter().any(|taken| taken.scrambled) {
            return false;
        }
        let pending: usize = self.taken.iter().map(|taken| taken.entries.len()).sum();
        self.owners.clear();
        // Four places for each, so that few keys share one by chance.
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

/// Other bits than those by which a log's index goes.
#[inline(always)]
fn place(owners: &[u8], key: u64) -> usize {
    key as usize & (owners.len() - 1)
}
