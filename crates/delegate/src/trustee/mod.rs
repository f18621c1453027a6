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
//! A [`hosted`] trustee is CLOSING before CLOSED, and perhaps AWAKE again.
//!
//! All trustees sleep in one way, in their thread's one sleeper: requests of their closures to
//! other trustees make them clients too, which answers wake. Members of flat teams sleep there too
//! while their functions wait, and so do trustees beside whose loops closures run.
//!
//! **No request is stranded.** A client publishes, passes the light barrier and looks at the state;
//! the trustee stores DOZING (or CLOSED), passes the heavy barrier and looks at every head and at
//! the inbox. One of the two sees the other: either the trustee finds the request, or the client
//! finds a state other than AWAKE and rouses (or learns that it came too late, and takes its
//! request back).
//!
//! **No answer is missed.** A trustee that waits for another one looks, after the same barrier,
//! whether there is something to reap or that one's tail has moved, as a thread does that waits in
//! [`Client::wait_until`](crate::client::Client). Later answers wake the sleeper.

mod hosted;
mod idle;
mod marks;
pub(crate) mod spawn;

use self::idle::Idle;
use crate::client::nested;
use crate::context::leaf::Leaf;
use crate::context::serving::Serving;
#[cfg(any(unix, corelay_loom, corelay_shuttle))]
use crate::context::thread::state;
use crate::context::thread::{is_client, retire_clients};
use crate::lane::Lane;
use crate::metrics::Metrics;
use crate::object::handle::Handle;
use crate::object::parcel::Order;
use crate::object::registry::Registry;
use crate::object::shared::{CLOSED, GONE, Settings, Shared};
use crate::object::{Header, Object};
use crate::observe::sampler::Sampler;
use crate::wire::Channel;
use crate::wire::inbox::{News, Node};
use corelay_sync::facade::MODEL;
use corelay_sync::facade::atomic::Ordering;
use corelay_sync::facade::sync::Arc;
use corelay_sync::wait::Sleeper;
use corelay_sync::{barrier, trace};
use std::cell::{Cell, RefCell};
use std::mem::offset_of;
use std::rc::Rc;

/// Work that a trustee's thread does in place of its loop, given to it by its
/// [thread](crate::object::thread). Gives the trustee back.
pub(crate) type Work = Box<dyn FnOnce(Trustee) -> Trustee + Send>;

/// Idle polls after which the heads are looked at. On the reference machine this leaves the line of
/// a busy client's head with the client, and still bounds the wait of a request that its client has
/// not published to a few microseconds.
const LOOK_AFTER: u32 = if MODEL { 1 } else { 256 };

/// Passes with work after which the heads are looked at and the metrics published, however busy the
/// trustee is.
const LOOK_WHEN_BUSY: u32 = if MODEL { 2 } else { 64 };

/// A trustee on its own thread: its lanes, its objects and its counters.
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
    work: Option<Work>,
    closing: bool,
    /// Whether a recording is under way, as of the last look at the heads. Kept here because each
    /// pass asks.
    is_recorded: Cell<bool>,
}

