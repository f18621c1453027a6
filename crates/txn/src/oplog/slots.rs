//! The logs of all sessions, and the gate that a reader closes to have all of them at one moment.
//!
//! A log belongs to a session, not to a core: a thread, or a fibre that moves between threads, may
//! be taken off its core in the middle of an update, and what then runs on that core would meet a
//! half-done append. A session's log has one appender wherever it runs; and sessions of threads
//! that stay on their cores are a log per core.
//!
//! # Who may touch a log
//! ```text
//!  appender of a slot                       reader (one at a time: it holds the state)
//!
//!  IDLE ── busy := true; light ──► ASKS     gate := CLOSED; heavy
//!  ASKS ── gate is OPEN ─────────► IN       each slot: wait while busy
//!  ASKS ── gate is CLOSED: busy := false    exchange the buffers of all logs
//!          ─────────────► IDLE, when OPEN   gate := OPEN (or POISONED, for ever)
//!  ASKS ── gate is POISONED: busy := false, panics
//!  IN ──── append; busy := false ► IDLE
//! ```
//! Both write a word and then read the other's, with [`barrier`] between: so of an appender and a
//! reader, at least one sees the other. Let the reader's barrier be H.
//!
//! * An appender whose barrier is behind H sees the gate closed, or what the reader has made of it
//!   since, and is behind the exchange.
//! * An appender whose barrier is ahead of H may go in. The reader then finds its slot in the list,
//!   for the slot was there before, sees that it is busy, and waits; or sees that it is not busy
//!   any more, and with it the append.
//!
//! So from the last wait to the opening of the gate nobody is in any log: that is the moment at
//! which the reader has all of them. An update that returned before another one began, which the
//! reader finds, is found too: its barrier is ahead of H. (If it were behind, it would have been let
//! in by the reader's own opening, and the other one would be behind that.)

use super::error::Poisoned;
use super::locked::pause;
use super::log::Log;
use corelay_sync::facade::atomic::{AtomicBool, AtomicPtr, AtomicU8, Ordering};
use corelay_sync::facade::cell::UnsafeCell;
use corelay_sync::{Backoff, CachePadded, barrier};
use std::marker::PhantomData;
use std::ptr;

const OPEN: u8 = 0;
const CLOSED: u8 = 1;
const POISONED: u8 = 2;

/// A place for a session.
#[derive(Debug)]
struct LogSlot<Op> {
    /// True while the session is at its log, or asks to be.
    busy: AtomicBool,
    /// True while a session has it.
    claimed: AtomicBool,
    log: UnsafeCell<Log<Op>>,
    /// The one that was there before; written before this one is published.
    next: *const CachePadded<LogSlot<Op>>,
}

// SAFETY: `next` points to a member of the same list, which is freed with it; nothing but shared
// references is made of it. All else may move.
unsafe impl<Op: Send> Send for LogSlot<Op> {}
// SAFETY: as above; the log is touched by one at a time, see the module.
unsafe impl<Op: Send> Sync for LogSlot<Op> {}

/// All logs, the youngest first, and the gate.
#[derive(Debug)]
pub(super) struct Slots<Op> {
    /// Written twice by a read, and read by every update.
    gate: CachePadded<AtomicU8>,
    head: AtomicPtr<CachePadded<LogSlot<Op>>>,
    _owns: PhantomData<Box<LogSlot<Op>>>,
}

impl<Op> Slots<Op> {
    pub(super) fn new() -> Self {
        Self {
            gate: CachePadded::new(AtomicU8::new(OPEN)),
            head: AtomicPtr::new(ptr::null_mut()),
            _owns: PhantomData,
        }
    }

