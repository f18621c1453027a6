//! `stm-transfer` and `stm-read`: accounts, and transactions that move money or sum accounts up
//! (O6).
//!
//! | method | module | a transaction |
//! |---|---|---|
//! | `mutex` | `shared` | in the one lock of all accounts |
//! | `trust` | `shared` | on the trustee that has all accounts |
//! | `mutex-map` | `map` | in the one lock of a hash map of all accounts |
//! | `mutex-ordered` | `ordered_locks` | in the locks of its accounts, taken in order |
//! | `tl2-logical`, `tl2-ordo` | `tl2` | by corelay |
//! | `stm`, `fast-stm` | `stm` | by the crate of that name |
//!
//! The sum of all accounts must not change. Every account starts with a different balance, so the
//! sum of accounts that no transaction changes is known. If some transactions of `stm-read` are
//! transfers, these are between the two accounts of a pair (2k, 2k + 1), and the others read whole
//! pairs, so that their sum is known, too. Each sum is checked.

mod map;
mod ordered_locks;
mod shared;
mod stm;
mod tl2;

use super::clocks;
use super::ledger::Ledger;
use super::method::Build;
use super::served::clients;
use super::spec::{Bench, Spec};
use corelay_clock::Logical;
use corelay_lab_measure::method::Contender;
use corelay_lab_measure::schema::{ConflictCounts, Trustee};
use corelay_lab_measure::workload::point::Point;
use corelay_lab_measure::workload::random::{Client, Random};
use std::ops::Range;

pub(super) const MUTEX: Build = |spec, point, _| contender(spec, point, shared::locked);
pub(super) const TRUST: Build = |spec, point, _| contender(spec, point, shared::delegated);
pub(super) const MUTEX_MAP: Build =
    |spec, point, _| contender(spec, point, |_, n| Ok(map::Bank::new(n)));
pub(super) const MUTEX_ORDERED: Build =
    |spec, point, _| contender(spec, point, |_, n| Ok(ordered_locks::Bank::new(n)));
pub(super) const STM: Build = |spec, point, _| {
    contender(spec, point, |_, n| {
        Ok(stm::Bank::<::stm::TVar<u64>>::new(n))
    })
};
pub(super) const FAST_STM: Build = |spec, point, _| {
    contender(spec, point, |_, n| {
        Ok(stm::Bank::<::fast_stm::TVar<u64>>::new(n))
    })
};

pub(super) const TL2_LOGICAL: Build =
    |spec, point, _| contender(spec, point, |_, n| Ok(tl2::Bank::new(Logical::new(), n)));
pub(super) const TL2_ORDO: Build = |spec, point, _| {
    let clock = clocks::ordo(spec.scale)?;
    contender(spec, point, |_, n| Ok(tl2::Bank::new(clock, n)))
};

/// Accounts by number; each starts with the balance [`opening`].
trait Accounts: Send + Sync + 'static {
    /// A thread's session with the accounts.
    type Session<'a>: AccountSession
    where
        Self: 'a;

    /// Opens a session for the calling thread.
    fn session(&self) -> Self::Session<'_>;

    /// The balances of all accounts. Called while no thread changes them.
    fn balances(&self) -> Vec<u64>;

    /// Aborted attempts by reason, since the accounts were made, if they count them.
    fn counts(&self) -> ConflictCounts {
        ConflictCounts::default()
    }

    /// Ends the trustees, if there are any; returns their counts. Nothing is called afterwards.
    fn end(&mut self) -> Vec<Trustee> {
        Vec::new()
    }
}

/// The operations of a thread on the accounts; each is one transaction.
trait AccountSession {
    /// Moves 1 from an account to another one.
    fn transfer(&mut self, from: usize, to: usize);

    /// The sum of some accounts at one moment; an account may be among them twice.
    fn sum(&mut self, of: &[usize]) -> u64;

    /// Aborted attempts of this session by reason, if it counts them.
    fn counts(&self) -> ConflictCounts {
        ConflictCounts::default()
    }
}

