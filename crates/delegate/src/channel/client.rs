//! The client's side of a channel: issuing. `reap.rs` has the rest.
//!
//! **Room.** The client stands at `position`; everything before `free_from` may be used
//! again. A request is done with when it has been executed and, if it has a callback, that
//! has been taken out.
//!
//! **Limit.** The fast path ends at `limit`: at the next publication, at the window or at
//! the end of the room, whichever comes first. Everything else, reaping and waiting too,
//! happens in `make_room`.

use super::callbacks::Callbacks;
use super::label::Label;
use super::lone::Lone;
use super::pace::Pace;
use super::reap::Reaper;
use super::request::{Call, Callback, Frame, Post, Then};
use super::ring::{FIRST_UNITS, JUMP_UNITS, Rings, SPARE, View};
use super::word::{Mail, Position, is_past, step};
use super::{Channel, jump};
use crate::flat::member;
use crate::object::Header;
use crate::report::observer::Observer;
use crate::serving::Serving;
use crate::thread::ThreadState;
use crate::trustee::Shared;
use corelay_sync::facade::atomic::{Ordering, load_own};
use corelay_sync::facade::sync::Arc;
use corelay_sync::facade::{MODEL, hint};
use corelay_sync::{Backoff, prefetch_write};
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
    /// Wait for room; inside a callback, for the request itself.
    Wait,
    /// Give up.
    Try,
    /// As `Wait`, and leave the panics of callbacks held: the caller's frame is borrowed.
    Hold,
    /// Give up, run no callbacks and raise no panics: a trustee sends what its closures have
    /// asked for.
    Inside,
    /// As `Inside`, and go beyond the window rather than give up: the trustee ends.
    Last,
}

impl Patience {
    /// A trustee sends what its closures have asked for: it must not wait.
    pub(crate) fn is_trustees(self) -> bool {
        matches!(self, Self::Inside | Self::Last)
    }
}

pub(super) enum Room {
    /// Write the request; publish the mail behind it.
    Here,
    /// There is none, and none can be made in a callback.
    NotInCallback,
    /// There is none.
    None,
}

/// A client's half of a channel. It stays on its thread, and on lines of its own.
#[repr(align(128))]
pub(crate) struct Client {
    // What every request touches, together.
    channel: *const Channel,
    requests: Cell<View>,
    limit: Cell<u32>,
    pub(super) callbacks: Callbacks,
    pub(crate) trustee: Arc<Shared>,

    pub(super) reaper: Reaper,
    pub(super) lone: Lone,

    rings: Cell<*mut Rings>,
    mail: Cell<Mail>,
    publish_every: Cell<u32>,
    pace: Pace,
    window: u32,
    max_units: u32,
    pub(crate) thread: Rc<ThreadState>,
    /// The trustee is this thread's own, a member of a flat team.
    own: bool,
    /// A call is in the mail line, and its caller waits.
    calling: Cell<bool>,
    /// The trustee had ended before the channel was announced.
    never_announced: Cell<bool>,
    pub(super) owned: Arc<Channel>,
    /// Counts, where the trustee is observed.
    pub(super) observer: Option<Box<Observer>>,
}

