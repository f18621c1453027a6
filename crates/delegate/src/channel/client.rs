//! The client's side of a channel: issuing. `reap.rs` has the rest.
//!
//! **Room.** The client stands at `position`; everything before `free_from` may be used
//! again. A request is done with when it has been executed and, if it has a callback, that
//! has been taken out.
//!
//! **Limits.** `limit_count` and `limit_cursor` are where the fast path ends: at the next
//! publication, at the window or at the end of the room, whichever comes first. Everything
//! else, reaping and waiting too, happens in `make_room`.

use super::pace::Pace;
use super::reap::Reaper;
use super::request::{Call, Callback, Post, Then};
use super::ring::{FIRST_UNITS, JUMP_UNITS, Rings, SPARE};
use super::word::{Mail, Position, is_past, step};
use super::{Channel, defer, jump};
use crate::object::Header;
use crate::thread::ThreadState;
use crate::trustee::{AWAKE, Shared};
use corelay_sync::facade::atomic::Ordering;
use corelay_sync::facade::sync::Arc;
use corelay_sync::facade::{MODEL, hint};
use corelay_sync::{Backoff, barrier, prefetch_write};
use std::any::Any;
use std::cell::Cell;
use std::rc::Rc;

/// Requests between two publications of a busy client. Between 32 and 128 the figures of
/// the reference machine hardly differ.
const PUBLISH_EVERY: u32 = 64;

/// A request was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// No room, and the caller would not wait or cannot.
    Full,
    /// The trustee has been shut down.
    Closed,
}

/// What a request does when there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Wait for room; inside a callback, queue.
    Wait,
    /// Give up.
    Try,
}

enum Room {
    /// Write the request; publish the mail behind it.
    Here,
    /// In a callback, and there is none: queue.
    Queue,
    /// There is none.
    None,
}

/// A client's half of a channel. It stays on its thread.
pub(crate) struct Client {
    // What every request touches, together.
    position: Cell<Position>,
    limit_count: Cell<u32>,
    limit_cursor: Cell<u32>,
    rings: Cell<*mut Rings>,
    /// Where the next entry of the callback ring goes.
    callback_end: Cell<u32>,
    channel: *const Channel,
    pub(crate) trustee: Arc<Shared>,

    pub(super) reaper: Reaper,

    mail: Cell<Mail>,
    publish_every: Cell<u32>,
    pace: Pace,
    window: u32,
    max_units: u32,
    pub(crate) thread: Rc<ThreadState>,
    /// Requests of callbacks that wait in the thread's queue.
    pub(crate) deferred: Cell<u32>,
    /// The trustee had ended before the channel was announced.
    never_announced: Cell<bool>,
    owned: Arc<Channel>,
}

impl Client {
    /// A channel to `trustee`, announced to it; `None` where it has been shut down.
    pub(crate) fn connect(trustee: &Arc<Shared>, thread: &Rc<ThreadState>) -> Option<Self> {
        let rings = Box::into_raw(Rings::new(FIRST_UNITS));
        let origin = trustee.settings.origin;
        let channel = Arc::new(Channel::new(rings, origin));
        let client = Self {
            position: Cell::new(origin),
            limit_count: Cell::new(origin.count()),
            limit_cursor: Cell::new(origin.cursor()),
            rings: Cell::new(rings),
            callback_end: Cell::new(0),
            channel: Arc::as_ptr(&channel),
            trustee: Arc::clone(trustee),
            reaper: Reaper::new(rings, origin),
            mail: Cell::new(Mail::new(origin.cursor(), 0)),
            publish_every: Cell::new(1),
            pace: Pace::default(),
            window: trustee.settings.window,
            max_units: trustee.settings.ring_units,
            thread: Rc::clone(thread),
            deferred: Cell::new(0),
            never_announced: Cell::new(false),
            owned: channel,
        };
        // The trustee gets a count of its own, and gives it back at `detach`.
        let announced = Arc::into_raw(Arc::clone(&client.owned));
        // SAFETY: alive by that count.
        let node = unsafe { &raw const (*announced).register };
        // SAFETY: a node of its own, pushed once.
        if unsafe { trustee.inbox.push(node) } {
            trustee.rouse();
            Some(client)
        } else {
            // SAFETY: the count from above, which nobody has taken over.
            drop(unsafe { Arc::from_raw(announced) });
            client.reaper.gone.set(true);
            client.never_announced.set(true);
            None
        }
    }

    #[inline(always)]
    pub(super) fn channel(&self) -> &Channel {
        // SAFETY: `owned` keeps it.
        unsafe { &*self.channel }
    }

    #[inline(always)]
    fn rings(&self) -> &Rings {
        // SAFETY: the newest rings; freed only with the client.
        unsafe { &*self.rings.get() }
    }

