//! The token of the one transaction of a domain that runs alone, undisturbed by other commits.
//!
//! A transaction that has been aborted too often takes the token; from then on no other commit gets
//! through, so nothing that it reads changes any more.
//!
//! | | committer | holder |
//! |---|---|---|
//! | 1 | locks its write set | sets HELD |
//! | 2 | light barrier | heavy barrier |
//! | 3 | looks: HELD → unlocks, waits | reads variables; waits where one is locked |
//!
//! One of the two barriers comes first. If the committer's does, the holder sees its locks, and
//! waits until they are gone, whether the values were written or not. If the holder's does, the
//! committer sees HELD. So a variable that the holder has once read stays as it is, and nothing can
//! make the holder's own commit fail. Holders wait for committers only inside steps 1 to 3, which
//! end by themselves.

use crate::sleepers::Sleepers;
use corelay_sync::facade::atomic::{AtomicU64, AtomicUsize, Ordering};
use corelay_sync::facade::sync::Arc;
use corelay_sync::wait::{self, Call, NoSwitch, Token};
use corelay_sync::{Backoff, CachePadded, barrier};
use std::panic::Location;

const FREE: u64 = 0;
const HELD: u64 = 1;
const AWAITED: u64 = 2;

/// The token of a domain. Its holder runs alone.
#[derive(Debug)]
pub(crate) struct Serial {
    word: CachePadded<AtomicU64>,
    /// The name of the coroutine or thread that holds the token, as
    /// [`who_is_here`](crate::tl2::pool::who_is_here) gives it; 0 if none is named.
    holder: AtomicUsize,
}

impl Serial {
    pub(crate) fn new() -> Self {
        Self {
            word: CachePadded::new(AtomicU64::new(FREE)),
            holder: AtomicUsize::new(0),
        }
    }

    /// Whether a transaction holds the token, so that a committer that has locked its write set has
    /// to give way.
    #[inline(always)]
    pub(crate) fn is_held(&self) -> bool {
        // Pairs with the heavy barrier of `acquire`: the table above.
        barrier::light();
        // Relaxed: the barrier orders it; a committer that finds it held goes back.
        self.word.load(Ordering::Relaxed) != FREE
    }

    pub(crate) fn acquire(&self, who: usize, at: &'static Location<'static>, sleepers: &Sleepers) {
        loop {
            // Acquire: pairs with the Release of `release`; puts the holders in one order.
            let taken =
                self.word
                    .compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed);
            if taken.is_ok() {
                break;
            }
            self.wait(who, at, sleepers);
        }
        // Relaxed: only read to be compared with the reader's own name.
        self.holder.store(who, Ordering::Relaxed);
        // Pairs with the light barrier of `is_held`.
        barrier::heavy();
    }

    pub(crate) fn release(&self, sleepers: &Sleepers) {
        // Relaxed: see `acquire`.
        self.holder.store(0, Ordering::Relaxed);
        // AcqRel: Release for the next `acquire`; Acquire pairs with the Release of `wait`, so that
        // its sleeper is found.
        if self.word.swap(FREE, Ordering::AcqRel) & AWAITED != 0 {
            sleepers.wake(self.key());
        }
    }

    /// Waits until the token is free, or has been free for a moment. Called by a transaction that
    /// was begun at `at`, and has nothing locked. Unwinds if the fibre is cancelled.
    pub(crate) fn wait(&self, who: usize, at: &'static Location<'static>, sleepers: &Sleepers) {
        // Relaxed: this name is only there if this holder has put it there. A thread that is ending
        // has no name, and 0 also says that no holder is named.
        assert!(
            who == 0 || self.holder.load(Ordering::Relaxed) != who,
            "corelay: a transaction inside a transaction that runs alone: call what is inside with \
             the outer one's `tx` instead of beginning another"
        );
        let call = Call {
            name: "a transaction that gives way to another",
            at,
            is_cancellable: true,
        };
        NoSwitch::refuse_at(call);
        let mut backoff = Backoff::new();
        // Relaxed: a guess.
        while self.word.load(Ordering::Relaxed) != FREE {
            if !backoff.is_spent() {
                backoff.wait();
                continue;
            }
            let token = Arc::new(Token::new());
            sleepers.enter(self.key(), &token);
            let ended = if self.is_to_be_awaited() {
                wait::wait_in(call, &token)
            } else {
                Ok(())
            };
            sleepers.leave(self.key(), &token);
            if let Err(cancelled) = ended {
                cancelled.unwind();
            }
        }
    }

    /// Sets the AWAITED bit, so that the holder wakes sleepers when it releases the token. Returns
    /// false if the token is free, so that there is nothing to wait for.
    fn is_to_be_awaited(&self) -> bool {
        // Release: pairs with the swap of `release`, which then finds the sleeper.
        let awaited =
            self.word
                .compare_exchange(HELD, HELD | AWAITED, Ordering::Release, Ordering::Relaxed);
        // Another waiter's bit will do: the releasing holder looks into the table after it has
        // taken the bit away.
        awaited.is_ok() || awaited == Err(HELD | AWAITED)
    }

    fn key(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}
