//! Room for requests: in the ring, in the window, in the queue of callbacks.
//!
//! The next request goes to `position`; everything before `free_from` may be used again. A request
//! is done with when it has been executed and its callback, if it has one, has been taken out.
//!
//! **Limit.** The fast path ends at `limit`: at the next publication, at the window or at the end
//! of the room, whichever comes first. Requests with callbacks have a limit of their own, within
//! that one: up to it there is room in the queue for [usual](crate::request::callbacks) ones, so
//! that they do not look either. Everything else, reaping and waiting too, happens in
//! [`make_room`](Client::make_room).

use crate::client::mark;
use crate::client::{Client, Patience};
use crate::context::coroutine::refuse_to_wait;
use crate::context::events::WaitForRoom;
use crate::context::member;
use crate::request::callbacks::USUAL;
use crate::request::ring_growth;
use crate::wire::ring::{GROWTH_UNITS, Rings, SPARE};
use crate::wire::word::{Position, is_past};
use corelay_sync::prefetch_write;

/// The most requests between two publications of a busy client. It matters in windows of more than
/// three times as many requests. In a window of 1,024, 200 requests at a time were a tenth faster,
/// but they are answered later.
const PUBLISH_EVERY: u32 = 128;

/// The most requests between two publications of a client with that window: a third of the window,
/// so that one part is being written while one travels and one is executed (halves and quarters
/// were slower). It is at least 2, even in the smallest windows, and at most [`PUBLISH_EVERY`].
pub(crate) fn largest_batch(window: u32) -> u32 {
    PUBLISH_EVERY.min(window / 3).max(2)
}

/// The outcome of a search for room.
pub(super) enum Room {
    /// There is room in the ring: the caller writes the request there.
    Here,
    /// There is no room, and none can be made inside a callback: the caller sends the request as a
    /// mail call.
    NotInCallback,
    /// There is no room, and the caller did not want to wait: the request is refused.
    None,
}

impl Client {
    /// The position before which every request is done with, so that its place in the rings may be
    /// used again.
    fn free_from(&self) -> Position {
        let tail = self.reaper.tail();
        match self.reaper.oldest_callback() {
            Some(at) if !is_past(at.cursor(), tail.cursor()) => at,
            _ => tail,
        }
    }

    /// The number of units of the request ring that are in use, by requests that are not done with.
    fn used(&self) -> usize {
        let at = self.position().cursor();
        at.wrapping_sub(self.free_from().cursor()) as usize
    }

    /// The number of requests that are not done with, going by the tail as last seen, including a
    /// single request in the mail line.
    pub(super) fn in_flight(&self) -> u32 {
        let in_ring = self
            .position()
            .count()
            .wrapping_sub(self.free_from().count());
        in_ring + u32::from(self.single_request.is_pending())
    }

    /// Whether the trustee is this thread's own.
    #[inline(always)]
    pub(super) fn is_own(&self) -> bool {
        self.own
    }

    /// Whether a mail call of this client is under way. Requests can be made meanwhile, because a
    /// member serves while it waits, and its closures may make requests.
    pub(super) fn is_calling(&self) -> bool {
        self.calling.get()
    }

    /// Whether nothing is in flight, going by the tail as last seen.
    #[inline(always)]
    pub(crate) fn is_quiet(&self) -> bool {
        self.reaper.tail() == self.position()
            && self.reaper.callbacks.is_empty(self.reaper.reaped())
            && !self.single_request.is_pending()
            && !self.calling.get()
    }

    /// Whether the client makes its requests so far apart that each is published at once.
    #[inline(always)]
    pub(super) fn is_slow(&self) -> bool {
        self.publish_every.get() == 1
    }

    /// Whether there is room for a request of `units`, and for so many others `ahead` of it. Grows the
    /// rings for it if that is allowed.
    fn has_room(&self, units: usize, ahead: u32) -> bool {
        loop {
            if self.in_flight() + ahead >= self.window || !self.reaper.callbacks.has_room(0) {
                return false;
            }
            let used = self.used();
            let have = self.requests.get().units() as usize;
            if used + units + SPARE <= have {
                return true;
            }
            // Rings do not grow for the last eighth of the window: twice the memory would be cycled
            // through the caches for it. But rings that are too small for the request even when
            // empty grow beyond any limit: a bound on memory must not become a hang.
            let worth = self.in_flight() < self.window - self.window / 8;
            let allowed = worth && have < self.max_units as usize;
            let too_small = units + SPARE > have;
            if used + GROWTH_UNITS + 1 > have || !(allowed || too_small) {
                return false;
            }
            self.grow();
        }
    }