    pub(super) fn position(&self) -> Position {
        self.position.get()
    }

    #[inline(always)]
    pub(super) fn callback_end(&self) -> u32 {
        self.callback_end.get()
    }

    // ---- requests ----

    /// Asks for `f`; `then` gets its answer.
    ///
    /// # Safety
    /// `object` is an `Object<T>` of this client's trustee and alive while the call lasts.
    /// If `F`, `R` or `C` borrow, the caller does not leave what they borrow before the
    /// request has been reaped.
    #[inline(always)]
    pub(crate) unsafe fn issue<T, F, R, C>(
        &self,
        object: *mut Header,
        f: F,
        then: C,
        patience: Patience,
    ) -> Result<(), (Refusal, F, C)>
    where
        F: FnOnce(&mut T) -> R,
        C: FnOnce(R),
    {
        let units = Then::<T, F, R>::UNITS;
        let mut publish = false;
        if self.is_limited(units) {
            match self.make_room(units, patience) {
                Room::Here => publish = true,
                Room::None => return Err((Refusal::Full, f, then)),
                Room::Queue => {
                    // SAFETY: the caller's duties go over to the deferred request.
                    unsafe { defer::issue(self, object, f, then) };
                    return Ok(());
                }
            }
        }
        let at = self.position.get();
        let entry_cursor = self.callback_end.get();
        let record = self.rings().request(at.cursor());
        self.rings().touch_request(at.cursor(), units);
        // SAFETY: there is room for the record.
        unsafe { Then::<T, F, R>::write(record, object, f) };
        let entry = self.rings().callback(entry_cursor);
        // SAFETY: room in the request ring is room in the callback ring.
        unsafe { Callback::<T, F, R, C>::write(entry, at, then) };
        self.callback_end.set(entry_cursor.wrapping_add(Callback::<T, F, R, C>::UNITS as u32));
        if self.commit(at, units, publish) {
            if publish {
                self.thread.raise_held();
            }
            return Ok(());
        }
        self.callback_end.set(entry_cursor);
        // SAFETY: not executed, and never will be.
        let f = unsafe { Then::<T, F, R>::take(record) };
        // SAFETY: not reaped, and never will be.
        let then = unsafe { Callback::<T, F, R, C>::take(entry) };
        Err((Refusal::Closed, f, then))
    }

    /// Asks for `f` and wants no answer.
    ///
    /// # Safety
    /// As [`issue`](Self::issue).
    #[inline(always)]
    pub(crate) unsafe fn post<T, F>(
        &self,
        object: *mut Header,
        f: F,
        patience: Patience,
    ) -> Result<(), (Refusal, F)>
    where
        F: FnOnce(&mut T),
    {
        let units = Post::<T, F>::UNITS;
        let mut publish = false;
        if self.is_limited(units) {
            match self.make_room(units, patience) {
                Room::Here => publish = true,
                Room::None => return Err((Refusal::Full, f)),
                Room::Queue => {
                    // SAFETY: the caller's duties go over to the deferred request.
                    unsafe { defer::post(self, object, f) };
                    return Ok(());
                }
            }
        }
        let at = self.position.get();
        let record = self.rings().request(at.cursor());
        self.rings().touch_request(at.cursor(), units);
        // SAFETY: there is room for the record.
        unsafe { Post::<T, F>::write(record, object, f) };
        if self.commit(at, units, publish) {
            if publish {
                self.thread.raise_held();
            }
            return Ok(());
        }
        // SAFETY: not executed, and never will be.
        Err((Refusal::Closed, unsafe { Post::<T, F>::take(record) }))
    }

    /// True where the fast path ends before a request of `units`.
    #[inline(always)]
    fn is_limited(&self, units: usize) -> bool {
        let at = self.position.get();
        let left = self.limit_cursor.get().wrapping_sub(at.cursor()) as i32;
        at.count() == self.limit_count.get() || left < units as i32
    }

    /// The record at `at` is written: makes it known. False where the trustee has been
    /// shut down and will not run it.
    #[inline(always)]
    fn commit(&self, at: Position, units: usize, publish: bool) -> bool {
        let next = at.after(step(units));
        self.position.set(next);
        // Release: pairs with the Acquire of `Lane::serve_head` and `Lane::drain`;
        // publishes the record.
        self.channel().head.store(next.0, Ordering::Release);
        if publish {
            self.publish(next);
        }
        // Pairs with the heavy barrier of a trustee that goes to sleep or closes: it sees
        // the head, or this sees its state.
        barrier::light();
        // Relaxed: ordered by the barrier.
        if self.trustee.state.word().load(Ordering::Relaxed) != AWAKE {
            return self.rouse_or_retract(at);
        }
        true
    }

