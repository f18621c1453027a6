//! The trustee: the thread that owns objects, from its first pass to its last.
//!
//! ```text
//!       idle for the budget
//!   AWAKE ───────────────► DOZING ── heavy barrier, nothing found ──► asleep in the
//!     ▲                      │                                        thread's sleeper
//!     └── something found ───┴── roused, or an answer has come ──────────┘
//!
//!   AWAKE ── close ──► CLOSED ── all served, all values dropped ──► GONE
//! ```
//! A [hosted](hosted) trustee is CLOSING before that, and perhaps AWAKE again.
//!
//! All trustees sleep in one way, in their thread's one sleeper: what their closures have asked of
//! other trustees makes them clients too, whom answers wake. So do members of flat teams while
//! their functions wait, and trustees beside whose loops closures run.
//!
//! **No request is stranded.** A client publishes, passes the light barrier and looks at
//! the state; the trustee says DOZING (or CLOSED), passes the heavy barrier and looks at
//! every head and at the inbox. One of the two sees the other: either the trustee finds
//! the request, or the client finds a state other than AWAKE and rouses (or learns that
//! it came too late, and takes its request back).
//!
//! **No answer is missed.** A trustee that waits for another one looks, after the same barrier,
//! whether there is something to reap or that one's tail has moved, as a thread does that waits in
//! [`Client::wait_until`](crate::channel::client::Client). What that look does not find wakes the
//! sleeper.

mod hosted;
mod idle;

use self::idle::Idle;
use crate::channel::Channel;
use crate::channel::groups::Groups;
use crate::channel::lane::Lane;
use crate::channel::word::Position;
use crate::entrust;
use crate::flat::member::work;
use crate::flat::policy::Policy;
use crate::flat::seat::{Job, Seat};
use crate::inbox::{Inbox, Kind, Node};
use crate::leaf::Leaf;
use crate::marks;
use crate::metrics::{Counters, Metrics};
use crate::nested;
use crate::object::{Header, Object};
use crate::report::State;
use crate::report::roster::Roster;
use crate::report::sampler::{Sampler, Samples};
use crate::serving::Serving;
use crate::slot::Slot;
use crate::thread::{is_client, retire_clients};
use crate::trust::Trust;
use corelay_sync::facade::MODEL;
use corelay_sync::facade::atomic::{AtomicBool, Ordering};
use corelay_sync::facade::sync::Arc;
use corelay_sync::trace;
use corelay_sync::wait::{Host, Sleeper, Token};
use corelay_sync::{CachePadded, Futex, barrier};
use std::cell::{Cell, RefCell};
use std::mem::offset_of;
use std::rc::Rc;
use std::time::Duration;

/// Polling, and publishing needs no fence: the one state of the fast path.
const AWAKE: u32 = 0;
/// Polling, where the barrier is not asymmetric: every publication must fence.
const AWAKE_FENCED: u32 = 1;
/// Asleep in its thread's sleeper, or about to be.
const DOZING: u32 = 2;
const CLOSED: u32 = 3;
const GONE: u32 = 4;
/// Closed, for now at least: see `hosted`.
const CLOSING: u32 = 5;

/// The state of a trustee that polls.
fn awake() -> u32 {
    if barrier::is_asymmetric() {
        AWAKE
    } else {
        AWAKE_FENCED
    }
}

/// Idle polls after which the heads are looked at. On the reference machine this keeps the
/// line of a busy client's head with the client and still bounds the wait of a request
/// that its client has not published to a few microseconds.
const LOOK_AFTER: u32 = if MODEL { 1 } else { 256 };

/// Passes with work after which the heads are looked at, however busy the trustee is.
const LOOK_WHEN_BUSY: u32 = if MODEL { 2 } else { 64 };

