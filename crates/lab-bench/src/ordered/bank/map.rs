//! All accounts in one hash map behind one mutex: the yardstick beside which absolute figures of
//! the store are read.

use super::{AccountSession, Accounts, opening};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Accounts in a map.
pub(super) struct Bank(Mutex<HashMap<usize, u64>>);

impl Bank {
    pub(super) fn new(variables: usize) -> Self {
        let accounts = (0..variables).map(|n| (n, opening(n)));
        Self(Mutex::new(accounts.collect()))
    }

    fn with<R>(&self, f: impl FnOnce(&mut HashMap<usize, u64>) -> R) -> R {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Accounts for Bank {
    type Session<'a> = &'a Self;

    fn session(&self) -> &Self {
        self
    }

    fn balances(&self) -> Vec<u64> {
        self.with(|accounts| accounts.values().copied().collect())
    }
}

impl AccountSession for &Bank {
    fn transfer(&mut self, from: usize, to: usize) {
        self.with(|accounts| {
            accounts.entry(from).and_modify(|balance| *balance -= 1);
            accounts.entry(to).and_modify(|balance| *balance += 1);
        });
    }

    fn sum(&mut self, of: &[usize]) -> u64 {
        self.with(|accounts| of.iter().filter_map(|one| accounts.get(one)).sum())
    }
}