    /// A log that nobody else appends to: one that a session has left, with what is pending in it,
    /// or a new one.
    pub(super) fn claim(&self, capacity: usize) -> Appender<'_, Op> {
        let left = iter(self.first()).find(|slot| {
            // Relaxed: a guess.
            !slot.claimed.load(Ordering::Relaxed)
                // Acquire: pairs with the Release in `Appender::drop`; this session comes behind it.
                && !slot.claimed.swap(true, Ordering::Acquire)
        });
        Appender {
            slots: self,
            slot: left.unwrap_or_else(|| self.add(capacity)),
        }
    }

    fn add(&self, capacity: usize) -> &CachePadded<LogSlot<Op>> {
        let mut head = self.first();
        let mut boxed = Box::new(CachePadded::new(LogSlot {
            busy: AtomicBool::new(false),
            claimed: AtomicBool::new(true),
            log: UnsafeCell::new(Log::new(capacity)),
            next: ptr::null(),
        }));
        loop {
            boxed.next = head;
            let slot = Box::into_raw(boxed);
            // Release: pairs with the Acquire in `first`; publishes the slot. Those that it leads to
            // are published by their own, of which this is the release sequence.
            match self.head.compare_exchange(
                head.cast_mut(),
                slot,
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                // SAFETY: published, and so not freed before the list.
                Ok(_) => return unsafe { &*slot },
                Err(now) => head = now,
            }
            // SAFETY: it has not been published.
            boxed = unsafe { Box::from_raw(slot) };
        }
    }

    /// Logs that there are, in use or not.
    pub(super) fn len(&self) -> usize {
        iter(self.first()).count()
    }

    /// Runs `f` on every log, at one moment: nobody is in any of them. One at a time calls it.
    pub(super) fn with_all(&self, mut f: impl FnMut(usize, &mut Log<Op>)) -> Result<(), Poisoned> {
        // Acquire: pairs with the Release in `OpenOnDrop`; what the last reader left is seen.
        match self.gate.swap(CLOSED, Ordering::Acquire) {
            OPEN => {}
            POISONED => {
                self.poison();
                return Err(Poisoned);
            }
            _ => unreachable!("two readers: the state has one holder"),
        }
        let _open = OpenOnDrop(&self.gate);
        // Pairs with the light barrier of `Appender::with`.
        barrier::heavy();
        let first = self.first();
        for slot in iter(first) {
            let mut backoff = Backoff::new();
            // Acquire: pairs with the Release in `Leave`; what has been appended is seen.
            while slot.busy.load(Ordering::Acquire) {
                pause(&mut backoff);
            }
        }
        for (index, slot) in iter(first).enumerate() {
            slot.log.with_mut(|log| {
                // SAFETY: who is not busy now finds the gate closed, and we are the one who closed it.
                f(index, unsafe { &mut *log });
            });
        }
        Ok(())
    }

    /// Lets nobody in any more.
    pub(super) fn poison(&self) {
        // Relaxed: who does not see it yet appends what nobody will read.
        self.gate.store(POISONED, Ordering::Relaxed);
    }

    fn first(&self) -> *const CachePadded<LogSlot<Op>> {
        // Acquire: pairs with the Release in `add`.
        self.head.load(Ordering::Acquire)
    }
}

/// From `slot` to the oldest.
fn iter<'a, Op: 'a>(
    mut slot: *const CachePadded<LogSlot<Op>>,
) -> impl Iterator<Item = &'a CachePadded<LogSlot<Op>>> {
    std::iter::from_fn(move || {
        // SAFETY: null, or a published slot.
        let found = unsafe { slot.as_ref() }?;
        slot = found.next;
        Some(found)
    })
}

impl<Op> Drop for Slots<Op> {
    fn drop(&mut self) {
        let mut slot = self.first().cast_mut();
        while !slot.is_null() {
            // SAFETY: `add` made it of a box; nobody has a reference any more, by `&mut self`.
            let boxed = unsafe { Box::from_raw(slot) };
            slot = boxed.next.cast_mut();
        }
    }
}

struct OpenOnDrop<'a>(&'a AtomicU8);

impl Drop for OpenOnDrop<'_> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `Appender::with`; who goes in is behind the exchange.
        self.0.store(OPEN, Ordering::Release);
    }
}

/// The one way into a log.
#[derive(Debug)]
pub(super) struct Appender<'a, Op> {
    slots: &'a Slots<Op>,
    slot: &'a CachePadded<LogSlot<Op>>,
}

impl<Op> Appender<'_, Op> {
    /// Runs `f` on the log.
    #[inline(always)]
    pub(super) fn with<R>(&mut self, f: impl FnOnce(&mut Log<Op>) -> R) -> Result<R, Poisoned> {
        // Relaxed: it is the barrier that orders it.
        self.slot.busy.store(true, Ordering::Relaxed);
        // Pairs with the heavy barrier of `with_all`.
        barrier::light();
        // Acquire: pairs with the Release in `OpenOnDrop`.
        if self.slots.gate.load(Ordering::Acquire) != OPEN {
            self.ask_again()?;
        }
        let _leave = Leave(&self.slot.busy);
        Ok(self.slot.log.with_mut(|log| {
            // SAFETY: the slot is ours by its claim, `&mut self` is one at a time, and a reader waits
            // until we are not busy any more.
            f(unsafe { &mut *log })
        }))
    }

    /// Waits until the gate is open, and is busy then.
    #[cold]
    #[inline(never)]
    fn ask_again(&self) -> Result<(), Poisoned> {
        let mut backoff = Backoff::new();
        loop {
            // Dropped: what has been appended before is published again.
            drop(Leave(&self.slot.busy));
            // Relaxed: looks only.
            while self.slots.gate.load(Ordering::Relaxed) == CLOSED {
                pause(&mut backoff);
            }
            // Relaxed, and the barrier: as in `with`.
            self.slot.busy.store(true, Ordering::Relaxed);
            barrier::light();
            // Acquire: as in `with`.
            match self.slots.gate.load(Ordering::Acquire) {
                OPEN => return Ok(()),
                POISONED => {
                    drop(Leave(&self.slot.busy));
                    return Err(Poisoned);
                }
                _ => {}
            }
        }
    }
}

impl<Op> Drop for Appender<'_, Op> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `claim`.
        self.slot.claimed.store(false, Ordering::Release);
    }
}

/// Not busy any more, also where an operation's own code has panicked.
struct Leave<'a>(&'a AtomicBool);

impl Drop for Leave<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `with_all`; publishes what has been appended.
        self.0.store(false, Ordering::Release);
    }
}
