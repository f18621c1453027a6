//! The few fibres that a processor runs next: pushed and popped by it without an atomic
//! read-modify-write, and yet taken away by others where it is stuck.
//!
//! A processor that is stuck in one fibre must not keep others from running, but this happens
//! rarely, so those who take pay for it. The owner counts its pops in `head`, passes the light
//! barrier, and looks whether the lane is closed; a taker closes it, passes the heavy barrier,
//! and reads `head`. One of the two sees the other (see [`barrier`]): either the taker sees the
//! pop and leaves its item alone, or the owner sees that it must ask what is left for it.
//!
//! ```text
//!            take: CAS              read head, tail         store
//!   OPEN ───────────────► TAKING ───────────────────► TAKEN(from, to)
//!    ▲ ▲                   │ ▲                          │      │
//!    │ └── there is nothing ─┘ └────── take: CAS ─────────┘      │
//!    │                               (extends `to`)              │
//!    └─────── owner, at its next pop: CAS to TAKING, store ──────┘
//! ```
//! A taker always takes everything there is: from what the owner has not popped, to the tail.
//! The owner writes `head` and `tail` alone, so nothing of it is ever lost; when it finds the lane
//! closed it learns `from` and `to`, and goes on behind `to`. A lane that it has not opened again
//! yet can be taken from once more: what it has pushed meanwhile.
//!
//! **Proof sketch.** Let the owner pop item *h*: W(head = h+1); light; R(state). Let the taker:
//! W(TAKING); heavy; R(head), R(tail). (1) The owner reads OPEN: then the taker reads head > h, and
//! takes nothing at or before h. (2) The owner reads TAKING or TAKEN: it waits for TAKEN, whose
//! Release store shows it `from` and `to`. If from > h the taker has seen the pop and the item is the
//! owner's. Else from = h, and the item is the taker's, because from < to wherever it says TAKEN:
//! the owner has not popped behind h, because
//! every pop ends with such a look. (3) It reads OPEN while it waits: the taker has taken nothing,
//! and for the one behind it this is the look of (1). Slots are written again only behind OPEN, which the owner's
//! Acquire puts behind the taker's reads of them.
//!
//! Where the barrier is asymmetric the owner's side of it is no instruction; where it is not, OPEN has
//! another value, which sends the owner to its fence and to a second look.

use corelay_sync::facade::MODEL;
use corelay_sync::facade::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, load_own};
use corelay_sync::{Backoff, CachePadded, barrier};
use std::ptr::NonNull;

/// Fibres in a lane at most: as many as are claimed from the ring with one exchange.
pub(crate) const LANE: usize = if MODEL { 2 } else { 16 };

const OPEN: u32 = 0;
const TAKING: u32 = 1;
const TAKEN: u32 = 2;
/// As OPEN, where the owner must fence before it relies on that: the barrier is not asymmetric.
const OPEN_FENCED: u32 = 3;

/// How a lane is open: so the owner, which reads it anyway, need not ask what the barrier is.
fn open() -> u32 {
    if barrier::is_asymmetric() {
        OPEN
    } else {
        OPEN_FENCED
    }
}

pub(crate) struct Lane<T> {
    head: AtomicU64,
    tail: AtomicU64,
    slots: [AtomicPtr<T>; LANE],
    /// On lines of its own: the owner reads it with each pop.
    taken: CachePadded<Taken>,
}

struct Taken {
    state: AtomicU32,
    from: AtomicU64,
    to: AtomicU64,
}

impl<T> Lane<T> {
    pub(crate) fn new() -> Self {
        Self {
            head: AtomicU64::new(0),
            tail: AtomicU64::new(0),
            slots: std::array::from_fn(|_| AtomicPtr::default()),
            taken: CachePadded::new(Taken {
                state: AtomicU32::new(open()),
                from: AtomicU64::new(0),
                to: AtomicU64::new(0),
            }),
        }
    }

    /// How many more there is room for: none where somebody has closed it.
    ///
    /// # Safety
    /// Only the owner.
    #[inline]
    pub(crate) unsafe fn room(&self) -> usize {
        if self.is_closed() {
            return 0;
        }
        LANE - (load_own(&self.tail) - load_own(&self.head)) as usize
    }

    #[inline(always)]
    fn is_closed(&self) -> bool {
        // Relaxed: where it has just been closed, what is pushed can be taken too.
        !matches!(self.taken.state.load(Ordering::Relaxed), OPEN | OPEN_FENCED)
    }

