//! The client's side of a channel: a client, how it advances the ring, publishes and waits.
//! `room.rs` makes room for requests, `call.rs` makes calls that wait, and `reap.rs` takes answers.

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
pub(crate) mod parked;
pub(crate) mod poll;
pub(crate) mod post_async;
mod reap;
pub(crate) mod room;
mod single_request;
pub(crate) mod suspend;

use crate::client::pace::Pace;
use crate::client::single_request::SingleRequest;
use crate::context::discard::{discard, wake};
use crate::context::events;
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
use crate::wire::waiters::Waiters;
use crate::wire::word::{Mail, Position, is_past, step};
use corelay_sync::Backoff;
use corelay_sync::facade::atomic::{AtomicU64, Ordering, load_own};
use corelay_sync::facade::hint;
use corelay_sync::facade::sync::Arc;
use corelay_sync::trace::{self, Mark};
use std::cell::Cell;
use std::rc::Rc;

/// The reason for which a request was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// There is no room for the request, and the caller does not want to wait or cannot.
    Full,
    /// The trustee has been shut down.
    Closed,
}

/// The measures that a client takes for a request that finds no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Wait for room. Inside a callback no room can be made, so the request goes as a mail call,
    /// and the client waits for its answer.
    Wait,
    /// Give up: the request is refused.
    Try,
    /// Give up if there is no room for so many other requests too, of tasks that came before. Do not
    /// raise the panics of callbacks that run meanwhile: the future would be lost. Inside a callback
    /// like `Wait`.
    Park {
        /// The number of tasks that came before.
        ahead: u32,
    },
    /// Wait as `Wait` does, but do not raise the panics of callbacks that run meanwhile, because
    /// the request borrows from the caller's frame.
    Hold,
    /// Give up, run no callbacks and raise no panics. For a trustee that sends the requests made
    /// inside its closures.
    Inside,
    /// Go beyond the window rather than give up; otherwise like `Inside`. For a trustee that ends
    /// and sends its last requests.
    Last,
}

impl Patience {
    /// Whether the sender is a trustee, which sends the requests made inside its closures and must
    /// not wait.
    pub(crate) fn is_trustees(self) -> bool {
        matches!(self, Self::Inside | Self::Last)
    }

    /// Whether panics of callbacks that have run meanwhile are raised once the request is accepted.
    pub(crate) fn raises(self) -> bool {
        matches!(self, Self::Wait | Self::Try)
    }

    /// The number of tasks whose room the request must leave to them.
    fn ahead(self) -> u32 {
        match self {
            Self::Park { ahead } => ahead,
            _ => 0,
        }
    }
}

/// The place of the next request in the ring and the place after it, found by the fast path.
pub(crate) struct Reservation<'a> {
    head: &'a AtomicU64,
    pub(crate) at: Position,
    next: Position,
    label: Label,
}

/// A client's half of the channel to one trustee: one thread, or one launched closure, sends
/// requests by it and takes the answers. It stays on its thread, and on cache lines of its own.
#[repr(align(128))]
pub(crate) struct Client {
    // The fields that every request touches, together.
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
    /// Whether the client's trustee serves on this very thread, as a member of a flat team.
    own: bool,
    /// Whether a mail call is under way, for whose result its caller waits.
    calling: Cell<bool>,
    /// Whether the trustee had ended before the channel was announced.
    never_announced: Cell<bool>,
    owned: Arc<Channel>,
    /// The client's counters, if the trustee is observed.
    observer: Option<Box<Observer>>,
    /// The number of the recording to which the client has last reported a batch, and the count of
    /// requests published by then.
    marked: Cell<(u32, u32)>,
    /// The number of closures that this client has launched so far.
    launched: Cell<u64>,
}

impl Client {
    /// Makes a channel to `trustee` and announces it. Returns `None` if the trustee has been shut
    /// down.
    pub(crate) fn connect(trustee: &Arc<Shared>, thread: &Rc<ThreadState>) -> Option<Self> {
        let first = Rings::new(FIRST_UNITS);
        let (requests, answers) = (first.requests, first.answers);
        let origin = trustee.settings.origin;
        let reaper = Reaper::new(first, origin);
        let rings = reaper.newest();
        let views = [requests, answers];
        let channel = Arc::new(Channel::new(
            rings,
            views,
            origin,
            trustee.settings.window,
            thread.launch,
        ));
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
        // A count for the trustee, which gives it back at `detach`.
        let announced = Arc::into_raw(Arc::clone(&client.owned));
        // SAFETY: the count that was made for the trustee keeps the channel alive.
        let node = unsafe { &raw const (*announced).register };
        // SAFETY: the node is the channel's own, is pushed once, and lives as long as the trustee's
        // count.
        if unsafe { trustee.inbox.push(node) } {
            trustee.rouse_if_needed();
            client.join();
            client.mark_begin();
            Some(client)
        } else {
            // SAFETY: takes back the count made above, which no trustee has taken over.
            drop(unsafe { Arc::from_raw(announced) });
            client.reaper.gone.set(true);
            client.never_announced.set(true);
            None
        }
    }

