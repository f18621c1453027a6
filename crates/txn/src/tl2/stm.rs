//! A domain of transactions, and how each is run until it has committed.

use super::cell::VarCell;
use super::log::Log;
use super::pool::{self, Lease};
use super::serial::Serial;
use super::sleepers::Sleepers;
use super::stats::{Counters, Reason, Stats};
use super::times::Times;
use super::tx::{Abort, Result, Tx, Why};
use corelay_clock::{Clock, Logical};
use corelay_sync::facade::MODEL;
use corelay_sync::facade::atomic::{AtomicU64, Ordering};
use corelay_sync::facade::sync::Arc;
use corelay_sync::wait::{self, Call, NoSwitch, Token};
use corelay_sync::{Backoff, CachePadded};
use std::panic::Location;

#[cfg(not(any(corelay_loom, corelay_shuttle)))]
static DOMAINS: AtomicU64 = AtomicU64::new(1);
#[cfg(any(corelay_loom, corelay_shuttle))]
corelay_sync::facade::lazy_static! {
    static ref DOMAINS: AtomicU64 = AtomicU64::new(1);
}

/// Aborts after which a transaction falls back and runs alone. With the pauses between them some
/// 50 µs: longer than any commit of a thread that runs.
const ATTEMPTS: u32 = if MODEL { 2 } else { 64 };

/// A domain: transactions that are ordered by one clock, and the variables that they have written.
///
/// Most programs need none of their own: [`atomically`] runs in the one that every process has,
/// whose clock is [`Logical`].
///
/// ```
/// use corelay_clock::Logical;
/// use corelay_txn::tl2::{Stm, TVar};
///
/// let stm = Stm::new(Logical::new());
/// let (from, to) = (TVar::new(10_i64), TVar::new(0_i64));
/// stm.atomically(|tx| {
///     tx.update(&from, |cents| cents - 7)?;
///     tx.update(&to, |cents| cents + 7)
/// });
/// assert_eq!((from.load(), to.load()), (3, 7));
/// assert_eq!(stm.stats().aborts(), 0);
/// ```
#[derive(Debug)]
pub struct Stm<C: Clock = Logical> {
    times: Times<C>,
    domain: u64,
    attempts: u32,
    serial: Serial,
    sleepers: Sleepers,
    counters: CachePadded<Counters>,
}

impl<C: Clock> Stm<C> {
    /// A domain ordered by `clock`.
    pub fn new(clock: C) -> Self {
        Self {
            times: Times::new(clock),
            // Relaxed: only has to be unique.
            domain: DOMAINS.fetch_add(1, Ordering::Relaxed),
            attempts: ATTEMPTS,
            serial: Serial::new(),
            sleepers: Sleepers::new(),
            counters: CachePadded::default(),
        }
    }

    /// The same, where a transaction runs alone after more than `attempts` aborts instead of 64: with
    /// 0, as soon as it has been aborted once.
    #[must_use]
    pub fn with_attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// Runs `f` as a transaction: all its reads and writes happen at one moment, or none. `f` may be
    /// run several times; what it does besides is not undone. If it panics, nothing is written and
    /// the panic goes on. If a [`retry`](Tx::retry) sleeps on a fibre and that is cancelled, nothing is
    /// written, and the fibre unwinds with [`Cancelled`](corelay_sync::wait::Cancelled); the same where
    /// the transaction waits for another one that runs alone.
    ///
    /// # Panics
    /// Inside another transaction of the same domain, on the same thread or fibre.
    #[inline]
    #[track_caller]
    pub fn atomically<'v, R>(&self, f: impl for<'t> FnMut(&mut Tx<'t, 'v, C>) -> Result<R>) -> R {
        run(self, &mut Lease::take(self.domain), f)
    }

    /// For a thread that runs many transactions: see [`Session`].
    pub fn session(&self) -> Session<'_, C> {
        Session {
            stm: self,
            log: Box::new(Log::of(self.domain)),
        }
    }

    /// Aborts and fall-backs so far, by reason.
    pub fn stats(&self) -> Stats {
        Stats {
            beyond: self.times.beyond(),
            ..self.counters.sum()
        }
    }

    /// The clock that orders this domain.
    #[inline(always)]
    pub fn clock(&self) -> &C {
        self.times.clock()
    }

    #[inline(always)]
    pub(super) fn times(&self) -> &Times<C> {
        &self.times
    }

    /// Variables that are slept on, once for each sleeping transaction.
    #[doc(hidden)]
    pub fn sleeping(&self) -> usize {
        self.sleepers.count()
    }

    #[inline(always)]
    pub(super) fn domain(&self) -> u64 {
        self.domain
    }

    #[inline(always)]
    pub(super) fn serial(&self) -> &Serial {
        &self.serial
    }

    pub(super) fn sleepers(&self) -> &Sleepers {
        &self.sleepers
    }

    pub(super) fn count(&self, who: usize, reason: Reason) {
        self.counters.count(who, reason);
    }

    /// A variable that nobody has written belongs to all.
    #[inline(always)]
    pub(super) fn owns(&self, cell: &VarCell) -> bool {
        let domain = cell.domain();
        domain == self.domain || domain == 0
    }

    pub(super) fn check_owner(&self, cell: &VarCell) {
        if !self.owns(cell) {
            self.refuse(cell);
        }
    }

    #[cold]
    pub(super) fn refuse(&self, cell: &VarCell) -> ! {
        panic!(
            "corelay: a variable that `Stm` number {} has written, in a transaction of number {}: \
             use one `Stm` for all transactions on a variable",
            cell.domain(),
            self.domain
        )
    }
}

