//! The client's side of a channel: issuing. `room.rs` sees to room, `call.rs` to calls that
//! wait, `reap.rs` to answers.

use super::Channel;
use super::callbacks::Callbacks;
use super::groups::Groups;
use super::label::Label;
use super::lone::Lone;
use super::pace::Pace;
use super::reap::Reaper;
use super::request::{Call, Callback, Post, Then};
use super::ring::{FIRST_UNITS, Rings, View};
use super::room::Room;
use super::word::{Mail, Position, is_past, step};
use crate::discard::discard;
use crate::flat::member;
use crate::held::circle::Wait;
use crate::object::Header;
use crate::report::observer::Observer;
use crate::serving::Serving;
use crate::thread::ThreadState;
use crate::trustee::Shared;
use corelay_sync::Backoff;
use corelay_sync::facade::atomic::{AtomicU64, Ordering, load_own};
use corelay_sync::facade::hint;
use corelay_sync::facade::sync::Arc;
use corelay_sync::trace::{self, Mark};
use std::cell::Cell;
use std::rc::Rc;

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

/// Where the next request goes, and the one behind it.
pub(crate) struct Place<'a> {
    pub(super) head: &'a AtomicU64,
    pub(crate) at: Position,
    pub(super) next: Position,
    pub(super) label: Label,
}

/// A client's half of a channel. It stays on its thread, and on lines of its own.
#[repr(align(128))]
pub(crate) struct Client {
    // What every request touches, together.
    pub(super) channel: *const Channel,
    pub(super) requests: Cell<View>,
    pub(super) limit: Cell<Position>,
    pub(super) callback_limit: Cell<Position>,
    pub(super) callbacks: Callbacks,
    pub(crate) trustee: Arc<Shared>,

    pub(super) reaper: Reaper,
    pub(super) lone: Lone,

    pub(super) rings: Cell<*mut Rings>,
    pub(super) mail: Cell<Mail>,
    pub(super) publish_every: Cell<u32>,
    pub(super) pace: Pace,
    pub(super) window: u32,
    pub(super) max_units: u32,
    pub(crate) thread: Rc<ThreadState>,
    /// The trustee is this thread's own, a member of a flat team.
    pub(super) own: bool,
    /// A call is in the mail line, and its caller waits.
    pub(super) calling: Cell<bool>,
    /// The trustee had ended before the channel was announced.
    pub(super) never_announced: Cell<bool>,
    pub(super) owned: Arc<Channel>,
    /// Counts, where the trustee is observed.
    pub(super) observer: Option<Box<Observer>>,
    /// Which recording has heard of batches up to which request.
    pub(super) marked: Cell<(u32, u32)>,
    /// Closures launched so far.
    pub(super) launched: Cell<u64>,
}