    /// About how many items there are. Anybody.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        // Relaxed: a guess.
        let head = self.head.load(Ordering::Relaxed);
        let head = head.max(self.taken.to.load(Ordering::Relaxed));
        (self.tail.load(Ordering::Relaxed).saturating_sub(head)) as usize
    }

    /// Adds `item` behind the others; false where there are [`LANE`] already, or somebody has closed
    /// it.
    ///
    /// # Safety
    /// Only the owner.
    #[inline(always)]
    pub(crate) unsafe fn try_push(&self, item: NonNull<T>) -> bool {
        let tail = load_own(&self.tail);
        if tail - load_own(&self.head) == LANE as u64 || self.is_closed() {
            return false;
        }
        // Relaxed: published by the tail.
        self.slots[tail as usize % LANE].store(item.as_ptr(), Ordering::Relaxed);
        // Release: pairs with the Acquire in `take`; publishes the slot and the item.
        self.tail.store(tail + 1, Ordering::Release);
        true
    }

    /// Where the next item goes.
    ///
    /// # Safety
    /// Only the owner.
    #[inline]
    pub(crate) unsafe fn tail(&self) -> u64 {
        load_own(&self.tail)
    }

    /// Writes what may be pushed behind the others, up to that place, by
    /// [`push_staged`](Self::push_staged).
    ///
    /// # Safety
    /// Only the owner; there is [room](Self::room) from the [tail](Self::tail) to there.
    #[inline(always)]
    pub(crate) unsafe fn stage(&self, place: u64, item: *mut T) {
        // Relaxed: published by the tail.
        self.slots[place as usize % LANE].store(item, Ordering::Relaxed);
    }

    /// Adds what has been written, up to this tail.
    ///
    /// # Safety
    /// Only the owner; all up to there have been [written](Self::stage), and are its own.
    #[inline]
    pub(crate) unsafe fn push_staged(&self, tail: u64) {
        // Release: pairs with the Acquire in `take`; publishes the slots and the items.
        self.tail.store(tail, Ordering::Release);
    }

    /// Takes the first item; says so where others have taken from the lane. `look` gets the two behind
    /// it, where there are any: they need not be there any more, and the second never; not to be used.
    ///
    /// # Safety
    /// Only the owner.
    #[inline(always)]
    pub(crate) unsafe fn pop(
        &self,
        was_taken: impl FnOnce(),
        look: impl FnOnce([*const T; 2]),
    ) -> Option<NonNull<T>> {
        let (head, tail) = (load_own(&self.head), load_own(&self.tail));
        if head == tail {
            return None;
        }
        // Relaxed: a taker that misses it is seen below.
        self.head.store(head + 1, Ordering::Relaxed);
        // Pairs with the heavy barrier in `take`, where the state says OPEN.
        barrier::compiler_only();
        // Relaxed: the barrier orders it; what a taker has written is read behind an Acquire.
        if self.taken.state.load(Ordering::Relaxed) != OPEN && !self.has_popped(head, was_taken) {
            return None;
        }
        if head + 1 != tail {
            look([
                self.at(head + 1).cast_const(),
                self.at(head + 2).cast_const(),
            ]);
        }
        NonNull::new(self.at(head))
    }

    /// What lies there, or has lain, or nothing: not to be used.
    #[inline(always)]
    pub(crate) fn at(&self, position: u64) -> *mut T {
        // Relaxed: the owner's own store.
        self.slots[position as usize % LANE].load(Ordering::Relaxed)
    }

    /// True where the item at `popped` is the owner's; the state was not OPEN.
    #[cold]
    #[inline(never)]
    fn has_popped(&self, popped: u64, was_taken: impl FnOnce()) -> bool {
        // Pairs with the heavy barrier in `take`.
        barrier::light();
        // Relaxed: as in `pop`.
        if self.taken.state.load(Ordering::Relaxed) == OPEN_FENCED {
            return true;
        }
        was_taken();
        self.reopen(popped)
    }

    /// Goes on behind what has been taken; true where the item at `popped` is still the owner's.
    #[cold]
    fn reopen(&self, popped: u64) -> bool {
        let mut backoff = Backoff::new();
        loop {
            // Acquire: pairs with the Release in `take`: shows `from` and `to`, and that the
            // slots have been read. Taken like a taker does, so that none extends `to` meanwhile.
            match self.taken.state.compare_exchange(
                TAKEN,
                TAKING,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => break,
                // There was nothing when the taker looked; had another one come since, it has
                // seen the pop.
                Err(OPEN | OPEN_FENCED) => return true,
                Err(_) => backoff.wait(),
            }
        }
        // Relaxed: ordered by the state.
        let from = self.taken.from.load(Ordering::Relaxed);
        let to = self.taken.to.load(Ordering::Relaxed);
        // Relaxed: published by the state, to the next taker.
        self.head.store(to.max(popped + 1), Ordering::Relaxed);
        // Release: pairs with the Acquire in `take`; publishes the head.
        self.taken.state.store(open(), Ordering::Release);
        from > popped
    }

    /// Takes all items away from an owner that is stuck, and passes them to `give`, first to
    /// last; false where there was none, or somebody else is taking. Costs a heavy barrier.
    pub(crate) fn take(&self, mut give: impl FnMut(NonNull<T>)) -> bool {
        // Relaxed: checked by the exchange.
        let state = self.taken.state.load(Ordering::Relaxed);
        if state == TAKING || self.len() == 0 {
            return false;
        }
        // Acquire: pairs with the Release of the owner (its head) or of the taker before (`to`).
        if self
            .taken
            .state
            .compare_exchange(state, TAKING, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            return false;
        }
        let was_open = state == open();
        let from = if was_open {
            // Pairs with the light barrier in `pop`.
            barrier::heavy();
            // Relaxed: ordered by the barrier.
            let head = self.head.load(Ordering::Relaxed);
            // Relaxed: published by the state.
            self.taken.from.store(head, Ordering::Relaxed);
            head
        } else {
            // The owner has not come back since: `from` stays.
            // Relaxed: ordered by the state.
            self.taken.to.load(Ordering::Relaxed)
        };
        // Acquire: pairs with the Release in `push`: shows the slots and the items.
        let to = self.tail.load(Ordering::Acquire);
        let to = to.max(from);
        for at in from..to {
            // Relaxed: shown by the tail.
            let item = self.slots[at as usize % LANE].load(Ordering::Relaxed);
            if let Some(item) = NonNull::new(item) {
                give(item);
            }
        }
        // Relaxed: published by the state.
        self.taken.to.store(to, Ordering::Relaxed);
        // Where it has nothing, the owner may be behind it with one that was pushed since; and one
        // that has popped its last would not come to open it again.
        let nothing = was_open && from == to;
        // Release: pairs with the Acquire in `reopen`.
        let next = if nothing { open() } else { TAKEN };
        self.taken.state.store(next, Ordering::Release);
        from < to
    }
}