    /// Publishes the ring up to `position` by the mail word.
    #[inline(always)]
    fn publish(&self, position: Position) {
        let mail = self.mail.get().with_cursor(position.cursor());
        self.mail.set(mail);
        // Release: pairs with the Acquire of `Lane::serve`; publishes the records.
        self.channel().mail.word.store(mail.0, Ordering::Release);
    }

    /// The trustee is not awake: wakes it. Where it has been shut down without running the
    /// request at `at`, takes the request out again and returns false.
    #[cold]
    fn rouse_or_retract(&self, at: Position) -> bool {
        if self.trustee.rouse() {
            return true;
        }
        self.trustee.wait_until_gone();
        let tail = self.reaper.look(self.channel());
        self.reaper.gone.set(true);
        if is_past(tail.cursor(), at.cursor()) {
            return true;
        }
        self.position.set(at);
        false
    }

    /// Publishes what has not been published.
    pub(crate) fn flush(&self) {
        let position = self.position.get();
        if self.mail.get().cursor() != position.cursor() {
            self.publish(position);
        }
    }

    /// Calls `f` and waits for its result.
    ///
    /// # Safety
    /// `object` is an `Object<T>` of this client's trustee and alive while the call lasts.
    #[inline(always)]
    pub(crate) unsafe fn call<T, F, R>(
        &self,
        object: *mut Header,
        f: F,
    ) -> Result<Result<R, Box<dyn Any + Send>>, F>
    where
        F: FnOnce(&mut T) -> R,
    {
        let reaped = self.has_callbacks() && !self.thread.in_callback();
        if reaped {
            self.reap();
        }
        let channel = self.channel();
        let mut frame = Call::<T, F, R>::frame();
        channel.mail.shadow.write(0, 1);
        let record = channel.mail.call.with_mut(|call| call.cast::<u64>());
        // SAFETY: the line is ours: this thread has no other lone call in this channel,
        // and the frame stays until the answer below.
        unsafe { Call::<T, F, R>::write(record, object, f, &mut frame) };
        let mail = self.mail.get().with_next_call(self.position.get().cursor());
        self.mail.set(mail);
        // Release: pairs with the Acquire of `Lane::serve`; publishes the call and every
        // record before it.
        channel.mail.word.store(mail.0, Ordering::Release);
        barrier::light();
        // Relaxed: ordered by the barrier, as in `commit`.
        if self.trustee.state.word().load(Ordering::Relaxed) != AWAKE && !self.trustee.rouse() {
            self.trustee.wait_until_gone();
            // Acquire: pairs with the Release of `Lane::run_call`.
            if !Mail(channel.mail.done.load(Ordering::Acquire)).answers(mail) {
                // SAFETY: not run, and never will be.
                return Err(unsafe { Call::<T, F, R>::take(record) });
            }
        }
        let done = self.await_done(mail);
        channel.mail.shadow.write(0, 1);
        let outcome = if done.is_fault() {
            // SAFETY: a fault leaves the boxed payload in the first word.
            let payload = unsafe { record.add(2).cast::<*mut Box<dyn Any + Send>>().read() };
            // SAFETY: from `Box::into_raw` in `Lane::run_call`.
            Err(*unsafe { Box::from_raw(payload) })
        } else {
            // SAFETY: answered without a fault.
            Ok(unsafe { Call::<T, F, R>::result(record) })
        };
        if reaped {
            self.thread.raise_held();
        }
        Ok(outcome)
    }

    #[inline(always)]
    fn await_done(&self, mail: Mail) -> Mail {
        let mut done = Mail(0);
        self.wait_until(|| {
            // Acquire: pairs with the Release of `Lane::run_call`; publishes the result.
            done = Mail(self.channel().mail.done.load(Ordering::Acquire));
            if done.answers(mail) {
                return true;
            }
            prefetch_write(&raw const self.channel().mail.word);
            false
        });
        done
    }

    // ---- waiting ----

    /// Spins, then yields, then sleeps until `done`. Runs no callbacks.
    #[inline(always)]
    pub(super) fn wait_until(&self, mut done: impl FnMut() -> bool) {
        // About 2 µs of looking at every pause: several round trips.
        for _ in 0..self.trustee.settings.looks {
            if done() {
                return;
            }
            hint::spin_loop();
        }
        self.wait_longer(&mut done);
    }

    #[cold]
    fn wait_longer(&self, done: &mut dyn FnMut() -> bool) {
        const YIELDS: u32 = if MODEL { 0 } else { 64 };
        let mut backoff = Backoff::new();
        while !done() {
            if backoff.is_yielding() && backoff.yields() >= YIELDS {
                let parked = &self.channel().parked;
                // Relaxed: ordered by the barrier.
                parked.word().store(1, Ordering::Relaxed);
                // Pairs with the light barrier of `Lane::wake_client`.
                barrier::heavy();
                if !done() {
                    parked.wait(1, None);
                }
                // Relaxed: a wake-up too many does no harm.
                parked.word().store(0, Ordering::Relaxed);
                if done() {
                    return;
                }
            }
            backoff.wait();
        }
    }