/// The balance at the beginning: more than will ever be taken.
fn opening(account: usize) -> u64 {
    (1 << 40) + account as u64
}

/// A contender of `stm-transfer` or `stm-read`.
struct BankContender<A> {
    accounts: A,
    bench: Bench,
    clients: Range<usize>,
    ledger: Ledger,
    /// The sum of all opening balances.
    sum: u64,
}

/// Sets up a contender with the accounts that `make` makes.
fn contender<A: Accounts>(
    spec: Spec,
    point: &Point,
    make: impl FnOnce(&Point, usize) -> Result<A, String>,
) -> Result<Box<dyn Contender>, String> {
    let (Bench::Transfer { variables } | Bench::Read { variables, .. }) = spec.bench else {
        unreachable!("a workload of accounts");
    };
    Ok(Box::new(BankContender {
        accounts: make(point, variables)?,
        bench: spec.bench,
        clients: clients(point),
        ledger: Ledger::default(),
        sum: (0..variables).map(opening).sum(),
    }))
}

impl<A: Accounts> BankContender<A> {
    /// Runs transfers until the slice is over; returns how many.
    fn transfers(&self, session: &mut A::Session<'_>, client: Client, variables: usize) -> u64 {
        let n = variables as u64;
        client.drive(|seed| {
            let mut random = Random::new(seed as u64);
            let from = random.below(n);
            let to = from + 1 + random.below(n - 1);
            let to = if to < n { to } else { to - n };
            session.transfer(from as usize, to as usize);
            0
        })
    }

    /// Runs sums of random accounts until the slice is over; returns how many.
    fn sums(
        &self,
        session: &mut A::Session<'_>,
        client: Client,
        variables: usize,
        reads: usize,
    ) -> u64 {
        let mut chosen = vec![0; reads];
        let (mut wrong, n) = (0, variables as u64);
        let done = client.drive(|seed| {
            let mut random = Random::new(seed as u64);
            let mut expected = 0;
            for one in &mut chosen {
                *one = random.below(n) as usize;
                expected += opening(*one);
            }
            let sum = session.sum(&chosen);
            wrong += u64::from(sum != expected);
            sum
        });
        self.report(wrong);
        done
    }

    /// Runs sums of random pairs, and some transfers within a pair, until the slice is over;
    /// returns how many.
    fn pairs(
        &self,
        session: &mut A::Session<'_>,
        client: Client,
        variables: usize,
        reads: usize,
        updates: u32,
    ) -> u64 {
        let mut chosen = vec![0; reads];
        let (mut wrong, pairs) = (0, variables as u64 / 2);
        let done = client.drive(|seed| {
            let mut random = Random::new(seed as u64);
            let coin = ((seed as u64 >> 32) * 100) >> 32;
            if coin < u64::from(updates) {
                let way = random.next();
                let from = 2 * ((u128::from(way) * u128::from(pairs)) >> 64) as usize;
                // The lowest bit is as random as the others.
                let from = from + (way & 1) as usize;
                session.transfer(from, from ^ 1);
                return 0;
            }
            let mut expected = 0;
            for pair in chosen.chunks_exact_mut(2) {
                let first = 2 * random.below(pairs) as usize;
                pair.copy_from_slice(&[first, first + 1]);
                expected += opening(first) + opening(first + 1);
            }
            let sum = session.sum(&chosen);
            wrong += u64::from(sum != expected);
            sum
        });
        self.report(wrong);
        done
    }

    fn report(&self, wrong: u64) {
        let what = || "a transaction has read balances of different moments".to_owned();
        self.ledger.report(wrong, what);
    }
}

impl<A: Accounts> Contender for BankContender<A> {
    fn clients(&self) -> Range<usize> {
        self.clients.clone()
    }

