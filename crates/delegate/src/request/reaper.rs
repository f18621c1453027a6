//! Where a client stands among its answers and its callbacks.

use super::callbacks::Callbacks;
use crate::wire::Channel;
use crate::wire::ring::{Rings, View};
use crate::wire::word::{Position, is_past};
use corelay_sync::facade::atomic::Ordering;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// Where a client stands in its answer ring and in its callback queue, in units.
///
/// ```text
/// 63             32 31               0
/// +----------------+-----------------+
/// | answer, wraps  | callback offset |
/// +----------------+-----------------+
/// ```
/// The callback offset never overflows into the other: it ends with the queue.
#[derive(Clone, Copy)]
pub(crate) struct Reaped(u64);

impl Reaped {
    /// Behind an entry of so many units in the callback queue and in the answer ring.
    #[inline(always)]
    pub(crate) fn after(self, callback_units: usize, answer_units: usize) -> Self {
        Self(
            self.0
                .wrapping_add(((answer_units as u64) << 32) | callback_units as u64),
        )
    }

    #[inline(always)]
    pub(crate) fn callback(self) -> u32 {
        self.0 as u32
    }

    #[inline(always)]
    pub(crate) fn answer(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// What reaping touches.
pub(crate) struct Reaper {
    pub(crate) callbacks: Callbacks,
    reaped: Cell<Reaped>,
    /// The answer ring that the oldest unreaped request's answer lies in.
    pub(crate) answers: Cell<View>,
    /// The rings of the oldest unreaped request.
    rings: Cell<*mut Rings>,
    /// The tail as last seen.
    tail: Cell<Position>,
    /// Faults that cannot concern an unreaped request.
    pub(crate) faults_seen: Cell<u32>,
    /// Faults that a barrier has reported.
    pub(crate) faults_reported: Cell<u32>,
    /// All rings from the oldest unreaped request's to the newest.
    all: RefCell<VecDeque<*mut Rings>>,
    /// The trustee has ended, and the tail has been looked at since.
    pub(crate) gone: Cell<bool>,
}

impl Reaper {
    pub(crate) fn new(rings: Box<Rings>, origin: Position) -> Self {
        let answers = rings.answers;
        let rings = Box::into_raw(rings);
        Self {
            callbacks: Callbacks::new(),
            reaped: Cell::new(Reaped(0)),
            answers: Cell::new(answers),
            rings: Cell::new(rings),
            tail: Cell::new(origin),
            faults_seen: Cell::new(0),
            faults_reported: Cell::new(0),
            all: RefCell::new(VecDeque::from([rings])),
            gone: Cell::new(false),
        }
    }

    #[inline(always)]
    pub(crate) fn rings(&self) -> &Rings {
        // SAFETY: freed only by `jump` out of them, or with the client.
        unsafe { &*self.rings.get() }
    }

    /// Where the answer at `cursor` lies.
    #[inline(always)]
    pub(crate) fn answer(&self, cursor: u32, units: usize) -> *mut u64 {
        self.rings().touch_answer(cursor, units);
        self.answers.get().at(cursor)
    }

    #[inline(always)]
    pub(crate) fn reaped(&self) -> Reaped {
        self.reaped.get()
    }

    #[inline(always)]
    pub(crate) fn set_reaped(&self, reaped: Reaped) {
        self.reaped.set(reaped);
    }

    /// The callbacks have moved forward by `units`.
    pub(crate) fn callbacks_moved(&self, units: u32) {
        self.reaped
            .set(Reaped(self.reaped.get().0 - u64::from(units)));
    }

    /// The tail as last seen.
    pub(crate) fn tail(&self) -> Position {
        self.tail.get()
    }

    /// Looks at the tail.
    pub(crate) fn look(&self, channel: &Channel) -> Position {
        // Acquire: pairs with the Release of `Lane::run_ring`; publishes the answers, and
        // hands the request records back.
        let tail = Position(channel.tail.position.load(Ordering::Acquire));
        self.tail.set(tail);
        tail
    }

    /// The rings that the next request goes into.
    pub(crate) fn newest(&self) -> *mut Rings {
        *self.all.borrow().back().expect("there is always one")
    }

    /// Larger rings follow.
    pub(crate) fn add(&self, larger: *mut Rings) {
        self.all.borrow_mut().push_back(larger);
    }

    /// The oldest request has been a jump: leaves the rings behind.
    pub(crate) fn move_to(&self, larger: *mut Rings) {
        let left = self.all.borrow_mut().pop_front();
        debug_assert_eq!(left, Some(self.rings.get()));
        self.rings.set(larger);
        self.answers.set(self.rings().answers);
        // SAFETY: the trustee has run the jump, and everything in these rings is reaped.
        drop(left.map(|rings| unsafe { Box::from_raw(rings) }));
    }

    /// Frees all rings. Nothing is in flight any more.
    pub(crate) fn free_rings(&self) {
        for rings in self.all.borrow_mut().drain(..) {
            // SAFETY: by `Box::into_raw`, each once; nobody uses them any more.
            drop(unsafe { Box::from_raw(rings) });
        }
    }

    /// True where an entry begins at `reaped` whose request lies before `tail`.
    #[inline(always)]
    pub(crate) fn is_reapable(&self, reaped: Reaped, tail: Position) -> bool {
        if self.callbacks.is_empty(reaped) {
            return false;
        }
        // SAFETY: an entry begins here, because the queue is not empty.
        is_past(
            tail.cursor(),
            unsafe { self.callbacks.position(reaped) }.cursor(),
        )
    }

    /// Position of the oldest request whose callback has not been taken out.
    pub(crate) fn oldest_callback(&self) -> Option<Position> {
        let reaped = self.reaped();
        if self.callbacks.is_empty(reaped) {
            return None;
        }
        // SAFETY: an entry begins here, because the queue is not empty.
        Some(unsafe { self.callbacks.position(reaped) })
    }
}