    #[inline(always)]
    fn channel(&self) -> &Channel {
        // SAFETY: `owned` keeps the channel as long as this client.
        unsafe { &*self.channel }
    }

    #[inline(always)]
    fn rings(&self) -> &Rings {
        // SAFETY: these are the newest rings, which are freed only with the client.
        unsafe { &*self.rings.get() }
    }

    fn waiters(&self) -> &Waiters {
        &self.channel().waiters
    }

    pub(crate) fn window(&self) -> u32 {
        self.window
    }

    /// The channel's word with the position of the next request. The writer of a request takes this
    /// reference once, because the compiler would compute the address again after the writes.
    #[inline(always)]
    fn head(&self) -> &AtomicU64 {
        &self.channel().head
    }

    /// The position of the next request, read from the [head](Self::head), which this client alone
    /// writes.
    #[inline(always)]
    fn position(&self) -> Position {
        Position(load_own(self.head()))
    }

    /// The place of the next request, which takes so many units, whether there is room for it or
    /// not.
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

    /// The address at which a request of `units` at `at` is to be written. The caller has made room
    /// for it.
    #[inline(always)]
    fn request(&self, at: Position, units: usize) -> *mut u64 {
        self.rings().touch_request(at.cursor(), units);
        self.requests.get().at(at.cursor())
    }

    /// Advances the [head](Self::head) after the record before `next` has been written. Returns
    /// false if the trustee has to be roused.
    #[inline(always)]
    fn advance(&self, head: &AtomicU64, next: Position) -> bool {
        // Release: pairs with the Acquire of `Lane::serve_head` and `Lane::drain`; publishes the
        // record.
        head.store(next.0, Ordering::Release);
        self.trustee.is_awake()
    }

    /// Rouses the trustee. If the trustee has ended without running the request at `at`, takes that
    /// out of the ring again and returns false.
    #[cold]
    fn rouse_or_retract(&self, at: Position) -> bool {
        if self.rouse_or_learn_that_it_is_gone()
            || is_past(self.reaper.tail().cursor(), at.cursor())
        {
            return true;
        }
        // Relaxed: the trustee has ended, so nobody reads it any more.
        self.channel().head.store(at.0, Ordering::Relaxed);
        self.stop_fast_path();
        false
    }

    /// Rouses the trustee. Returns false if it has ended instead; its last tail is known then.
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

    /// Publishes by the mail word everything that is not published yet. Does nothing while a single
    /// request or a call is unanswered: the trustee looks at the head when it has run that.
    pub(crate) fn flush(&self) {
        let at = self.position();
        let cursor = at.cursor();
        let is_new = self.mail.get().cursor() != cursor;
        self.observe_pop(is_new);
        if is_new && !self.calling.get() && !self.is_single_request_unanswered() {
            let mail = self.mail.get().with_cursor(cursor);
            self.mail.set(mail);
            // Release: pairs with the Acquire of `Lane::serve`; publishes the records.
            self.channel().mail.word.store(mail.0, Ordering::Release);
            self.mark_batch(at);
        }
    }

    /// Waits until `done` returns true: spins, then yields, then sleeps. Runs no callbacks. `why`
    /// names the wait in a recording. `what` is the wait that a launched closure enters into the
    /// graph of waits; it is `None` for a mail call, whose deferral enters it.
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
            Err(ring) => {
                events::refused_circular(&ring);
                panic!("{ring}")
            }
        }
        let mut backoff = Backoff::new();
        while !done() {
            // Rings before it gives its CPU away: the thread that it waits for may be next on that
            // CPU.
            if backoff.is_yielding() {
                self.trustee.ring();
                self.trustee.left_cpu.leave_this();
            }
            if backoff.is_spent() {
                self.channel().sleeper.sleep(None, || {
                    // After the sleeper's barrier: see `Bell::hear`.
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
    /// Tells the trustee that the client goes, and frees its half. Nothing is in flight any more,
    /// because the owner of the last reference finishes the client first.
    fn drop(&mut self) {
        self.leave();
        self.mark_end();
        self.waiters().close().into_iter().for_each(wake);
        let unclaimed = std::mem::take(&mut *self.channel().faults.lock().expect("never poisoned"));
        discard(self.trustee.keep_failures(unclaimed));
        self.reaper.free_rings();
        if self.never_announced.get() {
            return;
        }
        let announced = Arc::into_raw(Arc::clone(&self.owned));
        // SAFETY: the count that was made above keeps the channel alive.
        let node = unsafe { &raw const (*announced).detach };
        // SAFETY: the node is the channel's own, is pushed once, and lives as long as that count.
        if unsafe { self.trustee.inbox.push(node) } {
            self.trustee.rouse_if_needed();
        } else {
            // SAFETY: takes back the count made above, which no trustee has taken over.
            drop(unsafe { Arc::from_raw(announced) });
        }
    }
}