    // ---- room ----

    /// Everything before it may be used again.
    fn free_from(&self) -> Position {
        let tail = self.reaper.tail();
        match self.reaper.oldest(self.callback_end()) {
            Some(at) if !is_past(at.cursor(), tail.cursor()) => at,
            _ => tail,
        }
    }

    /// Room for a request of `units`, after growing if that is allowed.
    fn has_room(&self, units: usize) -> bool {
        loop {
            let (free, at) = (self.free_from(), self.position.get());
            if at.count().wrapping_sub(free.count()) >= self.window {
                return false;
            }
            let used = at.cursor().wrapping_sub(free.cursor()) as usize;
            let have = self.rings().units();
            if used + units + SPARE <= have as usize {
                return true;
            }
            // Rings that are too small for the request even when empty grow beyond the
            // limit: a bound on memory must not become a hang.
            let too_small = units + SPARE > have as usize;
            if used + JUMP_UNITS + 1 > have as usize || (have >= self.max_units && !too_small) {
                return false;
            }
            self.grow();
        }
    }

    /// The fast path has ended: reaps, publishes, grows, waits; sets the limits anew.
    /// Panics of callbacks are held until the request has been accepted.
    #[cold]
    #[inline(never)]
    fn make_room(&self, units: usize, patience: Patience) -> Room {
        self.stop_fast_path();
        let room = if self.thread.in_callback() {
            self.reaper.look(self.channel());
            if self.deferred.get() == 0 && self.has_room(units) {
                Room::Here
            } else if self.thread.may_defer(self.window) {
                Room::Queue
            } else {
                Room::None
            }
        } else {
            self.reap();
            while !self.has_room(units) {
                self.flush();
                if patience == Patience::Try {
                    return Room::None;
                }
                let before = self.reaper.tail();
                self.wait_until(|| self.reaper.look(self.channel()) != before);
                self.reap();
            }
            Room::Here
        };
        if matches!(room, Room::Here) {
            self.set_limits();
        }
        room
    }

    /// No fast path before `make_room` has been asked.
    pub(crate) fn stop_fast_path(&self) {
        self.limit_count.set(self.position.get().count());
    }

    fn set_limits(&self) {
        let (free, at) = (self.free_from(), self.position.get());
        let in_flight = at.count().wrapping_sub(free.count());
        let every = self.pace.next(self.publish_every.get(), PUBLISH_EVERY);
        self.publish_every.set(every);
        self.limit_count.set(at.count().wrapping_add(every.min(self.window - in_flight)));
        let room = self.rings().units() - SPARE as u32;
        self.limit_cursor.set(free.cursor().wrapping_add(room));
        // The next batch's lines, taken back from the trustee all at once.
        let ahead = (every * 2).min(256);
        for unit in (8..=ahead).step_by(8) {
            prefetch_write(self.rings().request(at.cursor().wrapping_add(unit)));
        }
    }

    /// Goes over to rings of twice the size, by a request that tells the trustee.
    fn grow(&self) {
        let larger = Box::into_raw(Rings::new(self.rings().units() as usize * 2));
        let at = self.position.get();
        let record = self.rings().request(at.cursor());
        self.rings().touch_request(at.cursor(), JUMP_UNITS);
        // SAFETY: SPARE units are kept free for this record.
        unsafe { jump::write_request(record, larger) };
        let end = self.callback_end.get();
        // SAFETY: room in the request ring is room in the callback ring.
        unsafe { jump::write_callback(self.rings().callback(end), at, larger) };
        self.callback_end.set(end.wrapping_add(jump::CALLBACK_UNITS as u32));
        self.rings.set(larger);
        self.reaper.add(larger);
        let next = at.after(step(JUMP_UNITS));
        self.position.set(next);
        // Release: as in `commit`. The request that follows looks at the trustee's state.
        self.channel().head.store(next.0, Ordering::Release);
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.reaper.free_rings();
        if self.never_announced.get() {
            return;
        }
        let announced = Arc::into_raw(Arc::clone(&self.owned));
        // SAFETY: alive by that count.
        let node = unsafe { &raw const (*announced).detach };
        // SAFETY: a node of its own, pushed once.
        if unsafe { self.trustee.inbox.push(node) } {
            self.trustee.rouse();
        } else {
            // SAFETY: the count from above, which nobody has taken over.
            drop(unsafe { Arc::from_raw(announced) });
        }
    }
}