/// What a trustee and its channels are set to.
pub(crate) struct Settings {
    /// Requests in flight per client.
    pub(crate) window: u32,
    /// Requests of one client before the next one's turn.
    pub(crate) batch: u32,
    /// How long an idle trustee polls before it sleeps.
    pub(crate) spin: Duration,
    /// Looks of a waiting client before it yields.
    pub(crate) looks: u32,
    /// Units up to which a client's rings grow.
    pub(crate) ring_units: u32,
    /// Where positions begin: tests begin shortly before the wrap.
    pub(crate) origin: Position,
    /// Without catch, poison and counts: see `Builder::bare`.
    pub(crate) bare: bool,
    /// See `Builder::response_groups`.
    pub(crate) groups: bool,
    /// Of a member of a flat team.
    pub(crate) policy: Option<Policy>,
    /// See `Builder::observe`.
    pub(crate) observe: bool,
    /// The CPU that the trustee is pinned to.
    pub(crate) cpu: Option<usize>,
    /// See `Builder::stack_size`.
    pub(crate) stack_size: Option<usize>,
    /// See `Builder::host`.
    pub(crate) host: Option<Host>,
}

/// What a trustee shares with its clients and its objects.
pub(crate) struct Shared {
    /// [`AWAKE`] and so on. Clients look at it with every request.
    pub(crate) state: CachePadded<Futex>,
    pub(crate) inbox: CachePadded<Inbox>,
    pub(crate) counters: Counters,
    pub(crate) settings: Settings,
    pub(crate) slot: Slot,
    pub(crate) name: String,
    /// Names of objects and clients, for reports.
    pub(crate) roster: Roster,
    /// Where lone calls are answered, if not in their lines.
    pub(crate) groups: Option<Groups>,
    /// How long closures take, where that is observed.
    pub(crate) samples: Option<std::sync::Arc<Samples>>,
    close: Node,
    /// Requests that wait here are to be refused: see `held::circle`.
    has_refusals: AtomicBool,
    /// Its thread asks for nothing more, but for destructors of thread-locals.
    pub(crate) ended: Token,
    pub(crate) seat: Seat,
}

impl Shared {
    pub(crate) fn new(settings: Settings, name: String) -> Self {
        Self {
            state: CachePadded::new(Futex::new(awake())),
            inbox: CachePadded::new(Inbox::new()),
            counters: Counters::default(),
            groups: settings.groups.then(Groups::default),
            samples: settings.observe.then(std::sync::Arc::default),
            settings,
            slot: Slot::take(),
            name,
            roster: Roster::default(),
            close: Node::new(Kind::Close),
            has_refusals: AtomicBool::new(false),
            ended: Token::new(),
            seat: Seat::new(),
        }
    }

    /// Call it after publishing: true where the trustee polls and will find it. Otherwise
    /// ask [`rouse_if_needed`](Self::rouse_if_needed).
    #[inline(always)]
    pub(crate) fn is_awake(&self) -> bool {
        // Pairs with the heavy barrier of a trustee that goes to sleep or closes: it sees
        // what was published, or this sees its state. Where the barrier is not asymmetric
        // the state is never AWAKE, and `rouse_if_needed` fences.
        barrier::compiler_only();
        // Relaxed: ordered by the barrier.
        self.state.word().load(Ordering::Relaxed) == AWAKE
    }

    /// Makes sure that the trustee will look around once more; false where it has closed.
    /// Call it after publishing.
    #[cold]
    pub(crate) fn rouse_if_needed(&self) -> bool {
        barrier::light();
        let state = self.state.word();
        // Relaxed: ordered by the barrier; the exchanges below decide.
        let mut seen = state.load(Ordering::Relaxed);
        loop {
            if matches!(seen, AWAKE | AWAKE_FENCED) {
                return true;
            }
            if matches!(seen, CLOSING | CLOSED | GONE) {
                return false;
            }
            // Release: pairs with the Acquire of `doze`; what was published before is seen in
            // the next pass. Acquire: pairs with its Release; the sleeper is there.
            match state.compare_exchange(seen, awake(), Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => {
                    self.seat.wake();
                    return true;
                }
                Err(now) => seen = now,
            }
        }
    }

