//! Sleepers: callers of `lock` that sleep, first come, first woken.
//!
//! A caller that sleeps has a node on the heap, which it shares with the queue, for it may give up
//! and go at any time.
//!
//! # States of a sleeper
//! | state | meaning | next, and who writes it |
//! |---|---|---|
//! | `SLEEPS` | its caller sleeps, or is about to | `WOKEN` or `GRANTED` (holder), `GONE` (caller) |
//! | `WOKEN` | its caller shall try again to enter | |
//! | `GRANTED` | its caller has entered | |
//! | `GONE` | its caller has given up, or has entered by itself | |
//!
//! A caller that gives up and finds `WOKEN` has been given a wake-up that another one needs now. Only
//! fibres give up, and a fibre is not granted the lock: see [waiting](super::waiting).
//!
//! **Who is next.** Leaving a lock wakes the first sleeper, but leaves the lock free, so that whoever
//! runs can enter meanwhile. Handing it over would leave it idle until the sleeper runs, and everyone
//! else would stop for that (a convoy). Only a thread that has lost [`PATIENCE`] times is granted it,
//! if it runs nothing else while it waits.

use corelay_sync::facade::MODEL;
use corelay_sync::facade::atomic::{AtomicPtr, AtomicU8, Ordering};
use corelay_sync::facade::cell::UnsafeCell;
use corelay_sync::facade::sync::Arc;
use corelay_sync::wait::Token;
use std::ptr;

const SLEEPS: u8 = 0;
const WOKEN: u8 = 1;
const GRANTED: u8 = 2;
const GONE: u8 = 3;

/// The number of times that a sleeper may be woken and find the lock held. After that it is granted.
const PATIENCE: u32 = if MODEL { 1 } else { 8 };

/// The way in which a holder has chosen a sleeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chosen {
    /// Not at all.
    No,
    /// It shall try again to enter.
    Woken,
    /// It has entered.
    Granted,
}

/// A caller of `lock` that sleeps.
#[derive(Debug)]
pub(super) struct Sleeper {
    state: AtomicU8,
    /// How often the caller has been woken and has found the lock held.
    losses: u32,
    /// Where the caller waits.
    pub(super) token: Token,
    /// The next one in whichever list the sleeper is.
    next: AtomicPtr<Sleeper>,
}

impl Sleeper {
    pub(super) fn new(losses: u32) -> Arc<Self> {
        Arc::new(Self {
            state: AtomicU8::new(SLEEPS),
            losses,
            token: Token::new(),
            next: AtomicPtr::new(ptr::null_mut()),
        })
    }

    /// Says that the caller will not sleep any more. Returns how it has been chosen meanwhile.
    pub(super) fn leave(&self) -> Chosen {
        // Relaxed: the state alone counts. The token publishes what a thread did that has granted the
        // lock.
        match self.state.swap(GONE, Ordering::Relaxed) {
            WOKEN => Chosen::Woken,
            GRANTED => Chosen::Granted,
            _ => Chosen::No,
        }
    }

    /// Chooses the sleeper. If it has been granted the lock, the calling thread holds that no more.
    pub(super) fn choose(&self) -> Chosen {
        let (state, chosen) = if self.losses < PATIENCE {
            (WOKEN, Chosen::Woken)
        } else {
            (GRANTED, Chosen::Granted)
        };
        // Relaxed: as in `leave`.
        let exchange =
            self.state
                .compare_exchange(SLEEPS, state, Ordering::Relaxed, Ordering::Relaxed);
        exchange.map_or(Chosen::No, |_| chosen)
    }
}

/// The sleepers of one lock: a list of those that have come last, and a queue of the older ones.
#[derive(Debug)]
pub(super) struct Queue {
    /// The sleeper that came last, before it the one that came before, and so on.
    last: AtomicPtr<Sleeper>,
    /// The sleeper that came first, behind it the next. Only the holder of the lock uses it.
    first: UnsafeCell<*mut Sleeper>,
}

// SAFETY: `first` is used only by the thread that holds the lock: the duty of the callers of `pop`.
unsafe impl Sync for Queue {}
// SAFETY: it owns references to sleepers, which are atomics and tokens.
unsafe impl Send for Queue {}

impl Queue {
    super::const_fn! {
        pub(super) const fn new() -> Self {
            Self {
                last: AtomicPtr::new(ptr::null_mut()),
                first: UnsafeCell::new(ptr::null_mut()),
            }
        }
    }

    pub(super) fn push(&self, sleeper: Arc<Sleeper>) {
        let sleeper = Arc::into_raw(sleeper).cast_mut();
        // SAFETY: it comes from the `Arc` above, and is not in the list yet.
        let next = unsafe { &(*sleeper).next };
        // Relaxed, here and where the exchange fails: only the address is used.
        let mut last = self.last.load(Ordering::Relaxed);
        loop {
            // Relaxed: published by the exchange.
            next.store(last, Ordering::Relaxed);
            // Release: pairs with the Acquire of `pop`; publishes the sleeper.
            match self
                .last
                .compare_exchange(last, sleeper, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(now) => last = now,
            }
        }
    }

    /// Takes the sleeper out that came first.
    ///
    /// # Safety
    /// The calling thread holds the lock.
    pub(super) unsafe fn pop(&self) -> Option<Arc<Sleeper>> {
        self.first.with_mut(|first| {
            // SAFETY: only the holder of the lock uses it (the caller's duty).
            let first = unsafe { &mut *first };
            // Relaxed: a sleeper that has marked the list of records is visible.
            if first.is_null() && !self.last.load(Ordering::Relaxed).is_null() {
                // Acquire: pairs with the Release of `push`.
                *first = reversed(self.last.swap(ptr::null_mut(), Ordering::Acquire));
            }
            let sleeper = *first;
            if sleeper.is_null() {
                return None;
            }
            // SAFETY: `push` made it of an `Arc`, and it is in one list only, which this thread has.
            let sleeper = unsafe { Arc::from_raw(sleeper) };
            // Relaxed: the exchange of `push` published it, or a holder wrote it.
            *first = sleeper.next.load(Ordering::Relaxed);
            Some(sleeper)
        })
    }

    /// Whether nobody sleeps, but for those that come just now.
    ///
    /// # Safety
    /// The calling thread holds the lock.
    pub(super) unsafe fn is_empty(&self) -> bool {
        let is_empty = self.first.with(|first| {
            // SAFETY: only the holder of the lock uses it (the caller's duty).
            unsafe { *first }.is_null()
        });
        // Relaxed: as in `pop`.
        is_empty && self.last.load(Ordering::Relaxed).is_null()
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: `&mut self`: nobody holds the lock, or ever will.
        while unsafe { self.pop() }.is_some() {}
    }
}

/// A list the other way round.
fn reversed(mut list: *mut Sleeper) -> *mut Sleeper {
    let mut result = ptr::null_mut();
    while !list.is_null() {
        // SAFETY: it is in the list, which is this thread's, and owns a reference to it.
        let next = unsafe { &(*list).next };
        // Relaxed, both: the list is this thread's; publishing is the duty of whoever shares it.
        let rest = next.load(Ordering::Relaxed);
        next.store(result, Ordering::Relaxed);
        (result, list) = (list, rest);
    }
    result
}
