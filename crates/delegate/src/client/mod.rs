//! The client's side of a channel: issuing. `room.rs` sees to room, `call.rs` to calls that
//! wait, `reap.rs` to answers.

pub(crate) mod apply_async;
pub(crate) mod apply_then;
mod call;
pub(crate) mod connect;
mod fallback_call;
pub(crate) mod future;
pub(crate) mod kind;
pub(crate) mod launch;
mod mark;
pub(crate) mod nested;
mod observe;
mod own;
mod pace;
pub(crate) mod poll;
mod reap;
pub(crate) mod room;
mod single_request;
pub(crate) mod suspend;

use crate::client::pace::Pace;
use crate::client::single_request::SingleRequest;
use crate::context::discard::discard;
use crate::context::member;
use crate::context::serving::Serving;
use crate::context::state::ThreadState;
use crate::object::shared::Shared;
use crate::observe::counts::Observer;
use crate::request::label::Label;
use crate::request::reaper::Reaper;
use crate::wait_graph::Wait;
use crate::wire::Channel;
use crate::wire::ring::{FIRST_UNITS, Rings, View};
use crate::wire::word::{Mail, Position, is_past, step};
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

/// The place of the next request, and of the one behind it.
pub(crate) struct Reservation<'a> {
    head: &'a AtomicU64,
    pub(crate) at: Position,
    next: Position,
    label: Label,
}

/// A client's half of a channel. It stays on its thread, and on lines of its own.
#[repr(align(128))]
pub(crate) struct Client {
    // What every request touches, together.
    channel: *const Channel,
    requests: Cell<View>,
    limit: Cell<Position>,
    callback_limit: Cell<Position>,
    pub(crate) trustee: Arc<Shared>,

    reaper: Reaper,
    single_request: SingleRequest,

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
    owned: Arc<Channel>,
    /// Counts, where the trustee is observed.
    observer: Option<Box<Observer>>,
    /// Which recording has heard of batches up to which request.
    marked: Cell<(u32, u32)>,
    /// Closures launched so far.
    launched: Cell<u64>,
}

impl Client {
    /// A channel to `trustee`, announced to it; `None` where it has been shut down.
    pub(crate) fn connect(trustee: &Arc<Shared>, thread: &Rc<ThreadState>) -> Option<Self> {
        let first = Rings::new(FIRST_UNITS);
        let (requests, answers) = (first.requests, first.answers);
        let origin = trustee.settings.origin;
        let reaper = Reaper::new(first, origin);
        let rings = reaper.newest();
        let views = [requests, answers];
        let channel = Arc::new(Channel::new(rings, views, origin, thread.launch));
        let client = Self {
            channel: Arc::as_ptr(&channel),
            requests: Cell::new(requests),
            limit: Cell::new(origin),
            callback_limit: Cell::new(origin),
            trustee: Arc::clone(trustee),
            reaper,
            single_request: SingleRequest::new(),
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
    fn channel(&self) -> &Channel {
        // SAFETY: `owned` keeps it.
        unsafe { &*self.channel }
    }

    #[inline(always)]
    fn rings(&self) -> &Rings {
        // SAFETY: the newest rings; freed only with the client.
        unsafe { &*self.rings.get() }
    }

    pub(crate) fn window(&self) -> u32 {
        self.window
    }

    /// The position of the next request. Who writes one asks once: behind the writes the
    /// compiler would look again where it lies.
    #[inline(always)]
    fn head(&self) -> &AtomicU64 {
        &self.channel().head
    }

    /// Where the next request goes. The head is its home: only this side writes it.
    #[inline(always)]
    fn position(&self) -> Position {
        Position(load_own(self.head()))
    }

    /// There, for a request of so many units.
    #[inline(always)]
    fn next_place(&self, label: Label, units: usize) -> Reservation<'_> {
        let head = self.head();
        let at = Position(load_own(head));
        Reservation {
            head,
            at,
            next: at.after(step(units)),
            label,
        }
    }

    /// Where a request of `units` at `at` goes: there is room for it.
    #[inline(always)]
    fn request(&self, at: Position, units: usize) -> *mut u64 {
        self.rings().touch_request(at.cursor(), units);
        self.requests.get().at(at.cursor())
    }

    /// The record before `next` is written: makes it known by our [head](Self::head). False
    /// where the trustee has to be roused.
    #[inline(always)]
    fn advance(&self, head: &AtomicU64, next: Position) -> bool {
        // Release: pairs with the Acquire of `Lane::serve_head` and `Lane::drain`;
        // publishes the record.
        head.store(next.0, Ordering::Release);
        self.trustee.is_awake()
    }

    /// Rouses the trustee. Where it has been shut down without running the request at
    /// `at`, takes that out of the ring again and returns false.
    #[cold]
    fn rouse_or_retract(&self, at: Position) -> bool {
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

    /// Publishes by the mail word what has not been published. Not behind a single request or a
    /// call that has not been answered: the trustee looks at the head when it has run that.
    pub(crate) fn flush(&self) {
        let at = self.position();
        let cursor = at.cursor();
        let is_new = self.mail.get().cursor() != cursor;
        if is_new && !self.calling.get() && !self.is_single_request_unanswered() {
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
    fn wait_until(&self, why: &'static Mark, what: Option<Wait>, mut done: impl FnMut() -> bool) {
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
    fn wait_longer(&self, what: Option<Wait>, done: &mut dyn FnMut() -> bool) {
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