/// Runs transactions like [`Stm::atomically`], with a log of its own: for loops in which looking for
/// the thread's counts.
///
/// A transaction inside another one of the same session does not compile. One of `Stm::atomically` or
/// of another session inside is not noticed: it is a transaction of its own, that commits first.
///
/// ```
/// use corelay_clock::Logical;
/// use corelay_txn::tl2::{Stm, TVar};
///
/// let stm = Stm::new(Logical::new());
/// let hits = TVar::new(0_u64);
/// let mut session = stm.session();
/// for _ in 0..10 {
///     session.atomically(|tx| tx.update(&hits, |n| n + 1));
/// }
/// assert_eq!(hits.load(), 10);
/// ```
#[derive(Debug)]
pub struct Session<'s, C: Clock = Logical> {
    stm: &'s Stm<C>,
    log: Box<Log>,
}

impl<C: Clock> Session<'_, C> {
    /// As [`Stm::atomically`].
    #[inline]
    #[track_caller]
    pub fn atomically<'v, R>(
        &mut self,
        f: impl for<'t> FnMut(&mut Tx<'t, 'v, C>) -> Result<R>,
    ) -> R {
        run(self.stm, &mut self.log, f)
    }
}

#[inline(always)]
#[track_caller]
fn run<'v, C: Clock, R>(
    stm: &Stm<C>,
    log: &mut Log,
    mut f: impl for<'t> FnMut(&mut Tx<'t, 'v, C>) -> Result<R>,
) -> R {
    let at = Location::caller();
    let mut tx = Tx::begin(stm, log);
    loop {
        let aborted = match f(&mut tx) {
            Ok(answer) => match tx.commit() {
                Ok(()) => return answer,
                Err(aborted) => aborted,
            },
            Err(aborted) => aborted,
        };
        tx.again(aborted, at);
    }
}

impl<C: Clock + Default> Default for Stm<C> {
    fn default() -> Self {
        Self::new(C::default())
    }
}