impl Client {
    /// A channel to `trustee`, announced to it; `None` where it has been shut down.
    pub(crate) fn connect(trustee: &Arc<Shared>, thread: &Rc<ThreadState>) -> Option<Self> {
        let first = Rings::new(FIRST_UNITS);
        let (requests, answers) = (first.requests, first.answers);
        let origin = trustee.settings.origin;
        let reaper = Reaper::new(first, origin);
        let rings = reaper.newest();
        let seat = trustee.groups.as_ref().map(Groups::take);
        let views = [requests, answers];
        let channel = Arc::new(Channel::new(rings, views, origin, seat, thread.launch));
        let client = Self {
            channel: Arc::as_ptr(&channel),
            requests: Cell::new(requests),
            limit: Cell::new(origin),
            callback_limit: Cell::new(origin),
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
            marked: Cell::new((trace::number(), origin.count())),
            launched: Cell::new(0),
        };
        // The trustee gets a count of its own, and gives it back at `detach`.
        let announced = Arc::into_raw(Arc::clone(&client.owned));
        // SAFETY: alive by that count.
        let node = unsafe { &raw const (*announced).register };
        // SAFETY: a node of its own, pushed once.
        if unsafe { trustee.inbox.push(node) } {
            trustee.rouse_if_needed();
            client.join();
            client.mark_begin();
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

    /// The position of the next request. Who writes one asks once: behind the writes the
    /// compiler would look again where it lies.
    #[inline(always)]
    pub(super) fn head(&self) -> &AtomicU64 {
        &self.channel().head
    }

    /// Where the next request goes. The head is its home: only this side writes it.
    #[inline(always)]
    pub(super) fn position(&self) -> Position {
        Position(load_own(self.head()))
    }

    /// There, for a request of so many units.
    #[inline(always)]
    pub(super) fn next_place(&self, label: Label, units: usize) -> Place<'_> {
        let head = self.head();
        let at = Position(load_own(head));
        Place {
            head,
            at,
            next: at.after(step(units)),
            label,
        }
    }

    /// Where a request of `units` at `at` goes: there is room for it.
    #[inline(always)]
    pub(super) fn request(&self, at: Position, units: usize) -> *mut u64 {
        self.rings().touch_request(at.cursor(), units);
        self.requests.get().at(at.cursor())
    }

    // ---- requests ----
    //
    // Each is a fast way and what else there is: `place_…` says whether the request takes the fast
    // one, `write_…` takes it, and `issue_slowly` and so on take the others. Who wants no refusal
    // back, as `Trust` does, puts them together itself, with the others out of the way.

    /// Where a request with an answer goes the fast way, if it may.
    #[inline(always)]
    pub(crate) fn place_then<T, F, R, C>(&self, label: Option<Label>) -> Option<Place<'_>>
    where
        F: FnOnce(&mut T) -> R,
        C: FnOnce(R),
    {
        let place = self.next_place(label?, Then::<T, F, R>::UNITS);
        let is_limited = self.is_callback_limited(place.next, Callback::<T, F, R, C>::UNITS);
        (!is_limited).then_some(place)
    }

    /// The same of a request without a callback.
    #[inline(always)]
    pub(crate) fn place(&self, label: Option<Label>, units: usize) -> Option<Place<'_>> {
        let place = self.next_place(label?, units);
        (!self.is_limited(place.next)).then_some(place)
    }

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
        let label = Then::<T, F, R>::label(object);
        let Some(place) = self.place_then::<T, F, R, C>(label) else {
            // SAFETY: the caller's duties.
            return unsafe { self.issue_slowly(object, f, then, patience) };
        };
        let at = place.at;
        // SAFETY: just asked; the rest is the caller's duty.
        if unsafe { self.write_then(place, f, then) } {
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
    pub(crate) unsafe fn issue_slowly<T, F, R, C>(
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
        let _call = self.thread.enter_call();
        if self.own && self.runs_at_once() {
            // SAFETY: just asked; the rest is the caller's duty.
            return unsafe { self.run_own_then::<T, F, R, C>(object, f, then, patience) };
        }
        let Some(label) = Then::<T, F, R>::label(object) else {
            // SAFETY: the caller's duties.
            return unsafe { self.issue_by_call(object, f, then, patience) };
        };
        match self.make_room(Then::<T, F, R>::UNITS, true, patience) {
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
            let place = self.next_place(label, Then::<T, F, R>::UNITS);
            let at = place.at;
            self.observe_request(Some(at));
            // SAFETY: `make_room` has made it; the rest is the caller's duty.
            let awake = unsafe { self.write_then(place, f, then) };
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
    pub(crate) unsafe fn write_then<T, F, R, C>(&self, place: Place<'_>, f: F, then: C) -> bool
    where
        F: FnOnce(&mut T) -> R,
        C: FnOnce(R),
    {
        let Place {
            head,
            at,
            next,
            label,
        } = place;
        let entry = self.callbacks.push(Callback::<T, F, R, C>::UNITS);
        // SAFETY: there is room.
        unsafe { Callback::<T, F, R, C>::write(entry, at, then) };
        let record = self.request(at, Then::<T, F, R>::UNITS);
        // SAFETY: there is room.
        unsafe { Then::<T, F, R>::write(record, label, f) };
        self.advance(head, next)
    }

    /// Rouses the trustee for the request just written at `at`, or takes it back.
    ///
    /// # Safety
    /// The newest request is a `Then<T, F, R>` with a `C`, written at `at`.
    #[cold]
    pub(crate) unsafe fn rouse_or_retract_then<T, F, R, C>(
        &self,
        at: Position,
    ) -> Result<(), (Refusal, F, C)>
    where
        F: FnOnce(&mut T) -> R,
        C: FnOnce(R),
    {
        if self.rouse_or_retract(at) {
            return Ok(());
        }
        let entry = self.callbacks.pop(Callback::<T, F, R, C>::UNITS);
        // SAFETY: not executed, and never will be.
        let f = unsafe { Then::<T, F, R>::take(self.requests.get().at(at.cursor())) };
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
        let label = Post::<T, F>::label(object);
        let Some(place) = self.place(label, Post::<T, F>::UNITS) else {
            // SAFETY: the caller's duties.
            return unsafe { self.post_slowly(object, f, patience) };
        };
        let at = place.at;
        // SAFETY: just asked; the rest is the caller's duty.
        if unsafe { self.write_post(place, f) } {
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
    pub(crate) unsafe fn post_slowly<T, F>(
        &self,
        object: *mut Header,
        f: F,
        patience: Patience,
    ) -> Result<(), (Refusal, F)>
    where
        F: FnOnce(&mut T),
    {
        let _call = self.thread.enter_call();
        if self.own && self.runs_at_once() {
            // SAFETY: just asked; the rest is the caller's duty.
            unsafe { self.run_own_post::<T, F>(object, f, patience) };
            return Ok(());
        }
        let Some(label) = Post::<T, F>::label(object) else {
            // SAFETY: the caller's duties.
            return unsafe { self.post_by_call(object, f) };
        };
        match self.make_room(Post::<T, F>::UNITS, false, patience) {
            Room::Here => {}
            Room::None => return Err((Refusal::Full, f)),
            // SAFETY: the caller's duties.
            Room::NotInCallback => return unsafe { self.post_by_call(object, f) },
        }
        let place = self.next_place(label, Post::<T, F>::UNITS);
        let at = place.at;
        // SAFETY: `make_room` has made it; the rest is the caller's duty.
        let awake = unsafe { self.write_post(place, f) };
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
    pub(crate) unsafe fn write_post<T, F>(&self, place: Place<'_>, f: F) -> bool
    where
        F: FnOnce(&mut T),
    {
        let Place {
            head,
            at,
            next,
            label,
        } = place;
        let record = self.request(at, Post::<T, F>::UNITS);
        // SAFETY: there is room.
        unsafe { Post::<T, F>::write(record, label, f) };
        self.advance(head, next)
    }

    /// Rouses the trustee for the request just written at `at`, or takes it back.
    ///
    /// # Safety
    /// The newest request is a `Post<T, F>`, written at `at`.
    #[cold]
    pub(crate) unsafe fn rouse_or_retract_post<T, F>(
        &self,
        at: Position,
    ) -> Result<(), (Refusal, F)>
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

    /// The record before `next` is written: makes it known by our [head](Self::head). False
    /// where the trustee has to be roused.
    #[inline(always)]
    pub(super) fn advance(&self, head: &AtomicU64, next: Position) -> bool {
        // Release: pairs with the Acquire of `Lane::serve_head` and `Lane::drain`;
        // publishes the record.
        head.store(next.0, Ordering::Release);
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
    pub(super) fn rouse_or_learn_that_it_is_gone(&self) -> bool {
        loop {
            if self.trustee.rouse_if_needed() {
                return true;
            }
            if self.trustee.wait_until_gone() {
                break;
            }
        }
        self.reaper.look(self.channel());
        self.reaper.gone.set(true);
        false
    }

    /// Publishes by the mail word what has not been published. Not behind a lone request or a
    /// call that has not been answered: the trustee looks at the head when it has run that.
    pub(crate) fn flush(&self) {
        let at = self.position();
        let cursor = at.cursor();
        let is_new = self.mail.get().cursor() != cursor;
        if is_new && !self.calling.get() && !self.is_lone_unanswered() {
            let mail = self.mail.get().with_cursor(cursor);
            self.mail.set(mail);
            // Release: pairs with the Acquire of `Lane::serve`; publishes the records.
            self.channel().mail.word.store(mail.0, Ordering::Release);
            self.mark_batch(at);
        }
    }

    /// Spins, then yields, then sleeps until `done`. Runs no callbacks. `why` is for a
    /// recording; `what` is what a launched closure waits for, but for its call, which says so
    /// itself.
    #[inline(always)]
    pub(super) fn wait_until(
        &self,
        why: &'static Mark,
        what: Option<Wait>,
        mut done: impl FnMut() -> bool,
    ) {
        if trace::is_on() {
            return self.wait_marked(why, what, &mut done);
        }
        // About 2 µs of looking at every pause: several round trips.
        for _ in 0..self.trustee.settings.looks {
            if done() {
                return;
            }
            hint::spin_loop();
        }
        self.wait_longer(what, &mut done);
    }

    #[cold]
    pub(super) fn wait_longer(&self, what: Option<Wait>, done: &mut dyn FnMut() -> bool) {
        self.observe_wait();
        match member::wait_until(&self.trustee, what, done) {
            Ok(true) => return,
            Ok(false) => {}
            Err(ring) => panic!("{ring}"),
        }
        let mut backoff = Backoff::new();
        while !done() {
            // Who gives its CPU away rings first: whom it waits for may be next on that CPU.
            if backoff.is_yielding() {
                self.trustee.ring();
            }
            if backoff.is_spent() {
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
}

impl Drop for Client {
    /// Nothing is in flight any more: whoever drops the last reference finishes first.
    fn drop(&mut self) {
        self.leave();
        self.mark_end();
        let unclaimed = std::mem::take(&mut *self.channel().faults.lock().expect("never poisoned"));
        discard(unclaimed);
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
