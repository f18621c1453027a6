//! corelay's own transactions, by TL2.

use super::{AccountSession, Accounts, opening};
use corelay_clock::Clock;
use corelay_lab_measure::schema::{Aborts, ConflictCounts};
use corelay_txn::tl2::{Session, Stm, TVar};

/// Accounts in corelay's transactional variables.
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
    type Session<'a> = Tl2Session<'a, C>;

    fn session(&self) -> Tl2Session<'_, C> {
        Tl2Session {
            session: self.stm.session(),
            accounts: &self.accounts,
        }
    }

    fn balances(&self) -> Vec<u64> {
        self.accounts.iter().map(TVar::load).collect()
    }

    fn counts(&self) -> ConflictCounts {
        let stats = self.stm.stats();
        ConflictCounts {
            aborts: Aborts {
                lock: stats.locked + stats.yielded,
                validation: stats.validation + stats.version,
                uncertain: stats.uncertain,
                ..Aborts::default()
            },
            uncertain: stats.uncertain_comparisons(),
            ..ConflictCounts::default()
        }
    }
}

/// A thread's session with all accounts.
pub(super) struct Tl2Session<'a, C: Clock> {
    session: Session<'a, C>,
    accounts: &'a [TVar<u64>],
}

impl<C: Clock> AccountSession for Tl2Session<'_, C> {
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
