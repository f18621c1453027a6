//! The state by which a client reaps: its place among its answers and its callbacks, and its rings.

use super::callbacks::Callbacks;
use crate::wire::Channel;
use crate::wire::ring::{Rings, View};
use crate::wire::word::{Position, is_past};
use corelay_sync::facade::atomic::Ordering;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// A client's place in its answer ring and in its callback queue, in units.
///
/// ```text
/// 63             32 31               0
/// +----------------+-----------------+
/// | answer, wraps  | callback offset |
/// +----------------+-----------------+
/// ```
/// The callback offset, in the lower half, never overflows into the upper: it ends with the queue.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Reaped(u64);

impl Reaped {
    /// The place after a request whose entry takes so many units in the callback queue, and whose
    /// answer takes so many in the answer ring.
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

/// The queues and cursors that reaping uses.
pub(crate) struct Reaper {
    pub(crate) callbacks: Callbacks,
    reaped: Cell<Reaped>,
    /// The answer ring that holds the answer of the oldest unreaped request.
    pub(crate) answers: Cell<View>,
    /// The rings of the oldest unreaped request.
    rings: Cell<*mut Rings>,
    /// The tail as this client has last seen it: everything before it has been executed.
    tail: Cell<Position>,
    /// The trustee's count of faults up to which none concerns a request that is still to be
    /// reaped.
    pub(crate) faults_seen: Cell<u32>,
    /// The trustee's count of faults up to which a barrier has reported them.
    pub(crate) faults_reported: Cell<u32>,
    /// All rings from the oldest unreaped request's to the newest.
    all: RefCell<VecDeque<*mut Rings>>,
    /// Whether the trustee has ended and the tail has been looked at since.
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
        // SAFETY: rings are freed by `move_to`, which sets the next ones, or with the client.
        unsafe { &*self.rings.get() }
    }

    /// The address of the answer at `cursor`.
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

    /// Notes that the entries of the callback queue have moved `units` towards its front.
    pub(crate) fn callbacks_moved(&self, units: u32) {
        self.reaped
            .set(Reaped(self.reaped.get().0 - u64::from(units)));
    }

    /// The tail as [`look`](Self::look) has last seen it.
    pub(crate) fn tail(&self) -> Position {
        self.tail.get()
    }

    /// Looks at the tail that the trustee has published, keeps it as the tail last seen, and
    /// returns it.
    pub(crate) fn look(&self, channel: &Channel) -> Position {
        // Acquire: pairs with the Release of `Lane::publish_tail`; publishes the answers, and hands
        // the request records back.
        let tail = Position(channel.tail.position.load(Ordering::Acquire));
        self.tail.set(tail);
        tail
    }

    /// The rings that the next request goes into.
    pub(crate) fn newest(&self) -> *mut Rings {
        *self.all.borrow().back().expect("there is always one")
    }

    /// Adds larger rings, which later requests go into.
    pub(crate) fn add(&self, larger: *mut Rings) {
        self.all.borrow_mut().push_back(larger);
    }

    /// Moves the reaping to the `larger` rings, since the trustee has moved there, too, at the
    /// record that is the oldest now. Frees the rings before.
    pub(crate) fn move_to(&self, larger: *mut Rings) {
        let left = self.all.borrow_mut().pop_front();
        debug_assert_eq!(left, Some(self.rings.get()));
        self.rings.set(larger);
        self.answers.set(self.rings().answers);
        // SAFETY: the trustee has left these rings by the same record, and everything in them is
        // reaped. `Box::into_raw` made the address.
        drop(left.map(|rings| unsafe { Box::from_raw(rings) }));
    }

    /// Frees all rings. Nothing is in flight any more.
    pub(crate) fn free_rings(&self) {
        for rings in self.all.borrow_mut().drain(..) {
            // SAFETY: `Box::into_raw` made each address; nothing is in flight, so nobody uses the
            // rings.
            drop(unsafe { Box::from_raw(rings) });
        }
    }

    /// Whether an entry begins at `reaped` whose request lies before `tail`.
    #[inline(always)]
    pub(crate) fn is_reapable(&self, reaped: Reaped, tail: Position) -> bool {
        if self.callbacks.is_empty(reaped) {
            return false;
        }
        // SAFETY: the queue is not empty, so an entry begins here.
        is_past(
            tail.cursor(),
            unsafe { self.callbacks.position(reaped) }.cursor(),
        )
    }

    /// The position of the oldest request whose callback has not been taken out.
    pub(crate) fn oldest_callback(&self) -> Option<Position> {
        let reaped = self.reaped();
        if self.callbacks.is_empty(reaped) {
            return None;
        }
        // SAFETY: the queue is not empty, so an entry begins here.
        Some(unsafe { self.callbacks.position(reaped) })
    }
}