    fn client(&self, client: Client) -> u64 {
        let mut session = self.accounts.session();
        let client = client.among(usize::MAX);
        let done = match self.bench {
            Bench::Read {
                variables,
                reads,
                updates: 0,
            } => self.sums(&mut session, client, variables, reads),
            Bench::Read {
                variables,
                reads,
                updates,
            } => self.pairs(&mut session, client, variables, reads, updates),
            Bench::Transfer { variables } => self.transfers(&mut session, client, variables),
            _ => unreachable!("a workload of accounts"),
        };
        self.ledger.add(session.counts());
        done
    }

    fn total(&self) -> Result<u64, String> {
        self.ledger.check()?;
        let balances = self.accounts.balances();
        let sum: u64 = balances.iter().copied().fold(0, u64::wrapping_add);
        match sum == self.sum {
            true => Ok(0),
            false => Err(format!(
                "all accounts together have {sum} instead of {}",
                self.sum
            )),
        }
    }

    fn counts(&self) -> Option<ConflictCounts> {
        Some(self.ledger.take(self.accounts.counts()))
    }

    fn end(&mut self) -> Vec<Trustee> {
        self.accounts.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ordered::tests::{assert_caught, measure};
    use corelay_lab_measure::method::{Kind, Method};
    use corelay_sync::facade::atomic::{AtomicU64, Ordering::Relaxed};

    /// Accounts without transactions: each access stands alone.
    struct Torn(Box<[AtomicU64]>);

    struct Access<'a>(&'a [AtomicU64], u64);

    impl Accounts for Torn {
        type Session<'a> = Access<'a>;

        fn session(&self) -> Access<'_> {
            Access(&self.0, 0)
        }

        fn balances(&self) -> Vec<u64> {
            self.0.iter().map(|n| n.load(Relaxed)).collect()
        }
    }

    impl AccountSession for Access<'_> {
        fn transfer(&mut self, from: usize, to: usize) {
            self.0[from].fetch_sub(1, Relaxed);
            // Every hundredth time another thread may run in between, even with one client thread.
            self.1 += 1;
            if self.1.is_multiple_of(100) {
                std::thread::yield_now();
            }
            self.0[to].fetch_add(1, Relaxed);
        }

        fn sum(&mut self, of: &[usize]) -> u64 {
            let read = |&one: &usize| {
                self.1 += 1;
                if self.1.is_multiple_of(100) {
                    std::thread::yield_now();
                }
                self.0[one].load(Relaxed)
            };
            of.iter().map(read).sum()
        }
    }

    fn torn(_: &Point, n: usize) -> Result<Torn, String> {
        Ok(Torn((0..n).map(|n| AtomicU64::new(opening(n))).collect()))
    }

    /// Accounts that sometimes forget the second half of a transfer.
    struct Lossy(Torn);

    struct Forgetful<'a>(Access<'a>, u64);

    impl Accounts for Lossy {
        type Session<'a> = Forgetful<'a>;

        fn session(&self) -> Forgetful<'_> {
            Forgetful(self.0.session(), 0)
        }

        fn balances(&self) -> Vec<u64> {
            self.0.balances()
        }
    }

    impl AccountSession for Forgetful<'_> {
        fn transfer(&mut self, from: usize, to: usize) {
            self.1 += 1;
            if self.1 % 1000 == 1 {
                self.0.0[from].fetch_sub(1, Relaxed);
            } else {
                self.0.transfer(from, to);
            }
        }

        fn sum(&mut self, of: &[usize]) -> u64 {
            self.0.sum(of)
        }
    }

    #[test]
    fn sum_of_different_moments_is_found() {
        let bench = Bench::Read {
            variables: 2,
            reads: 16,
            updates: 50,
        };
        let method = Method::new("torn", Kind::Direct, |spec, point, _| {
            contender(spec, point, torn)
        });
        let runs = measure(bench, &[method], 4);
        assert_caught(&runs[0], "different moments");
    }

    #[test]
    fn lost_money_is_found() {
        let method = Method::new("lossy", Kind::Direct, |spec, point, _| {
            contender(spec, point, |point, n| Ok(Lossy(torn(point, n)?)))
        });
        let runs = measure(Bench::Transfer { variables: 8 }, &[method], 2);
        assert_caught(&runs[0], "all accounts together");
    }
}
