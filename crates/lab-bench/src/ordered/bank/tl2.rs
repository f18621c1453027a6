//! corelay's transactions.

use super::{Accounts, Teller, opening};
use corelay_clock::Clock;
use corelay_lab_measure::schema::{Aborts, Counts};
use corelay_txn::tl2::{Session, Stm, TVar};

pub(super) struct Bank<C: Clock> {
    stm: Stm<C>,
    accounts: Box<[TVar<u64>]>,
}

impl<C: Clock> Bank<C> {
    pub(super) fn new(clock: C, variables: usize) -> Self {
        Self {
            stm: Stm::new(clock),
            accounts: (0..variables).map(|n| TVar::new(opening(n))).collect(),
        }
    }
}

impl<C: Clock + 'static> Accounts for Bank<C> {
    type Teller<'a> = Served<'a, C>;

    fn teller(&self) -> Served<'_, C> {
        Served {
            session: self.stm.session(),
            accounts: &self.accounts,
        }
    }

    fn balances(&self) -> Vec<u64> {
        self.accounts.iter().map(TVar::load).collect()
    }

    fn counts(&self) -> Counts {
        let stats = self.stm.stats();
        Counts {
            aborts: Aborts {
                lock: stats.locked + stats.yielded,
                validation: stats.validation + stats.version,
                uncertain: stats.uncertain,
                unknown: 0,
            },
            uncertain: stats.uncertain_comparisons(),
        }
    }
}

/// A thread's session.
pub(super) struct Served<'a, C: Clock> {
    session: Session<'a, C>,
    accounts: &'a [TVar<u64>],
}

impl<C: Clock> Teller for Served<'_, C> {
    #[inline(always)]
    fn transfer(&mut self, from: usize, to: usize) {
        let (from, to) = (&self.accounts[from], &self.accounts[to]);
        self.session.atomically(|tx| {
            let had = tx.read(from)?;
            tx.write(from, had - 1)?;
            let had = tx.read(to)?;
            tx.write(to, had + 1)
        });
    }

    #[inline(always)]
    fn sum(&mut self, of: &[usize]) -> u64 {
        let accounts = self.accounts;
        self.session.atomically(|tx| {
            let add = |sum, &one: &usize| Ok(sum + tx.read(&accounts[one])?);
            of.iter().try_fold(0, add)
        })
    }
}
