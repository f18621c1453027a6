//! Transactions of the crate `stm`: variables that hold what they hold behind an `Arc`, and a transaction's log of them.
//!
//! It says nothing of attempts that failed, and so the body counts how often it runs.

use super::{Accounts, Teller, opening};
use ::stm::{TVar, atomically};
use corelay_lab_measure::schema::Counts;
use std::cell::Cell;

pub(super) struct Bank {
    accounts: Box<[TVar<u64>]>,
}

impl Bank {
    pub(super) fn new(variables: usize) -> Self {
        Self {
            accounts: (0..variables).map(|n| TVar::new(opening(n))).collect(),
        }
    }
}

impl Accounts for Bank {
    type Teller<'a> = Attempts<'a>;

    fn teller(&self) -> Attempts<'_> {
        Attempts {
            accounts: &self.accounts,
            attempts: Cell::new(0),
            done: 0,
        }
    }

    fn balances(&self) -> Vec<u64> {
        self.accounts.iter().map(TVar::read_atomic).collect()
    }
}

pub(super) struct Attempts<'a> {
    accounts: &'a [TVar<u64>],
    attempts: Cell<u64>,
    done: u64,
}

impl Attempts<'_> {
    #[inline(always)]
    fn attempt(&self) {
        self.attempts.set(self.attempts.get() + 1);
    }
}

impl Teller for Attempts<'_> {
    #[inline(always)]
    fn transfer(&mut self, from: usize, to: usize) {
        let (one, other) = (&self.accounts[from], &self.accounts[to]);
        atomically(|transaction| {
            self.attempt();
            let had = one.read(transaction)?;
            one.write(transaction, had - 1)?;
            let had = other.read(transaction)?;
            other.write(transaction, had + 1)
        });
        self.done += 1;
    }

    #[inline(always)]
    fn sum(&mut self, of: &[usize]) -> u64 {
        let sum = atomically(|transaction| {
            self.attempt();
            of.iter().try_fold(0, |sum, &one| {
                Ok(sum + self.accounts[one].read(transaction)?)
            })
        });
        self.done += 1;
        sum
    }

    fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        counts.aborts.unknown = self.attempts.get() - self.done;
        counts
    }
}
