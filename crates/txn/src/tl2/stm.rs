//! A domain of transactions, and the loop that runs each until it has committed.

use super::cell::VarCell;
use super::log::Log;
use super::pool::{self, Lease};
use super::stats::{Counters, Reason, Stats};
use super::times::Times;
use super::tx::{Abort, Result, Tx, Why};
use crate::serial::Serial;
use crate::sleepers::Sleepers;
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

/// The aborts that a transaction takes before the next one makes it fall back and run alone. With
/// the pauses between them they take some 50 µs: longer than any commit of a running thread.
const ATTEMPTS: u32 = if MODEL { 2 } else { 64 };

/// A domain: transactions that are ordered by one clock, and the variables that they have written.
///
/// Most programs need none of their own: [`atomically`] runs in the default domain of the process,
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

    /// Sets the number of aborts that a transaction takes before the next one makes it run alone:
    /// 64 by default. With 0, it runs alone after its first abort.
    #[must_use]
    pub fn with_attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// Runs `f` as a transaction: all its reads and writes happen at one moment, or none. `f` may
    /// be run several times; its other effects are not undone. If it panics, nothing is written and
    /// the panic goes on. If a fibre is cancelled while a [`retry`](Tx::retry) sleeps, nothing is
    /// written, and the fibre unwinds with [`Cancelled`](corelay_sync::wait::Cancelled); likewise
    /// if the transaction waits for another one that runs alone.
    ///
    /// # Panics
    /// Inside another transaction of the same domain, on the same thread or fibre.
    #[inline]
    #[track_caller]
    pub fn atomically<'v, R>(&self, f: impl for<'t> FnMut(&mut Tx<'t, 'v, C>) -> Result<R>) -> R {
        run(self, &mut Lease::take(self.domain), f)
    }

    /// A session, for a thread that runs many transactions: see [`Session`].
    pub fn session(&self) -> Session<'_, C> {
        Session {
            stm: self,
            log: Box::new(Log::of(self.domain)),
        }
    }

    /// The counts of aborts and fall-backs since the domain was made, by reason.
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

    /// The number of variables that are slept on, counted once for each sleeping transaction.
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

    /// Whether the variable is of this domain, or of none yet because nobody has written it.
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

/// A runner of transactions like [`Stm::atomically`], with a log of its own: for loops in which
/// looking up the thread's log matters.
///
/// A transaction inside another one of the same session does not compile. One of `Stm::atomically`
/// or of another session inside is not noticed: it is a transaction of its own, which commits
/// first.
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
    /// Runs `f` as a transaction, as [`Stm::atomically`] does.
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
    /// Waits after a failed attempt, as its reason demands. The transaction was begun at `at`.
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

    /// Lets other transactions go first after an abort: pauses, or waits for the one that runs
    /// alone. After too many aborts takes the token instead, so that the others wait.
    fn pause(&mut self, at: &'static Location<'static>) {
        // The attempt is over, so its log can be cleared before the wait.
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

    /// Sleeps until a variable that this attempt has read changes. Unwinds if the fibre is
    /// cancelled.
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
            // The sleeper leaves the table before it unwinds, as the drops on the way may wait.
            drop(sleeping);
            cancelled.unwind();
        }
    }

    /// Releases the token, if the transaction holds it, so that others commit again.
    pub(super) fn let_others(&mut self) {
        if std::mem::take(&mut self.is_alone) {
            self.stm.serial.release(&self.stm.sleepers);
        }
    }
}

/// The number of reads up to which a sleeper leaves the table word by word, and not by one search
/// of the whole table.
const WORDWISE_READS: usize = 64;

/// A sleeper's entries in the table, until this is dropped.
struct Sleeping<'s, 't, 'v, C: Clock> {
    tx: &'s Tx<'t, 'v, C>,
    token: &'s Arc<Token>,
}

impl<C: Clock> Sleeping<'_, '_, '_, C> {
    /// Enters the table for all reads. Returns false if a variable has changed already.
    fn enter(&self) -> bool {
        self.tx.log.all_reads().all(|(cell, read)| {
            self.tx
                .stm
                .sleepers
                .enter(std::ptr::from_ref(cell).addr(), self.token);
            self.await_change(cell, read)
        })
    }

    /// Sets the variable's bit that tells the next writer of a sleeper. Returns false if the
    /// variable has changed since `read`, or is about to.
    fn await_change(&self, cell: &VarCell, read: super::word::Word) -> bool {
        // Otherwise nothing would wake it: a writer wakes the sleepers of its own domain.
        if !self.tx.stm.owns(cell) || !cell.claim(self.tx.stm.domain()) {
            return false;
        }
        let mut word = cell.word_again();
        while word.is_still(read) {
            // Another sleeper's bit would do: the writer looks into the table after the change. But
            // an exchange is needed all the same, so that the writer sees what was entered.
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
        // Leaving one by one searches a bucket each time, which is long if this sleeper has filled
        // it.
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

/// Runs `f` as a transaction of the process's default domain: see [`Stm::atomically`].
///
/// The domain's clock is [`Logical`]. It is right on every machine and at once, whereas the
/// hardware's clock must first be measured; and it is fast while a few cores commit. For many
/// cores, make an [`Stm`] with [`Ordo`](corelay_clock::Ordo).
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