    /// The trustee's thread sleeps in its own sleeper, unless `look` finds an answer that it waits
    /// for, or something to serve at any head. It may return early.
    ///
    /// **Nothing is missed.** The trustee says DOZING, then that its thread sleeps, passes the
    /// heavy barrier, and looks at its answers, at every head, and whether it still dozes. A
    /// client publishes, passes the light barrier, and looks at the state. Where it sees
    /// DOZING it says AWAKE and wakes the thread: which sleeps, or will see that it dozes no
    /// more. Where it sees AWAKE, its request was there before DOZING was said and is found;
    /// or another client has said AWAKE, and the same holds for that one's wake-up.
    pub(crate) fn doze(&self, sleeper: &Sleeper, look: impl FnOnce() -> bool) {
        let state = self.state.word();
        // Release: pairs with the Acquire of `rouse_if_needed`; publishes where the thread sleeps.
        // An exchange, here as below: it continues the order of the word's changes where a client
        // has changed it, also in loom's eyes.
        state.swap(DOZING, Ordering::Release);
        // Relaxed: ordered by the barrier of the sleeper.
        sleeper.sleep(None, || look() || state.load(Ordering::Relaxed) != DOZING);
        // Acquire: pairs with the Release of `rouse_if_needed`.
        state.swap(awake(), Ordering::Acquire);
    }

    /// Requests that wait here are to be refused.
    pub(crate) fn tell_of_refusals(&self) {
        // Release: pairs with the Acquire of `take_refusals`; the graph's lock has the rest.
        self.has_refusals.store(true, Ordering::Release);
        self.rouse_if_needed();
    }

    /// True where the trustee has been told of such since it last asked.
    pub(crate) fn take_refusals(&self) -> bool {
        // Relaxed: asked in every pass; what is seen late is seen by the next one, or behind the
        // barrier of `doze`.
        self.has_refusals.load(Ordering::Relaxed)
            // Acquire: pairs with the Release of `tell_of_refusals`.
            && self.has_refusals.swap(false, Ordering::Acquire)
    }

    /// Somebody waits for the trustee: where it is a member that has other work, it may want
    /// to know.
    pub(crate) fn ring(&self) {
        if self.settings.policy.is_some() {
            self.seat.ring();
        }
    }

    /// True once the trustee takes no requests any more.
    pub(crate) fn is_closed(&self) -> bool {
        // Relaxed: a hint.
        matches!(self.state.word().load(Ordering::Relaxed), CLOSED | GONE)
    }

    /// True while the trustee finds out whether it takes requests again.
    pub(crate) fn is_closing(&self) -> bool {
        // Relaxed: a hint.
        self.state.word().load(Ordering::Relaxed) == CLOSING
    }

    /// Waits until the trustee knows whether it takes requests again. Not on a trustee that is
    /// CLOSING itself or has closed: see `nested`.
    pub(crate) fn wait_until_decided(&self) {
        while self.is_closing() {
            self.state.wait(CLOSING, None);
        }
    }

    /// True once the trustee has ended.
    pub(crate) fn is_gone(&self) -> bool {
        // Acquire: pairs with the Release of `Trustee::close`.
        self.state.word().load(Ordering::Acquire) == GONE
    }

    /// What the trustee does, for reports.
    pub(crate) fn standing(&self) -> State {
        if self.is_gone() {
            return State::ShutDown;
        }
        // Relaxed: a figure.
        match self.state.word().load(Ordering::Relaxed) {
            AWAKE | AWAKE_FENCED => State::Awake,
            DOZING => State::Asleep,
            _ => State::Closing,
        }
    }

    /// Waits for a trustee that has closed to end; false where it takes requests again instead.
    pub(crate) fn wait_until_gone(&self) -> bool {
        loop {
            // Acquire: pairs with the Release of `Trustee::close`.
            match self.state.word().load(Ordering::Acquire) {
                GONE => return true,
                now @ (CLOSING | CLOSED) => self.state.wait(now, None),
                _ => return false,
            }
        }
    }

    /// Asks the trustee to serve what was accepted and end. Call it once.
    pub(crate) fn close(&self) {
        // SAFETY: a node of its own, pushed once; `self` outlives the trustee.
        if unsafe { self.inbox.push(&raw const self.close) } {
            self.rouse_if_needed();
        }
    }
}