impl Client {
    /// A channel to `trustee`, announced to it; `None` where it has been shut down.
    pub(crate) fn connect(trustee: &Arc<Shared>, thread: &Rc<ThreadState>) -> Option<Self> {
        let first = Rings::new(FIRST_UNITS);
        let requests = first.requests;
        let origin = trustee.settings.origin;
        let reaper = Reaper::new(first, origin);
        let rings = reaper.newest();
        let channel = Arc::new(Channel::new(rings, requests, origin));
        let client = Self {
            channel: Arc::as_ptr(&channel),
            requests: Cell::new(requests),
            limit: Cell::new(origin.cursor()),
            callbacks: Callbacks::new(),
            trustee: Arc::clone(trustee),
            reaper,
            lone: Lone::new(),
            rings: Cell::new(rings),
            mail: Cell::new(Mail::new(origin.cursor(), 0)),
            publish_every: Cell::new(1),
            pace: Pace::default(),
            window: trustee.settings.window,
            max_units: trustee.settings.ring_units,
            thread: Rc::clone(thread),
            own: Serving::with_current(|serving| serving.owns(trustee)) == Some(true),
            calling: Cell::new(false),
            never_announced: Cell::new(false),
            owned: channel,
            observer: trustee.settings.observe.then(Box::default),
        };
        // The trustee gets a count of its own, and gives it back at `detach`.
        let announced = Arc::into_raw(Arc::clone(&client.owned));
        // SAFETY: alive by that count.
        let node = unsafe { &raw const (*announced).register };
        // SAFETY: a node of its own, pushed once.
        if unsafe { trustee.inbox.push(node) } {
            trustee.rouse_if_needed();
            client.join();
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
    pub(super) fn rings(&self) -> &Rings {
        // SAFETY: the newest rings; freed only with the client.
        unsafe { &*self.rings.get() }
    }

    pub(crate) fn window(&self) -> u32 {
        self.window
    }

    /// Where the next request goes. The head is its home: only this side writes it.
    #[inline(always)]
    pub(super) fn position(&self) -> Position {
        Position(load_own(&self.channel().head))
    }

    /// Where a request of `units` at `at` goes: there is room for it.
    #[inline(always)]
    pub(super) fn request(&self, at: Position, units: usize) -> *mut u64 {
        self.rings().touch_request(at.cursor(), units);
        self.requests.get().at(at.cursor())
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
        let at = self.position();
        let Some(label) = Then::<T, F, R>::label(object) else {
            // SAFETY: the caller's duties.
            return unsafe { self.issue_by_call(object, f, then, patience) };
        };
        if self.is_limited(at, Then::<T, F, R>::UNITS) || !self.callbacks.has_room() {
            // SAFETY: the caller's duties.
            return unsafe { self.issue_slowly(object, label, f, then, patience) };
        }
        // SAFETY: there is room; the rest is the caller's duty.
        if unsafe { self.write_then(at, label, f, then) } {
            Ok(())
        } else {
            // SAFETY: just written.
            unsafe { self.rouse_or_retract_then::<T, F, R, C>(at) }
        }
    }

    /// The request does not go the fast way.
    ///
    /// # Safety
    /// As [`issue`](Self::issue).
    #[cold]
    #[inline(never)]
    unsafe fn issue_slowly<T, F, R, C>(
        &self,
        object: *mut Header,
        label: Label,
        f: F,
        then: C,
        patience: Patience,
    ) -> Result<(), (Refusal, F, C)>
    where
        F: FnOnce(&mut T) -> R,
        C: FnOnce(R),
    {
        if self.own && self.runs_at_once() {
            // SAFETY: just asked; the rest is the caller's duty.
            return unsafe { self.run_own_then::<T, F, R, C>(object, f, then, patience) };
        }
        match self.make_room(Then::<T, F, R>::UNITS, patience) {
            Room::Here => {}
            Room::None => return Err((Refusal::Full, f, then)),
            Room::NotInCallback => {
                // SAFETY: the caller's duties.
                return unsafe { self.issue_by_call(object, f, then, patience) };
            }
        }
        if Call::<T, F, R>::INLINE && self.may_go_alone() {
            self.observe_request(None);
            // SAFETY: it may; the rest is the caller's duty.
            unsafe { self.issue_alone(object, f, then) }?;
        } else {
            let at = self.position();
            self.observe_request(Some(at));
            // SAFETY: `make_room` has made it; the rest is the caller's duty.
            let awake = unsafe { self.write_then(at, label, f, then) };
            self.flush();
            if !awake {
                // SAFETY: just written.
                unsafe { self.rouse_or_retract_then::<T, F, R, C>(at) }?;
            }
        }
        if matches!(patience, Patience::Wait | Patience::Try) {
            self.thread.raise_held();
        }
        Ok(())
    }

    /// Writes request and callback; false where the trustee has to be roused.
    ///
    /// # Safety
    /// There is room; the rest as [`issue`](Self::issue).
    #[inline(always)]
    unsafe fn write_then<T, F, R, C>(&self, at: Position, label: Label, f: F, then: C) -> bool
    where
        F: FnOnce(&mut T) -> R,
        C: FnOnce(R),
    {
        let end = self.callbacks.end();
        // SAFETY: there is room.
        unsafe { Callback::<T, F, R, C>::write(self.callbacks.at(end), at, then) };
        self.callbacks
            .set_end(end + Callback::<T, F, R, C>::UNITS as u32);
        self.rings()
            .touch_request(at.cursor(), Then::<T, F, R>::UNITS);
        // SAFETY: there is room.
        unsafe { Then::<T, F, R>::write(self.requests.get().at(at.cursor()), label, f) };
        self.advance(at.after(step(Then::<T, F, R>::UNITS)))
    }

    /// Rouses the trustee for the request just written at `at`, or takes it back.
    ///
    /// # Safety
    /// The newest request is a `Then<T, F, R>` with a `C`, written at `at`.
    #[cold]
    unsafe fn rouse_or_retract_then<T, F, R, C>(&self, at: Position) -> Result<(), (Refusal, F, C)>
    where
        F: FnOnce(&mut T) -> R,
        C: FnOnce(R),
    {
        if self.rouse_or_retract(at) {
            return Ok(());
        }
        let end = self.callbacks.end() - Callback::<T, F, R, C>::UNITS as u32;
        self.callbacks.set_end(end);
        // SAFETY: not executed, and never will be.
        let f = unsafe { Then::<T, F, R>::take(self.requests.get().at(at.cursor())) };
        // SAFETY: not reaped, and never will be.
        let then = unsafe { Callback::<T, F, R, C>::take(self.callbacks.at(end)) };
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
        let at = self.position();
        let Some(label) = Post::<T, F>::label(object) else {
            // SAFETY: the caller's duties.
            return unsafe { self.post_by_call(object, f) };
        };
        if self.is_limited(at, Post::<T, F>::UNITS) {
            // SAFETY: the caller's duties.
            return unsafe { self.post_slowly(object, label, f, patience) };
        }
        // SAFETY: there is room; the rest is the caller's duty.
        if unsafe { self.write_post(at, label, f) } {
            Ok(())
        } else {
            // SAFETY: just written.
            unsafe { self.rouse_or_retract_post::<T, F>(at) }
        }
    }

    /// The request does not go the fast way.
    ///
    /// # Safety
    /// As [`issue`](Self::issue).
    #[cold]
    #[inline(never)]
    unsafe fn post_slowly<T, F>(
        &self,
        object: *mut Header,
        label: Label,
        f: F,
        patience: Patience,
    ) -> Result<(), (Refusal, F)>
    where
        F: FnOnce(&mut T),
    {
        if self.own && self.runs_at_once() {
            // SAFETY: just asked; the rest is the caller's duty.
            unsafe { self.run_own_post::<T, F>(object, f) };
            return Ok(());
        }
        match self.make_room(Post::<T, F>::UNITS, patience) {
            Room::Here => {}
            Room::None => return Err((Refusal::Full, f)),
            // SAFETY: the caller's duties.
            Room::NotInCallback => return unsafe { self.post_by_call(object, f) },
        }
        let at = self.position();
        // SAFETY: `make_room` has made it; the rest is the caller's duty.
        let awake = unsafe { self.write_post(at, label, f) };
        self.flush();
        if !awake {
            // SAFETY: just written.
            unsafe { self.rouse_or_retract_post::<T, F>(at) }?;
        }
        if matches!(patience, Patience::Wait | Patience::Try) {
            self.thread.raise_held();
        }
        Ok(())
    }

    /// Writes a request; false where the trustee has to be roused.
    ///
    /// # Safety
    /// There is room; the rest as [`issue`](Self::issue).
    #[inline(always)]
    unsafe fn write_post<T, F>(&self, at: Position, label: Label, f: F) -> bool
    where
        F: FnOnce(&mut T),
    {
        self.rings().touch_request(at.cursor(), Post::<T, F>::UNITS);
        // SAFETY: there is room.
        unsafe { Post::<T, F>::write(self.requests.get().at(at.cursor()), label, f) };
        self.advance(at.after(step(Post::<T, F>::UNITS)))
    }

    /// Rouses the trustee for the request just written at `at`, or takes it back.
    ///
    /// # Safety
    /// The newest request is a `Post<T, F>`, written at `at`.
    #[cold]
    unsafe fn rouse_or_retract_post<T, F>(&self, at: Position) -> Result<(), (Refusal, F)>
    where
        F: FnOnce(&mut T),
    {
        if self.rouse_or_retract(at) {
            return Ok(());
        }
        // SAFETY: not executed, and never will be.
        let f = unsafe { Post::<T, F>::take(self.requests.get().at(at.cursor())) };
        Err((Refusal::Closed, f))
    }

    /// True where the fast path ends before a request of `units` at `at`.
    #[inline(always)]
    pub(super) fn is_limited(&self, at: Position, units: usize) -> bool {
        (self.limit.get().wrapping_sub(at.cursor()) as i32) < units as i32
    }

    /// The record before `next` is written: makes it known. False where the trustee has to
    /// be roused.
    #[inline(always)]
    pub(super) fn advance(&self, next: Position) -> bool {
        // Release: pairs with the Acquire of `Lane::serve_head` and `Lane::drain`;
        // publishes the record.
        self.channel().head.store(next.0, Ordering::Release);
        self.trustee.is_awake()
    }

    /// Rouses the trustee. Where it has been shut down without running the request at
    /// `at`, takes that out of the ring again and returns false.
    #[cold]
    pub(super) fn rouse_or_retract(&self, at: Position) -> bool {
        if self.rouse_or_learn_that_it_is_gone()
            || is_past(self.reaper.tail().cursor(), at.cursor())
        {
            return true;
        }
        // Relaxed: nobody reads it any more.
        self.channel().head.store(at.0, Ordering::Relaxed);
        self.stop_fast_path();
        false
    }

    /// Rouses the trustee; false where it has ended instead, and its last tail is known.
    #[cold]
    fn rouse_or_learn_that_it_is_gone(&self) -> bool {
        if self.trustee.rouse_if_needed() {
            return true;
        }
        self.trustee.wait_until_gone();
        self.reaper.look(self.channel());
        self.reaper.gone.set(true);
        false
    }

    /// Publishes by the mail word what has not been published. Not behind a lone request or a
    /// call that has not been answered: the trustee looks at the head when it has run that.
    pub(crate) fn flush(&self) {
        let cursor = self.position().cursor();
        let is_new = self.mail.get().cursor() != cursor;
        if is_new && !self.calling.get() && !self.is_lone_unanswered() {
            let mail = self.mail.get().with_cursor(cursor);
            self.mail.set(mail);
            // Release: pairs with the Acquire of `Lane::serve`; publishes the records.
            self.channel().mail.word.store(mail.0, Ordering::Release);
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
        if self.own && self.runs_at_once() {
            // SAFETY: just asked; the rest is the caller's duty.
            return Ok(unsafe { self.run_own::<T, F, R>(object, f) });
        }
        let reaped = self.has_callbacks() && !self.thread.in_callback();
        if reaped {
            self.reap();
        }
        // SAFETY: the caller's duties.
        let outcome = unsafe { self.call_holding::<T, F, R>(object, f) }?;
        if reaped && outcome.is_ok() {
            self.thread.raise_held();
        }
        Ok(outcome)
    }

    /// As [`call`](Self::call), without running callbacks or raising their panics.
    ///
    /// # Safety
    /// As [`call`](Self::call).
    #[inline(always)]
    pub(super) unsafe fn call_holding<T, F, R>(
        &self,
        object: *mut Header,
        f: F,
    ) -> Result<Result<R, Box<dyn Any + Send>>, F>
    where
        F: FnOnce(&mut T) -> R,
    {
        if self.lone.is_pending() {
            self.clear_line();
        }
        let mut frame = Call::<T, F, R>::frame();
        // SAFETY: the line is ours: this thread has no other lone call in this channel,
        // and the frame stays until the answer below.
        let mail = unsafe { self.send_call(object, f, &mut frame) };
        if !self.accept_call(mail) {
            // SAFETY: not run, and never will be.
            return Err(unsafe { Call::<T, F, R>::take(self.call_record()) });
        }
        self.calling.set(true);
        let done = self.await_done(mail);
        self.calling.set(false);
        if done.is_fault() {
            // SAFETY: answered with a fault.
            Ok(Err(unsafe { take_fault(self.call_record()) }))
        } else {
            // SAFETY: answered without a fault.
            Ok(Ok(unsafe { Call::<T, F, R>::result(self.call_record()) }))
        }
    }

    /// The call in the mail line.
    #[inline(always)]
    pub(super) fn call_record(&self) -> *mut u64 {
        let mail = &self.channel().mail;
        mail.shadow.write(0, 1);
        mail.call.with_mut(|call| call.cast::<u64>())
    }

    /// Sends a lone call behind all that has been issued.
    ///
    /// # Safety
    /// As [`call`](Self::call). No other lone call is under way in this channel, and the
    /// frame stays where it is until the call has been answered or taken back.
    #[inline(always)]
    pub(super) unsafe fn send_call<T, F, R>(
        &self,
        object: *mut Header,
        f: F,
        frame: &mut Frame<F, R>,
    ) -> Mail
    where
        F: FnOnce(&mut T) -> R,
    {
        // SAFETY: the caller's duties.
        unsafe { Call::<T, F, R>::write(self.call_record(), object, f, frame) };
        let mail = self.mail.get().with_next_call(self.position().cursor());
        self.mail.set(mail);
        // Release: pairs with the Acquire of `Lane::serve`; publishes the call and every
        // record before it.
        self.channel().mail.word.store(mail.0, Ordering::Release);
        mail
    }

    /// Makes sure that the call of `mail` will be run; false where it never will be.
    #[inline(always)]
    pub(super) fn accept_call(&self, mail: Mail) -> bool {
        self.trustee.is_awake() || self.accept_call_slowly(mail)
    }

    #[cold]
    fn accept_call_slowly(&self, mail: Mail) -> bool {
        self.rouse_or_learn_that_it_is_gone()
            // Acquire: pairs with the Release of `Lane::run_call`.
            || Mail(self.channel().mail.done.load(Ordering::Acquire)).answers(mail)
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
        self.observe_wait();
        if member::wait_until(&self.trustee, done) {
            return;
        }
        let mut backoff = Backoff::new();
        while !done() {
            self.trustee.ring();
            if backoff.is_yielding() && backoff.yields() >= YIELDS {
                self.channel().sleeper.sleep(None, || {
                    // Behind the sleeper's barrier: see `Seat::hear`.
                    self.trustee.ring();
                    done()
                });
            } else {
                backoff.wait();
            }
        }
    }

    // ---- room ----

    /// Everything before it may be used again.
    fn free_from(&self) -> Position {
        let tail = self.reaper.tail();
        match self.oldest_callback() {
            Some(at) if !is_past(at.cursor(), tail.cursor()) => at,
            _ => tail,
        }
    }

    /// Units of the request ring that may not be used again.
    fn used(&self) -> usize {
        let at = self.position().cursor();
        at.wrapping_sub(self.free_from().cursor()) as usize
    }

    /// Requests in flight, by what is known of the tail.
    fn in_flight(&self) -> u32 {
        let in_ring = self
            .position()
            .count()
            .wrapping_sub(self.free_from().count());
        in_ring + u32::from(self.lone.is_pending())
    }

    /// True where the trustee is this thread's own.
    #[inline(always)]
    pub(super) fn is_own(&self) -> bool {
        self.own
    }

    /// True while a caller waits for the call in the mail line: on a member, which serves
    /// meanwhile, closures may ask for something.
    pub(super) fn is_calling(&self) -> bool {
        self.calling.get()
    }

    /// True where nothing is in flight, by what is known of the tail.
    #[inline(always)]
    pub(crate) fn is_quiet(&self) -> bool {
        self.reaper.tail() == self.position()
            && self.callbacks.is_empty(self.reaper.reaped())
            && !self.lone.is_pending()
            && !self.calling.get()
    }

    /// True where the client makes its requests so far apart that each is published at once.
    #[inline(always)]
    pub(super) fn is_slow(&self) -> bool {
        self.publish_every.get() == 1
    }

    /// Room for a request of `units`, after growing if that is allowed.
    fn has_room(&self, units: usize) -> bool {
        loop {
            if self.in_flight() >= self.window || !self.callbacks.has_room() {
                return false;
            }
            let used = self.used();
            let have = self.requests.get().units() as usize;
            if used + units + SPARE <= have {
                return true;
            }
            // Not for the last eighth of the window: twice the memory would be cycled
            // through the caches for it. But rings that are too small for the request even
            // when empty grow beyond any limit: a bound on memory must not become a hang.
            let worth = self.in_flight() < self.window - self.window / 8;
            let allowed = worth && have < self.max_units as usize;
            let too_small = units + SPARE > have;
            if used + JUMP_UNITS + 1 > have || !(allowed || too_small) {
                return false;
            }
            self.grow();
        }
    }

    /// The fast path has ended: reaps, publishes, grows, waits; sets the limit anew.
    /// Panics of callbacks are held until the request has been accepted.
    pub(super) fn make_room(&self, units: usize, patience: Patience) -> Room {
        // Several publications to a window: its requests are in flight, not in our hands.
        let most = PUBLISH_EVERY.min(self.window / 4).max(1);
        let made = self.publish_every.get();
        self.publish_every.set(self.pace.next(made, most));
        if !patience.is_trustees() {
            member::has_made(made, self.own);
        }
        self.stop_fast_path();
        if self.thread.in_callback() || patience.is_trustees() {
            self.reaper.look(self.channel());
            if !self.has_room(units) {
                self.observe_failed_pop();
                return match patience {
                    Patience::Try | Patience::Inside => Room::None,
                    Patience::Wait | Patience::Hold => Room::NotInCallback,
                    Patience::Last => {
                        self.exceed_window(units);
                        Room::Here
                    }
                };
            }
        } else {
            self.reap();
            self.move_callbacks();
            let mut has_room = self.has_room(units);
            if !has_room {
                self.observe_failed_pop();
            }
            while !has_room {
                self.flush();
                if patience == Patience::Try {
                    return Room::None;
                }
                self.await_progress();
                self.reap();
                self.move_callbacks();
                has_room = self.has_room(units);
            }
        }
        self.set_limit(units);
        Room::Here
    }

    /// Room for a request of `units` beyond the window. Not while callbacks run.
    fn exceed_window(&self, units: usize) {
        self.move_callbacks();
        while self.used() + units + SPARE > self.requests.get().units() as usize {
            self.grow();
            self.move_callbacks();
        }
    }

    fn move_callbacks(&self) {
        let before = self.callbacks.at(0);
        let moved = self.callbacks.make_room(self.reaper.reaped());
        self.reaper.callbacks_moved(moved);
        if self.callbacks.at(0) != before {
            self.tell_queues();
        }
    }

    /// No fast path before `make_room` has been asked.
    pub(crate) fn stop_fast_path(&self) {
        self.limit.set(self.position().cursor());
    }

    /// Lets the fast path go on behind the next request, of `units`, until it is time to
    /// publish, or the window or the room might end. A request takes a unit at least, so as
    /// many units as the window has left never hold too many requests.
    fn set_limit(&self, units: usize) {
        let (free, at) = (self.free_from(), self.position());
        let every = self.publish_every.get();
        let units = units as u32;
        let more = (units * (every - 1)).min(self.window - self.in_flight() - 1);
        let left =
            self.requests.get().units() - SPARE as u32 - at.cursor().wrapping_sub(free.cursor());
        let ahead = (units + more).min(left);
        self.limit.set(at.cursor().wrapping_add(ahead));
        // The next batch's lines, taken back from the trustee all at once.
        for unit in (8..=ahead).step_by(8) {
            prefetch_write(self.requests.get().at(at.cursor().wrapping_add(unit)));
        }
        self.pace.restart();
    }

    /// Goes over to rings of twice the size, by a request that tells the trustee.
    fn grow(&self) {
        let larger = Box::into_raw(Rings::new(self.requests.get().units() as usize * 2));
        let at = self.position();
        self.rings().touch_request(at.cursor(), JUMP_UNITS);
        // SAFETY: SPARE units are kept free for this record.
        unsafe { jump::write_request(self.requests.get().at(at.cursor()), larger) };
        let end = self.callbacks.end();
        // SAFETY: checked by `has_room`.
        unsafe { jump::write_callback(self.callbacks.at(end), at, larger) };
        self.callbacks.set_end(end + jump::CALLBACK_UNITS as u32);
        self.reaper.add(larger);
        self.rings.set(larger);
        self.requests.set(self.rings().requests);
        self.tell_queues();
        if !self.advance(at.after(jump::STEP)) {
            // Closed or not: where the jump will not be run, the request that follows will
            // be refused.
            self.rouse_or_learn_that_it_is_gone();
        }
    }
}

impl Drop for Client {
    /// Nothing is in flight any more: whoever drops the last reference finishes first.
    fn drop(&mut self) {
        self.leave();
        let unclaimed = std::mem::take(&mut *self.channel().faults.lock().expect("never poisoned"));
        crate::error::discard_payload(unclaimed.first);
        self.reaper.free_rings();
        if self.never_announced.get() {
            return;
        }
        let announced = Arc::into_raw(Arc::clone(&self.owned));
        // SAFETY: alive by that count.
        let node = unsafe { &raw const (*announced).detach };
        // SAFETY: a node of its own, pushed once.
        if unsafe { self.trustee.inbox.push(node) } {
            self.trustee.rouse_if_needed();
        } else {
            // SAFETY: the count from above, which nobody has taken over.
            drop(unsafe { Arc::from_raw(announced) });
        }
    }
}

/// Takes what went wrong with a lone call.
///
/// # Safety
/// `record` holds one that has been answered with a fault, which has not been taken yet.
#[cold]
pub(super) unsafe fn take_fault(record: *mut u64) -> Box<dyn Any + Send> {
    let boxed = record.wrapping_add(2);
    // SAFETY: a fault leaves the boxed payload in the first word.
    let payload = unsafe { boxed.cast::<*mut Box<dyn Any + Send>>().read() };
    // SAFETY: from `Box::into_raw` in `Lane::run_call`.
    *unsafe { Box::from_raw(payload) }
}