impl Trustee {
    pub(crate) fn new(shared: Arc<Shared>, home: *mut Object<Registry>) -> Self {
        let slow = shared.settings.slow;
        let samples = shared.samples.clone();
        let sampler = samples.map(|samples| Sampler::new(samples, slow));
        let serving = Serving::new(shared.number.get(), sampler);
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
            work: None,
            closing: false,
            is_recorded: Cell::new(trace::is_on()),
        }
    }

    /// Runs the trustee's whole life on the calling thread: serves until it is asked to close,
    /// serves what was accepted, and drops the values.
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
        let sleeper = self.shared.thread.take_sleeper();
        let mut idle = Idle::default();
        while !self.closing {
            let ran = self.pass(false, batch);
            let waits_for_others = is_client() && self.serve_own_requests();
            if ran > 0 {
                idle.end();
                if let Some(work) = self.work.take() {
                    self = work(self);
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
            if idle.is_time_to_sleep(spin, waits_for_others || self.is_on_a_clients_cpu()) {
                self.doze(&sleeper, waits_for_others);
            }
        }
        self.refuse_and_drain(CLOSED);
        self.close();
    }

    /// Whether a client that waits has left this CPU to the trustee. Then an idle trustee gives it
    /// back: the client cannot take its answer before.
    fn is_on_a_clients_cpu(&self) -> bool {
        self.shared.left_cpu.take_here()
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Looks once at every lane and at the inbox, and, if that finds nothing and `heads` is set, at
    /// every head. Returns the number of things found. Runs at most `batch` requests of each
    /// client.
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
        if ran == 0 && heads {
            ran = self.look_at_heads(batch);
        } else if ran > 0 {
            // However busy other clients keep the trustee, every head is looked at now and then.
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

    /// Counts that the trustee, a member, has found its doorbell rung.
    pub(crate) fn count_ring(&mut self) {
        self.rings += 1;
    }

    /// Counts that the trustee, a member, goes to sleep in its event loop.
    #[cfg(any(unix, corelay_loom, corelay_shuttle))]
    pub(crate) fn count_sleep(&mut self) {
        self.sleeps += 1;
        self.publish_metrics();
    }

    /// Whether another trustee has answered closures of this one, or callbacks of this thread are
    /// to run, or room has been made, since the last look.
    #[cfg(any(unix, corelay_loom, corelay_shuttle))]
    pub(crate) fn has_answers(&self) -> bool {
        state().is_some_and(|state| state.has_left_callbacks())
            || (nested::waits_for_others(&self.serving) && nested::have_others_gone_on())
    }

    /// Sends the queued requests that closures of this trustee have made.
    pub(crate) fn send_nested(&self) {
        if self.serving.nested.get() {
            nested::drain(&self.serving);
        }
    }

    /// Takes the answers to requests that closures of this trustee have made to other trustees, and
    /// sends queued ones. Returns whether the trustee still waits for answers or for room.
    #[cold]
    fn serve_own_requests(&self) -> bool {
        nested::take_answers(&self.serving);
        // After the callbacks, which make room.
        self.send_nested();
        // After that, for what has just been sent is to be answered.
        nested::waits_for_others(&self.serving)
    }

    /// Looks at the heads of all lanes, and runs what is there. Returns whether there was
    /// something.
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
        ran
    }

    /// Sleeps until there is work or, if the trustee `waits_for_others`, another trustee has
    /// answered it or made room. Does not sleep if a last look finds such a thing: see
    /// [`Shared::doze`].
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

    /// Reads the news in the inbox, and drops the objects whose last handle has gone, after all
    /// their requests have run.
    fn read_inbox(&mut self) {
        for node in self.shared.inbox.take() {
            self.read(node);
        }
        if self.retired.borrow().is_empty() {
            return;
        }
        // Each request that was accepted before a last handle went was published before the object
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

    /// Drops an object whose last handle has gone, and whose requests have run. If its value has
    /// been ordered, sends the value.
    fn drop_object(&mut self, header: *mut Header) {
        // SAFETY: the object is retired and not freed yet.
        let type_name = unsafe { &*header }.type_name();
        self.shared.roster.dismiss(type_name, header.addr());
        self.registry().dismiss(header);
        self.end_value(header, self.shared.orders.take(header));
        // SAFETY: no handle, no request and no registry knows the object any more.
        unsafe { Header::release_memory(header) };
    }

    fn read(&mut self, node: *mut Node) {
        // SAFETY: the pusher keeps the node valid until the trustee has taken it, which is now.
        match unsafe { &*node }.news {
            News::Register => {
                let channel = container(node, offset_of!(Channel, register));
                // SAFETY: `Client::connect` made this count and announced it once.
                let channel = unsafe { Arc::from_raw(channel.cast::<Channel>()) };
                let serving = Rc::clone(&self.serving);
                self.lanes.push(Lane::new(channel, serving));
            }
            News::Detach => {
                let channel = container(node, offset_of!(Channel, detach));
                // SAFETY: `Client::drop` made this count and announced it once.
                let channel = unsafe { Arc::from_raw(channel.cast::<Channel>()) };
                self.lanes
                    .retain(|lane| !Arc::ptr_eq(&lane.channel, &channel));
            }
            News::Retire => {
                let header = container(node, offset_of!(Header, node)).cast::<Header>();
                self.retired.borrow_mut().push(header.cast_mut());
            }
            News::Close => self.closing = true,
            News::Work => {
                let work = self
                    .shared
                    .thread
                    .take()
                    .map(|work| work.downcast::<Work>());
                self.work = work.map(|work| *work.expect("the trustee's work"));
            }
        }
    }

    /// Stores `state`, by which clients find that requests are refused from now on, and serves
    /// everything that was accepted before.
    fn refuse_and_drain(&mut self, state: u32) {
        // Relaxed: ordered by the barrier.
        self.shared.state.word().swap(state, Ordering::Relaxed);
        // Pairs with the light barrier of every publication: a request that is not found below was
        // not accepted, since its client sees the state.
        barrier::heavy();
        self.read_inbox();
        for lane in &self.lanes {
            lane.drain(&self.serving);
        }
    }

    /// Ends the trustee, which has served everything that it accepted: drops all values, frees the
    /// lanes and the registry, and stores [`GONE`].
    fn close(&mut self) {
        // The requests of closures were accepted too.
        nested::send_last(&self.serving);
        self.serving.disown();
        self.shared.roster.close();
        // Objects that the last requests have retired are still in the registry, like all others.
        let mut orders = self.shared.orders.close();
        for header in std::mem::take(&mut self.registry().objects) {
            self.end_value(header, orders.take(header));
        }
        for node in self.shared.inbox.close() {
            self.read(node);
        }
        for header in self.retired.take() {
            // SAFETY: the value has been dropped above, and the last handle is gone.
            unsafe { Header::release_memory(header) };
        }
        self.lanes.clear();
        // SAFETY: the registry was made for this trustee, and no request reaches it any more.
        unsafe { Header::drop_value(self.home.cast()) };
        // SAFETY: the value has been dropped, and only this trustee knows the registry.
        unsafe { Header::release_memory(self.home.cast()) };
        self.publish_metrics();
        // Release: pairs with the Acquire of `wait_until_gone`; a client that waits for it
        // sees the final tails.
        self.shared.state.word().store(GONE, Ordering::Release);
        self.shared.state.wake_all();
    }

    /// Makes an object of `value`, owned by this trustee.
    pub(crate) fn adopt<T>(&mut self, value: T) -> Handle<T> {
        let shared = Arc::clone(&self.shared);
        self.registry().adopt(value, &shared)
    }

    fn registry(&mut self) -> &mut Registry {
        // SAFETY: no closure runs now, so nobody else has a reference to the registry.
        unsafe { Object::value(self.home) }
    }

    /// Ends an object's value: sends it if there is an order, and drops it otherwise.
    fn end_value(&self, header: *mut Header, order: Option<Box<dyn Order>>) {
        let is_poisoned = self.serving.forget_poison(header);
        if let Some(order) = order {
            // SAFETY: called once per object, on its trustee, when no request is left; the order is
            // kept under the object's address.
            unsafe { order.fill(header, is_poisoned) };
            return;
        }
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

/// The address of the struct that has `node` at `offset`.
fn container(node: *mut Node, offset: usize) -> *const u8 {
    node.cast::<u8>().cast_const().wrapping_sub(offset)
}

// Loom has no clock: in the models every look finds the budget used up.
