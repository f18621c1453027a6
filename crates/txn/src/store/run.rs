//! The loop that runs each transaction until it has committed, or ends otherwise.

use super::commit::{self, Commit, Done};
use super::error::Abort;
use super::protocol::{Protocol, check_view};
use super::stats::{Conflict, Reason};
use super::store::Store;
use super::tx::Tx;
use crate::tl2::pool::who_is_here;
use corelay_sync::Backoff;
use corelay_sync::facade::atomic::Ordering;
use corelay_sync::wait::{Call, Cancelled, NoSwitch};
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};

/// Runs a transaction until it has ended. `committed` is called after the commit.
#[inline(always)]
#[track_caller]
pub(super) fn run<P: Protocol, R, E: From<Abort>, C>(
    store: &Store<P>,
    is_read_only: bool,
    at: &'static Location<'static>,
    mut f: impl FnMut(&mut Tx<'_, P>) -> Result<R, E>,
    committed: impl FnOnce(&mut Tx<'_, P>) -> C,
) -> Result<(R, C), E> {
    let mut tx = Tx::begin(store, is_read_only);
    loop {
        let attempt = || {
            let answer = f(&mut tx)?;
            tx.encode()?;
            Ok(answer)
        };
        let ended = match catch_unwind(AssertUnwindSafe(attempt)) {
            Ok(Ok(answer)) => match tx.commit() {
                Ok(()) => {
                    let committed = committed(&mut tx);
                    tx.end();
                    return Ok((answer, committed));
                }
                Err(reason) => {
                    tx.give_up(reason);
                    // Dropped in between attempts, as a destructor may do anything.
                    drop(answer);
                    (reason, None)
                }
            },
            Ok(Err(error)) => {
                let reason = tx.why();
                tx.give_up(reason);
                (reason, Some(error))
            }
            Err(payload) => {
                let reason = if payload.is::<Cancelled>() {
                    Reason::Panicked
                } else {
                    tx.why_panicked()
                };
                tx.give_up(reason);
                if !reason.is_retried() {
                    drop(tx);
                    resume_unwind(payload);
                }
                // A payload may panic when it is dropped, and that one's payload, too.
                let dropped = catch_unwind(AssertUnwindSafe(|| drop(payload)));
                std::mem::forget(dropped);
                (reason, None)
            }
        };
        let (reason, error) = ended;
        if !reason.is_retried() {
            return Err(error.unwrap_or_else(|| E::from(Abort::new(reason))));
        }
        drop(error);
        tx.again(at);
    }
}

impl<'s, P: Protocol> Tx<'s, P> {
    #[inline(always)]
    #[track_caller]
    fn begin(store: &'s Store<P>, is_read_only: bool) -> Self {
        let claim = store.pins.claim();
        let mut work = claim.take_work();
        work.is_read_only = is_read_only;
        let mut tx = Self {
            store,
            claim,
            work,
            doom: None,
            is_alone: false,
            is_read_only,
            is_pinned: false,
            attempts: 0,
        };
        if store.writers.is_some() {
            tx.open_log();
        }
        tx.pin();
        tx
    }

    #[inline(always)]
    fn pin(&mut self) {
        self.claim.pin();
        self.is_pinned = true;
        self.store.protocol().begin(&self.claim, &mut self.work);
        self.claim.leave();
    }

    /// Commits, after its closure has returned an answer.
    #[inline(always)]
    fn commit(&mut self) -> Result<(), Reason> {
        if let Some(reason) = self.doom {
            return Err(reason);
        }
        if !self.claim.enter() {
            return Err(Reason::Refused);
        }
        let protocol = self.store.protocol();
        if self.work.writes.is_empty() {
            self.check_read_only()?;
            // Another transaction that begins after this one has ended must not read earlier.
            protocol.settle(self.work.time);
            return Ok(());
        }
        let stamp = match self.work.log.is_some() {
            true => self.commit_logged()?,
            false => self.install(|| Ok(()))?.stamp,
        };
        protocol.settle(stamp);
        Ok(())
    }

    /// Installs what the transaction has written, unless another one runs alone. `hold` is called in
    /// between: see [`Commit::run`].
    #[inline(always)]
    pub(super) fn install<H>(
        &mut self,
        hold: impl FnOnce() -> Result<H, Reason>,
    ) -> Result<Done<H>, Reason> {
        let (store, is_alone) = (self.store, self.is_alone);
        let commit = Commit {
            protocol: store.protocol(),
            claim: &self.claim,
            work: &mut self.work,
        };
        commit.run(|| {
            if !is_alone && store.serial.is_held() {
                return Err(Reason::Yielded);
            }
            hold()
        })
    }

    #[inline(always)]
    fn check_read_only(&mut self) -> Result<(), Reason> {
        let removals = commit::removals(&self.work);
        self.store.protocol().check_read_only(&mut self.work)?;
        if self.store.protocol().checks_absences(true) {
            commit::check_absences(&self.work, removals).map_err(Conflict::count)?;
        }
        Ok(())
    }

    /// Why an attempt ends whose closure has returned an error: it has passed one of ours on, or
    /// wants to end it. The latter only counts if it was right in what it saw.
    #[cold]
    fn why(&mut self) -> Reason {
        self.doom
            .or_else(|| self.mixed())
            .unwrap_or(Reason::Explicit)
    }

    #[cold]
    fn why_panicked(&mut self) -> Reason {
        if self.doom.is_some() {
            // A closure that goes on after an operation has failed, and panics, is heard.
            return Reason::Panicked;
        }
        self.mixed().unwrap_or(Reason::Panicked)
    }

    /// Why this attempt is run again, although its closure ends it: it may have seen what never
    /// existed at one moment.
    pub(super) fn mixed(&mut self) -> Option<Reason> {
        if !P::SEES_MIXED {
            return None;
        }
        if !self.claim.enter() {
            return Some(Reason::Refused);
        }
        let removals = commit::removals(&self.work);
        let view = check_view(&self.work);
        view.and_then(|()| commit::check_absences(&self.work, removals))
            .map_err(Conflict::count)
            .err()
    }

    /// Ends the attempt without a commit.
    #[cold]
    fn give_up(&mut self, reason: Reason) {
        self.store.count(reason);
        self.finish();
    }

    /// Ends the attempt.
    #[inline]
    fn finish(&mut self) {
        commit::give_up::<P>(&self.claim, &mut self.work);
        if self.work.uncertain > 0 {
            let open = std::mem::take(&mut self.work.uncertain);
            // Relaxed: a count.
            self.store.uncertain.fetch_add(open, Ordering::Relaxed);
        }
        self.work.clear();
        self.doom = None;
        if std::mem::take(&mut self.is_pinned) {
            self.claim.unpin();
        }
    }

    /// Ends the transaction after its commit.
    #[inline]
    fn end(mut self) {
        if self.claim.count_commit() && self.claim.retained() > self.store.old_versions {
            let refused = self.claim.refuse_sleepers();
            // Relaxed: a count.
            self.store.refused.fetch_add(refused, Ordering::Relaxed);
        }
        if P::KEEPS && self.claim.has_queue() {
            self.claim.sweep(self.store.protocol().oldest(&self.claim));
        }
        self.finish();
        self.claim.collect();
    }

    /// Lets other transactions go first after an abort, and begins the next attempt. After too many
    /// aborts the transaction takes the token, so that the others wait.
    #[cold]
    #[inline(never)]
    fn again(&mut self, at: &'static Location<'static>) {
        self.claim.collect();
        self.attempts += 1;
        self.pause(at);
        self.pin();
    }

    fn pause(&mut self, at: &'static Location<'static>) {
        if self.is_alone {
            return;
        }
        let store = self.store;
        if self.attempts > store.attempts {
            NoSwitch::refuse_at(Call {
                name: "a transaction that was aborted too often",
                at,
                is_cancellable: true,
            });
            store.serial.acquire(who_is_here(), at, &store.sleepers);
            self.is_alone = true;
            return;
        }
        if store.serial.is_held() {
            store.serial.wait(who_is_here(), at, &store.sleepers);
            return;
        }
        let mut backoff = Backoff::new();
        for _ in 0..self.attempts.min(8) {
            backoff.wait();
        }
    }
}

impl<P: Protocol> Drop for Tx<'_, P> {
    fn drop(&mut self) {
        self.finish();
        if std::mem::take(&mut self.is_alone) {
            self.store.serial.release(&self.store.sleepers);
        }
        let work = std::mem::take(&mut self.work);
        self.claim.leave_work(work);
    }
}
