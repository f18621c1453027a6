//! A mutex for each account, on a line of its own; a transaction takes those that it needs in the
//! order of their numbers, so that no two wait for each other in a circle.

use super::{Accounts, Teller, opening};
use corelay_sync::CachePadded;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(super) struct Bank {
    accounts: Box<[CachePadded<Mutex<u64>>]>,
}

impl Bank {
    pub(super) fn new(variables: usize) -> Self {
        let account = |n| CachePadded::new(Mutex::new(opening(n)));
        Self {
            accounts: (0..variables).map(account).collect(),
        }
    }

    #[inline(always)]
    fn lock(&self, account: usize) -> MutexGuard<'_, u64> {
        let account = self.accounts[account].lock();
        account.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Accounts for Bank {
    type Teller<'a> = Holder<'a>;

    fn teller(&self) -> Holder<'_> {
        Holder {
            bank: self,
            order: Vec::new(),
        }
    }

    fn balances(&self) -> Vec<u64> {
        (0..self.accounts.len()).map(|n| *self.lock(n)).collect()
    }
}

pub(super) struct Holder<'a> {
    bank: &'a Bank,
    order: Vec<usize>,
}

impl Teller for Holder<'_> {
    #[inline(always)]
    fn transfer(&mut self, from: usize, to: usize) {
        let first = self.bank.lock(from.min(to));
        let second = self.bank.lock(from.max(to));
        let (mut from, mut to) = match from < to {
            true => (first, second),
            false => (second, first),
        };
        *from -= 1;
        *to += 1;
    }

    fn sum(&mut self, of: &[usize]) -> u64 {
        self.order.clear();
        self.order.extend(of);
        self.order.sort_unstable();
        let mut held: Vec<MutexGuard<'_, u64>> = Vec::with_capacity(of.len());
        let (mut sum, mut last) = (0, None);
        for &account in &self.order {
            if last != Some(account) {
                held.push(self.bank.lock(account));
                last = Some(account);
            }
            sum += held.last().map_or(0, |guard| **guard);
        }
        sum
    }
}