/// What the trustee keeps of its objects: itself an object, the first one it owns.
#[derive(Default)]
pub(crate) struct Registry {
    objects: Vec<*mut Header>,
}

// SAFETY: the pointers are only followed by the trustee, to which the registry belongs.
unsafe impl Send for Registry {}

impl Registry {
    /// Takes an object in.
    pub(crate) fn adopt(&mut self, object: *mut Header) {
        let place = u32::try_from(self.objects.len()).expect("fewer than 2^32 objects");
        // SAFETY: just made, alive.
        unsafe { &*object }.place.set(place);
        self.objects.push(object);
    }

    fn dismiss(&mut self, object: *mut Header) {
        // SAFETY: alive: retired, not freed.
        let place = unsafe { &*object }.place.get();
        let removed = self.objects.swap_remove(place as usize);
        debug_assert_eq!(removed, object);
        if let Some(&moved) = self.objects.get(place as usize) {
            // SAFETY: in the registry, so alive.
            unsafe { &*moved }.place.set(place);
        }
    }
}

/// A trustee on its own thread.
pub(crate) struct Trustee {
    shared: Arc<Shared>,
    home: *mut Object<Registry>,
    lanes: Vec<Lane>,
    serving: Rc<Serving>,
    passes: u64,
    found: u64,
    sleeps: u64,
    rings: u64,
    retired: RefCell<Vec<*mut Header>>,
    since_look: u32,
    job: Option<Job>,
    closing: bool,
    /// A recording is under way, as of the last look at the heads: here, because each pass asks.
    is_recorded: Cell<bool>,
}

impl Trustee {
    pub(crate) fn new(shared: Arc<Shared>, home: *mut Object<Registry>) -> Self {
        let sampler = shared.samples.clone().map(Sampler::new);
        let serving = Serving::new(shared.slot.get(), shared.settings.bare, sampler);
        Self {
            shared,
            home,
            lanes: Vec::new(),
            serving: Rc::new(serving),
            passes: 0,
            found: 0,
            sleeps: 0,
            rings: 0,
            retired: RefCell::new(Vec::new()),
            since_look: 0,
            job: None,
            closing: false,
            is_recorded: Cell::new(trace::is_on()),
        }
    }

    /// Serves until it is asked to close.
    pub(crate) fn run(self) {
        let (shared, serving) = (Arc::clone(&self.shared), Rc::clone(&self.serving));
        marks::begin(&shared);
        serving.make_current(|| match shared.settings.host {
            None => self.serve(),
            Some(_) => self.serve_hosted(),
        });
        nested::finish();
        retire_clients();
        marks::end(&serving);
        shared.ended.notify();
    }

