//! The ring that one thread's events lie in: the last ones, and a count of all.
//!
//! One thread writes and never waits; anybody reads, whenever he likes, and gets no event that
//! is half one and half another.
//!
//! ```text
//!   event n lies in place n % places            head: events recorded so far
//!
//!   writer of event n                           reader
//!     fence (Release)                             head (Acquire)          = h
//!     words of place n % places (Relaxed)         words of all places (Relaxed)
//!     head := n + 1 (Release)                     fence (Acquire)
//!                                                 head (Relaxed)          = h'
//!                                                 keeps h' + 1 - places .. h
//! ```
//! **No event is torn.** *Not too new:* the reader keeps events before `h` only, whose words
//! were written before `head` became `h`, which it has acquired. *Not too old:* where a word
//! that it has read belongs to a later event `n` in the same place, the writer's fence before
//! that word and the reader's fence behind it make the reader see what the writer did before:
//! `head` was `n` at least, so `h' >= n`, and the event looked for, `n - places` or older, lies
//! before `h' + 1 - places`. It is left out, and so is one that is whole if the next event was
//! about to take its place: of `places` events the reader may count on one less.
//!
//! Every word is an atomic, so that a torn event would be a wrong picture and no undefined
//! behaviour; and every mark that lies in a ring is a whole pointer to a `static`.

use super::mark::Mark;
use crate::CachePadded;
use crate::facade::atomic::{AtomicPtr, AtomicU64, Ordering, fence, load_own};
use crate::facade::sync::Arc;
use std::ptr;

/// Where an end would stand: the event is an instant.
pub(super) const INSTANT: u64 = u64::MAX;

/// An event as it lies in a ring: stamps are ticks.
#[derive(Clone, Copy, Debug)]
#[doc(hidden)]
pub struct Raw {
    pub mark: &'static Mark,
    pub begin: u64,
    pub end: u64,
    pub args: [u64; 2],
}

/// A place in a ring.
#[derive(Debug)]
struct EventSlot {
    mark: AtomicPtr<Mark>,
    /// Begin, end, and the two numbers.
    words: [AtomicU64; 4],
}

impl EventSlot {
    fn new() -> Self {
        Self {
            mark: AtomicPtr::new(ptr::null_mut()),
            words: [0; 4].map(AtomicU64::new),
        }
    }
}

/// A ring as its readers know it.
#[derive(Debug)]
#[doc(hidden)]
pub struct Ring {
    /// Events recorded so far. On a line of its own: a reader that looks does not take the first
    /// events with it.
    head: CachePadded<AtomicU64>,
    /// As many as a power of two.
    slots: Box<[EventSlot]>,
}

/// A ring as the one thread knows it that writes.
#[derive(Debug)]
#[doc(hidden)]
pub struct Writer {
    ring: Arc<Ring>,
}

/// What a reader has found.
#[derive(Debug)]
#[doc(hidden)]
pub struct Found {
    /// Events recorded when it began to read.
    pub recorded: u64,
    /// The last of them, the oldest first.
    pub events: Vec<Raw>,
}

impl Writer {
    /// A ring for the last `events` events or more, of the thread that keeps the writer.
    pub fn new(events: usize) -> Self {
        let slots = (0..slots(events)).map(|_| EventSlot::new()).collect();
        Self {
            ring: Arc::new(Ring {
                head: CachePadded::new(AtomicU64::new(0)),
                slots,
            }),
        }
    }

    /// The ring, for readers.
    pub fn ring(&self) -> &Arc<Ring> {
        &self.ring
    }

    /// Records an event.
    pub fn record(&mut self, event: Raw) {
        self.ring.record(|| event);
    }
}

/// Places for so many events, and the one that the next event takes: a power of two, which
/// spares a division, or a second number to be kept.
fn slots(events: usize) -> usize {
    events.max(1).saturating_add(1).next_power_of_two()
}

impl Ring {
    /// Memory of a ring for the last `events` events.
    pub(super) fn bytes(events: usize) -> usize {
        slots(events).saturating_mul(size_of::<EventSlot>())
    }

    /// Records an event in the place of the oldest. Its place is known before it is made, so that
    /// nothing has to be looked up behind its stamp. Only on the thread that keeps the writer.
    #[inline(always)]
    pub(super) fn record(&self, event: impl FnOnce() -> Raw) {
        let recorded = load_own(&self.head);
        let slot = &self.slots[recorded as usize & (self.slots.len() - 1)];
        let Raw {
            mark,
            begin,
            end,
            args: [first, second],
        } = event();
        // Release: pairs with the Acquire fence of `read`. Whoever reads a word of this event sees
        // that its predecessor has been recorded, and so which place is taken.
        fence(Ordering::Release);
        // Relaxed, these five: published by the head.
        slot.mark
            .store(ptr::from_ref(mark).cast_mut(), Ordering::Relaxed);
        for (word, value) in slot.words.iter().zip([begin, end, first, second]) {
            word.store(value, Ordering::Relaxed);
        }
        // Release: pairs with the Acquire of `read`; publishes the event.
        self.head.store(recorded + 1, Ordering::Release);
    }

    /// The last events there are. On any thread, also while the writer writes.
    pub fn read(&self) -> Found {
        let slots = self.slots.len() as u64;
        // Acquire: pairs with the Release of `record`; what was recorded is seen.
        let recorded = self.head.load(Ordering::Acquire);
        let first = recorded.saturating_sub(slots);
        let read: Vec<_> = (first..recorded).map(|n| self.slot(n)).collect();
        // Acquire: pairs with the fence of `record`; see the module.
        fence(Ordering::Acquire);
        // Relaxed: ordered by the fence.
        let now = self.head.load(Ordering::Relaxed);
        let overwritten = (now + 1).saturating_sub(slots).saturating_sub(first);
        let events = read.into_iter().skip(overwritten as usize).flatten();
        Found {
            recorded,
            events: events.collect(),
        }
    }

    /// What lies in the place of event `n`: perhaps half of one event and half of another.
    fn slot(&self, n: u64) -> Option<Raw> {
        let slot = &self.slots[(n % self.slots.len() as u64) as usize];
        // Relaxed, these five: `read` finds out whether they belong together.
        let mark = slot.mark.load(Ordering::Relaxed);
        let [begin, end, first, second] = &slot.words;
        let [begin, end, first, second] =
            [begin, end, first, second].map(|word| word.load(Ordering::Relaxed));
        // SAFETY: null, or from a reference to a static: `record` stores nothing else.
        let mark = unsafe { mark.cast_const().as_ref() }?;
        Some(Raw {
            mark,
            begin,
            end,
            args: [first, second],
        })
    }
}