    /// Makes room after the fast path has ended: reaps, publishes, grows, waits; sets the limits
    /// anew. Panics of callbacks are held until the request has been accepted.
    pub(super) fn make_room(&self, units: usize, has_callback: bool, patience: Patience) -> Room {
        let ahead = patience.ahead();
        let made = self.publish_every.get();
        self.publish_every
            .set(self.pace.next(made, largest_batch(self.window)));
        // Room for the callbacks of the next batch.
        let callbacks = if has_callback {
            self.publish_every.get()
        } else {
            0
        };
        if !patience.is_trustees() {
            member::has_made(made, self.own);
        }
        self.stop_fast_path();
        if self.thread.in_callback() || patience.is_trustees() {
            self.reaper.look(self.channel());
            if !self.thread.in_callback() {
                // A trustee's requests have no other occasion to.
                self.move_callbacks(callbacks);
            }
            if !self.has_room(units, ahead) {
                self.observe_failed_push();
                return match patience {
                    Patience::Try | Patience::Inside => Room::None,
                    Patience::Wait | Patience::Hold | Patience::Park { .. } => Room::NotInCallback,
                    Patience::Last => {
                        self.exceed_window(units);
                        Room::Here
                    }
                };
            }
        } else {
            self.reap();
            self.move_callbacks(callbacks);
            let mut has_room = self.has_room(units, ahead);
            if !has_room {
                self.observe_failed_push();
            }
            let mut waiting = WaitForRoom::default();
            loop {
                if has_room {
                    if !waiting.end(&self.trustee) {
                        break;
                    }
                    // The subscriber that was told may have taken the room.
                } else {
                    self.flush();
                    if matches!(patience, Patience::Try | Patience::Park { .. }) {
                        return Room::None;
                    }
                    refuse_to_wait("a wait for room");
                    waiting.begin(&self.trustee);
                    self.await_progress(&mark::ROOM);
                }
                self.reap();
                self.move_callbacks(callbacks);
                has_room = self.has_room(units, ahead);
            }
        }
        self.set_limit(units);
        Room::Here
    }

    /// Makes room for a request of `units` although the window is full, by growing the rings and
    /// the queue of callbacks. Not called while callbacks run.
    fn exceed_window(&self, units: usize) {
        self.move_callbacks(0);
        while self.used() + units + SPARE > self.requests.get().units() as usize {
            self.grow();
            self.move_callbacks(0);
        }
    }

    /// Makes room in the queue for the usual callbacks of so many requests, and for one of any
    /// length. The entries move to the front or to a larger queue if need be.
    fn move_callbacks(&self, requests: u32) {
        let before = self.reaper.callbacks.at(0);
        let moved = self
            .reaper
            .callbacks
            .make_room(self.reaper.reaped(), requests);
        self.reaper.callbacks_moved(moved);
        if self.reaper.callbacks.at(0) != before {
            self.tell_queues();
        }
    }

    /// Ends the fast path: the next request calls [`make_room`](Self::make_room).
    pub(crate) fn stop_fast_path(&self) {
        self.limit.set(self.position());
        self.callback_limit.set(self.position());
    }

    /// Whether the fast path ends before the request that ends at `next`.
    #[inline(always)]
    pub(super) fn is_limited(&self, next: Position) -> bool {
        next.exceeds(self.limit.get())
    }

    /// Whether the fast path ends before the request that ends at `next`, if its callback takes
    /// `entry` units in the queue.
    #[inline(always)]
    pub(super) fn is_callback_limited(&self, next: Position, entry: usize) -> bool {
        let limit = self.callback_limit.get();
        // Later requests up to the limit are to find room for their callbacks as well.
        next.exceeds(limit)
            || entry > USUAL as usize
                && !self
                    .reaper
                    .callbacks
                    .has_room(limit.count().wrapping_sub(next.count()))
    }

    /// Sets the two limits of the fast path, when room has been made. The fast path ends when it is
    /// time to publish, or when the window, the ring or the queue of callbacks might be full.
    /// `units` is the size of the next request: lines for as many requests of that size as fit the
    /// batch are prefetched. The caller has made room for a callback of any length.
    fn set_limit(&self, units: usize) {
        let (free, at) = (self.free_from(), self.position());
        let mut requests = (self.window - self.in_flight()).min(self.publish_every.get());
        if self.waiters().is_any() {
            // The next request looks whether the room belongs to a task that waits.
            requests = 1;
        }
        let left =
            self.requests.get().units() - SPARE as u32 - at.cursor().wrapping_sub(free.cursor());
        let limit = |requests: u32| at.after(u64::from(left) << 32 | u64::from(requests));
        self.limit.set(limit(requests));
        // The next request may have any callback.
        let callbacks = self.reaper.callbacks.room() + 1;
        self.callback_limit.set(limit(requests.min(callbacks)));
        let ahead = (units as u32 * requests).min(left);
        // Fetches the next batch's lines back from the trustee, all at once.
        for unit in (8..=ahead).step_by(8) {
            prefetch_write(self.requests.get().at(at.cursor().wrapping_add(unit)));
        }
        self.pace.restart();
    }

    /// Replaces the rings by rings of twice the size. A last record in the old request ring tells
    /// the trustee where the new rings lie, and an entry in the queue of callbacks tells the
    /// client's own reaping.
    fn grow(&self) {
        let larger = Box::into_raw(Rings::new(self.requests.get().units() as usize * 2));
        let at = self.position();
        self.rings().touch_request(at.cursor(), GROWTH_UNITS);
        // SAFETY: SPARE units are kept free for this record.
        unsafe { ring_growth::write_request(self.requests.get().at(at.cursor()), larger) };
        let entry = self.reaper.callbacks.push(ring_growth::CALLBACK_UNITS);
        // SAFETY: `has_room` has found room in the queue for an entry of any length.
        unsafe { ring_growth::write_callback(entry, at, larger) };
        self.reaper.add(larger);
        self.rings.set(larger);
        self.requests.set(self.rings().requests);
        self.tell_queues();
        if !self.advance(self.head(), at.after(ring_growth::STEP)) {
            // Closed or not: if the record will not be run, the request that follows will be
            // refused.
            self.rouse_or_learn_that_it_is_gone();
        }
        // Limits that a callback has set meanwhile do not count the record.
        self.stop_fast_path();
    }
}