    fn serve(mut self) {
        let Settings { batch, spin, .. } = self.shared.settings;
        let sleeper = self.shared.seat.take_sleeper();
        let mut idle = Idle::default();
        while !self.closing {
            let ran = self.pass(false, batch);
            let waits_for_others = is_client() && self.serve_own_requests();
            if ran > 0 {
                idle.end();
                if let Some(job) = self.job.take() {
                    self = work(self, job);
                }
                continue;
            }
            if !idle.is_time_to_look(self.lanes.len()) {
                continue;
            }
            if self.look_again() {
                idle.end();
                continue;
            }
            self.publish_metrics();
            if idle.is_time_to_sleep(spin, waits_for_others) {
                self.doze(&sleeper, waits_for_others);
            }
        }
        self.refuse_and_drain(CLOSED);
        self.close();
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// One look at every lane and at the inbox, and where that finds nothing and `heads` says
    /// so, at every head; the number of things found. Of each client at most `batch` requests.
    #[inline(always)]
    pub(crate) fn pass(&mut self, heads: bool, batch: u32) -> u32 {
        if self.is_recorded.get() {
            return self.marked_pass(heads, batch);
        }
        self.plain_pass(heads, batch)
    }

    #[cold]
    #[inline(never)]
    fn marked_pass(&mut self, heads: bool, batch: u32) -> u32 {
        let serving = Rc::clone(&self.serving);
        marks::pass(&serving, || self.plain_pass(heads, batch))
    }

    #[inline(always)]
    fn plain_pass(&mut self, heads: bool, batch: u32) -> u32 {
        self.passes += 1;
        // First, so that a client that has just come is served by the same pass.
        let mut ran = self.read_news();
        for lane in &self.lanes {
            ran += lane.serve(&self.serving, batch);
        }
        self.answer_groups();
        if ran == 0 && heads {
            ran = self.look_at_heads(batch);
        } else if ran > 0 {
            // However busy others keep us, every head is looked at now and then.
            self.since_look += 1;
            if self.since_look >= LOOK_WHEN_BUSY {
                self.since_look = 0;
                self.look_at_heads(batch);
                if !MODEL {
                    self.publish_metrics();
                }
            }
        }
        self.found += u64::from(ran > 0);
        ran
    }

    #[inline(always)]
    fn read_news(&mut self) -> u32 {
        let has_news = self.shared.inbox.has_news();
        if has_news {
            self.read_inbox();
        }
        u32::from(has_news)
    }

    /// The member has found its doorbell rung.
    pub(crate) fn count_ring(&mut self) {
        self.rings += 1;
    }

    /// Sends what closures have asked for and what found no room then.
    pub(crate) fn send_nested(&self) {
        if self.serving.nested.get() {
            nested::drain(&self.serving);
        }
    }

    /// Looks after what closures have asked of other trustees. True where answers are still
    /// to come, or room.
    #[cold]
    fn serve_own_requests(&self) -> bool {
        nested::take_answers(&self.serving);
        // After the callbacks, which make room.
        self.send_nested();
        // After that, for what has just been sent is to be answered.
        nested::waits_for_others(&self.serving)
    }

    /// Looks at every head; true where there is something.
    fn look_again(&mut self) -> bool {
        let ran = marks::pass(&self.serving, || {
            self.look_at_heads(self.shared.settings.batch)
        });
        self.found += u64::from(ran > 0);
        ran > 0
    }

    fn look_at_heads(&self, batch: u32) -> u32 {
        self.is_recorded.set(trace::is_on());
        let mut ran = 0;
        for lane in &self.lanes {
            ran += lane.serve_head(&self.serving, batch);
        }
        self.answer_groups();
        ran
    }

    /// Tells the clients of response groups what has been run for them.
    #[inline(always)]
    fn answer_groups(&self) {
        if self.serving.unanswered.get() {
            self.serving.unanswered.set(false);
            self.lanes.iter().for_each(Lane::copy_answers);
            self.lanes.iter().for_each(Lane::wake_answered);
        }
    }

    /// Sleeps until there is work or, where the trustee waits for others, one of them has gone on,
    /// unless that is found on the way: see [`Shared::doze`].
    fn doze(&mut self, sleeper: &Sleeper, waits_for_others: bool) {
        let shared = Arc::clone(&self.shared);
        shared.doze(sleeper, || {
            let finds = self.shared.inbox.has_news()
                || self.look_again()
                || (waits_for_others && nested::have_others_gone_on())
                || (self.shared.settings.host.is_some() && self.has_turns());
            if !finds {
                self.sleeps += 1;
                self.publish_metrics();
            }
            finds
        });
    }

    /// Takes the news; drops objects whose last handle has gone.
    fn read_inbox(&mut self) {
        for node in self.shared.inbox.take() {
            self.read(node);
        }
        if self.retired.borrow().is_empty() {
            return;
        }
        // Every request accepted before a last handle went away was published before it
        // was announced here: run them all, then drop.
        for lane in &self.lanes {
            lane.drain(&self.serving);
        }
        for header in self.retired.take() {
            if self.serving.is_held(header) {
                self.serving.holds.retire(header);
            } else {
                self.drop_object(header);
            }
        }
    }

    /// Drops an object whose last handle has gone, and whose requests have run.
    fn drop_object(&mut self, header: *mut Header) {
        self.shared.roster.dismiss(&[header]);
        self.registry().dismiss(header);
        self.drop_value(header);
        // SAFETY: no handle, no request, no registry knows it any more.
        unsafe { Header::free(header) };
    }

    fn read(&mut self, node: *mut Node) {
        // SAFETY: valid until we have taken it, which is now.
        match unsafe { &*node }.kind {
            Kind::Register => {
                let channel = container(node, offset_of!(Channel, register));
                // SAFETY: the count that `Client::connect` announced.
                let channel = unsafe { Arc::from_raw(channel.cast::<Channel>()) };
                let serving = Rc::clone(&self.serving);
                self.lanes.push(Lane::new(channel, serving));
            }
            Kind::Detach => {
                let channel = container(node, offset_of!(Channel, detach));
                // SAFETY: the count that `Client::drop` announced.
                let channel = unsafe { Arc::from_raw(channel.cast::<Channel>()) };
                self.lanes
                    .retain(|lane| !Arc::ptr_eq(&lane.channel, &channel));
            }
            Kind::Retire => {
                let header = container(node, offset_of!(Header, node)).cast::<Header>();
                self.retired.borrow_mut().push(header.cast_mut());
            }
            Kind::Close => self.closing = true,
            Kind::Work => self.job = self.shared.seat.take(),
        }
    }

    /// Refuses from now on, as `state` says, and serves what was accepted.
    fn refuse_and_drain(&mut self, state: u32) {
        // Relaxed: ordered by the barrier.
        self.shared.state.word().swap(state, Ordering::Relaxed);
        // Pairs with the light barrier of every publication: what is not found below was
        // not accepted, its client sees the state.
        barrier::heavy();
        self.read_inbox();
        for lane in &self.lanes {
            lane.drain(&self.serving);
        }
        self.answer_groups();
    }

    /// Drops the values; everything accepted has been served.
    fn close(&mut self) {
        // What closures have asked for was accepted too.
        nested::send_last(&self.serving);
        self.serving.disown();
        self.shared.roster.close();
        // Objects retired by what has just run are in the registry still: all alike.
        for header in std::mem::take(&mut self.registry().objects) {
            self.drop_value(header);
        }
        for node in self.shared.inbox.close() {
            self.read(node);
        }
        for header in self.retired.take() {
            // SAFETY: its value has been dropped above, and its last handle is gone.
            unsafe { Header::free(header) };
        }
        self.lanes.clear();
        // SAFETY: ours alone, made for us.
        unsafe { Header::drop_value(self.home.cast()) };
        // SAFETY: as above.
        unsafe { Header::free(self.home.cast()) };
        self.publish_metrics();
        // Release: pairs with the Acquire of `wait_until_gone`; a client that waits for it
        // sees the final tails.
        self.shared.state.word().store(GONE, Ordering::Release);
        self.shared.state.wake_all();
    }

    /// An object for `value`, of this trustee.
    pub(crate) fn adopt<T>(&mut self, value: T) -> Trust<T> {
        let shared = Arc::clone(&self.shared);
        entrust::adopt(self.registry(), value, &shared)
    }

    fn registry(&mut self) -> &mut Registry {
        // SAFETY: no closure runs now, so nobody else has a reference to it.
        unsafe { Object::value(self.home) }
    }

    fn drop_value(&self, header: *mut Header) {
        self.serving.forget_poison(header);
        let _leaf = Leaf::enter_destructor();
        // SAFETY: called once per object, on its trustee, when no request is left.
        self.serving
            .contain(|| unsafe { Header::drop_value(header) });
    }

    pub(crate) fn publish_metrics(&self) {
        self.shared.counters.store(&Metrics {
            requests: self.serving.requests.get(),
            batches: self.serving.batches.get(),
            passes: self.passes,
            passes_with_work: self.found,
            sleeps: self.sleeps,
            rings: self.rings,
            panics: self.serving.panics.get(),
        });
    }
}

/// The address of what has `node` at `offset`.
fn container(node: *mut Node, offset: usize) -> *const u8 {
    node.cast::<u8>().cast_const().wrapping_sub(offset)
}

// Loom has no clock: in the models every look finds the budget used up.