impl<'t, C: Clock> Tx<'t, '_, C> {
    /// After an attempt in vain: waits for what it has to wait for. The transaction was begun at `at`.
    #[cold]
    #[inline(never)]
    fn again(&mut self, aborted: Abort, at: &'static Location<'static>) {
        if aborted.why == Why::Retry && !self.doomed {
            self.sleep(at);
            self.attempts = 0;
        } else {
            self.attempts += 1;
            self.pause(at);
        }
        self.log.clear();
        self.doomed = false;
    }

    /// Lets others go first; after so many times, the others wait.
    fn pause(&mut self, at: &'static Location<'static>) {
        // Nothing is read or written by now, so others may as well know.
        self.log.clear();
        if self.is_alone {
            return;
        }
        let (stm, who) = (self.stm, pool::who_is_here());
        if self.attempts > stm.attempts {
            let call = Call {
                name: "a transaction that was aborted too often",
                at,
                is_cancellable: true,
            };
            NoSwitch::refuse_at(call);
            stm.serial.acquire(who, at, &stm.sleepers);
            stm.count(who, Reason::Fallback);
            self.is_alone = true;
            return;
        }
        if stm.serial.is_held() {
            stm.serial.wait(who, at, &stm.sleepers);
            return;
        }
        let mut backoff = Backoff::new();
        for _ in 0..self.attempts.min(8) {
            backoff.wait();
        }
    }

    /// Sleeps until something that was read changes. Unwinds where it is cancelled.
    fn sleep(&mut self, at: &'static Location<'static>) {
        assert!(
            self.log.all_reads().next().is_some(),
            "corelay: `retry` with nothing read, so that nothing would wake the transaction: read \
             what it waits for before"
        );
        self.let_others();
        let (stm, who) = (self.stm, pool::who_is_here());
        stm.count(who, Reason::Retry);
        let call = Call {
            name: "a transaction's `retry`",
            at,
            is_cancellable: true,
        };
        NoSwitch::refuse_at(call);
        let token = Arc::new(Token::new());
        let sleeping = Sleeping {
            tx: self,
            token: &token,
        };
        if sleeping.enter()
            && let Err(cancelled) = wait::wait_in(call, &token)
        {
            // Out of the table before it unwinds, and what it drops waits perhaps.
            drop(sleeping);
            cancelled.unwind();
        }
    }

    /// Gives the token back, if it is held.
    pub(super) fn let_others(&mut self) {
        if std::mem::take(&mut self.is_alone) {
            self.stm.serial.release(&self.stm.sleepers);
        }
    }
}

/// Reads up to which a sleeper leaves the table word by word.
const WORDWISE_READS: usize = 64;

/// In the table of sleepers, until it is dropped.
struct Sleeping<'s, 't, 'v, C: Clock> {
    tx: &'s Tx<'t, 'v, C>,
    token: &'s Arc<Token>,
}

impl<C: Clock> Sleeping<'_, '_, '_, C> {
    /// Enters the table; false where something has changed already.
    fn enter(&self) -> bool {
        self.tx.log.all_reads().all(|(cell, read)| {
            self.tx
                .stm
                .sleepers
                .enter(std::ptr::from_ref(cell).addr(), self.token);
            self.await_change(cell, read)
        })
    }

    /// Sets the bit; false where the variable has changed, or is about to.
    fn await_change(&self, cell: &VarCell, read: super::word::Word) -> bool {
        // Or it would be woken by nobody: a writer wakes who sleeps in its own domain.
        if !self.tx.stm.owns(cell) || !cell.claim(self.tx.stm.domain()) {
            return false;
        }
        let mut word = cell.word_again();
        while word.is_still(read) {
            // Another one's bit does for us too: the table is looked into after the change. An
            // exchange all the same: the writer has to see what we have entered.
            match cell.try_await(word) {
                Ok(()) => return true,
                Err(now) => word = now,
            }
        }
        false
    }
}

impl<C: Clock> Drop for Sleeping<'_, '_, '_, C> {
    fn drop(&mut self) {
        // One by one, each looks through its bucket, which is long if we have filled it.
        if self.tx.log.all_reads().nth(WORDWISE_READS).is_some() {
            return self.tx.stm.sleepers.leave_all(self.token);
        }
        for (cell, _) in self.tx.log.all_reads() {
            self.tx
                .stm
                .sleepers
                .leave(std::ptr::from_ref(cell).addr(), self.token);
        }
    }
}

/// Runs `f` as a transaction of the process's own domain: see [`Stm::atomically`].
///
/// The domain's clock is [`Logical`]: right on every machine and at once, where the hardware's clock
/// must first be measured, and fast while a few cores commit. For many, make an [`Stm`] with
/// [`Ordo`](corelay_clock::Ordo).
///
/// ```
/// use corelay_txn::tl2::{TVar, atomically};
///
/// let (a, b) = (TVar::new(3_u64), TVar::new(4_u64));
/// let sum = atomically(|tx| Ok(tx.read(&a)? + tx.read(&b)?));
/// assert_eq!(sum, 7);
/// ```
#[cfg(not(any(corelay_loom, corelay_shuttle)))]
#[inline]
#[track_caller]
pub fn atomically<'v, R>(f: impl for<'t> FnMut(&mut Tx<'t, 'v>) -> Result<R>) -> R {
    default_stm().atomically(f)
}

/// The domain that [`atomically`] runs in.
#[cfg(not(any(corelay_loom, corelay_shuttle)))]
#[inline]
pub fn default_stm() -> &'static Stm {
    use std::sync::LazyLock;
    static STM: LazyLock<Stm> = LazyLock::new(Stm::default);
    &STM
}
