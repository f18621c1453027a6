//! The client's side of a channel: taking answers and running callbacks.

use super::client::Client;
use super::lane::guarded;
use super::request::{FAULTED, Reap, read_head};
use super::ring::Rings;
use super::word::{Position, is_past};
use super::Channel;
use crate::error::{BarrierError, Poisoned};
use corelay_sync::facade::atomic::Ordering;
use corelay_sync::prefetch_read;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// Where a client stands in its callback ring and its answer ring, in units; only the
/// lower 32 bits count.
#[derive(Clone, Copy)]
pub(crate) struct Reaped {
    pub(crate) callback: u64,
    pub(crate) answer: u64,
}

/// What reaping touches.
pub(super) struct Reaper {
    reaped: Cell<Reaped>,
    /// The rings that the oldest unreaped request lies in.
    rings: Cell<*mut Rings>,
    /// The tail as last seen.
    tail: Cell<Position>,
    /// Faults that cannot concern an unreaped request.
    faults_seen: Cell<u32>,
    /// Faults that a barrier has reported.
    faults_reported: Cell<u32>,
    /// All rings from the oldest unreaped request's to the newest.
    all: RefCell<VecDeque<*mut Rings>>,
    /// The trustee has ended, and the tail has been looked at since.
    pub(super) gone: Cell<bool>,
}

impl Reaper {
    pub(super) fn new(rings: *mut Rings, origin: Position) -> Self {
        Self {
            reaped: Cell::new(Reaped { callback: 0, answer: 0 }),
            rings: Cell::new(rings),
            tail: Cell::new(origin),
            faults_seen: Cell::new(0),
            faults_reported: Cell::new(0),
            all: RefCell::new(VecDeque::from([rings])),
            gone: Cell::new(false),
        }
    }

    #[inline(always)]
    fn rings(&self) -> &Rings {
        // SAFETY: freed only by `jump` out of them, or with the client.
        unsafe { &*self.rings.get() }
    }

    /// Where the answer at `cursor` lies.
    #[inline(always)]
    pub(super) fn answer(&self, cursor: u32, units: usize) -> *mut u64 {
        self.rings().touch_answer(cursor, units);
        self.rings().answer(cursor)
    }

    #[inline(always)]
    pub(super) fn set_reaped(&self, reaped: Reaped) {
        self.reaped.set(reaped);
    }

    /// Position of the oldest request whose callback has not been taken out.
    pub(super) fn oldest(&self, callback_end: u32) -> Option<Position> {
        let oldest = self.reaped.get().callback as u32;
        if oldest == callback_end {
            return None;
        }
        // SAFETY: an entry of the callback ring begins there, its second word the position.
        Some(Position(unsafe { self.rings().callback(oldest).add(1).read() }))
    }

    /// The tail as last seen.
    pub(super) fn tail(&self) -> Position {
        self.tail.get()
    }

    /// Looks at the tail.
    pub(super) fn look(&self, channel: &Channel) -> Position {
        // Acquire: pairs with the Release of `Lane::run_ring`; publishes the answers, and
        // hands the request records back.
        let tail = Position(channel.tail.position.load(Ordering::Acquire));
        self.tail.set(tail);
        tail
    }

    /// Larger rings follow.
    pub(super) fn add(&self, larger: *mut Rings) {
        self.all.borrow_mut().push_back(larger);
    }

    /// The oldest request has been a jump: leaves the rings behind.
    pub(super) fn jump(&self, larger: *mut Rings) {
        let left = self.all.borrow_mut().pop_front();
        debug_assert_eq!(left, Some(self.rings.get()));
        self.rings.set(larger);
        // SAFETY: the trustee has run the jump, and everything in these rings is reaped.
        drop(left.map(|rings| unsafe { Box::from_raw(rings) }));
    }

    /// Frees all rings. Nothing is in flight any more.
    pub(super) fn free_rings(&self) {
        for rings in self.all.borrow_mut().drain(..) {
            // SAFETY: by `Box::into_raw`, each once; nobody uses them any more.
            drop(unsafe { Box::from_raw(rings) });
        }
    }
}

impl Client {
    /// Where the answer at `cursor` lies.
    #[inline(always)]
    pub(super) fn answer(&self, cursor: u32, units: usize) -> *mut u64 {
        self.reaper.answer(cursor, units)
    }

    /// Takes all answers there are and runs their callbacks, then lets the requests that
    /// callbacks have queued go their way. Panics of callbacks are held by the thread.
    pub(crate) fn reap(&self) {
        {
            let _in_callback = self.thread.enter_callbacks();
            while let Err(payload) = guarded(|| self.reap_all()) {
                self.thread.hold(payload);
            }
        }
        self.thread.run_deferred();
    }

    /// True where an answer may be waiting to be reaped.
    #[inline(always)]
    pub(super) fn has_callbacks(&self) -> bool {
        self.reaper.reaped.get().callback as u32 != self.callback_end()
    }

    /// Reaps up to the tail. Unwinds out of a callback, with everything in order: cursors
    /// are stored before a callback runs.
    fn reap_all(&self) {
        let channel = self.channel();
        let before = self.reaper.tail();
        let tail = self.reaper.look(channel);
        // Relaxed: the tail's Acquire has published every fault up to it.
        let faults = channel.tail.faults.load(Ordering::Relaxed);
        if faults == self.reaper.faults_seen.get() {
            self.reap_to::<false>(before, tail);
        } else {
            self.reap_to::<true>(before, tail);
            if tail == self.position() {
                // All is executed, so no later request is among the faults counted.
                self.reaper.faults_seen.set(faults);
            }
        }
    }

    #[inline(always)]
    fn reap_to<const FAULTS: bool>(&self, before: Position, tail: Position) {
        let mut reaped = self.reaper.reaped.get();
        // Answers of the whole batch at once: they lie in the trustee's cache.
        let answers = tail.count().wrapping_sub(before.count()).min(256);
        for unit in (0..answers).step_by(8) {
            prefetch_read(self.reaper.rings().answer((reaped.answer as u32).wrapping_add(unit)));
        }
        while reaped.callback as u32 != self.callback_end() {
            let entry = self.reaper.rings().callback(reaped.callback as u32);
            // SAFETY: an entry begins here; its second word is the position.
            let at = Position(unsafe { entry.add(1).read() });
            if !is_past(tail.count(), at.count()) {
                break;
            }
            let mut fault = false;
            if FAULTS {
                let record = self.reaper.rings().request(at.cursor());
                // SAFETY: executed, so the record is ours again, its head still there.
                let (vtable, _) = unsafe { read_head(record) };
                fault = std::ptr::eq(vtable, &raw const FAULTED);
            }
            // SAFETY: the first word of an entry.
            let reap = unsafe { entry.cast::<Reap>().read() };
            // SAFETY: the oldest entry, executed.
            reaped = unsafe { reap(self, entry, reaped, fault) };
        }
    }

    /// True where everything issued has been executed and reaped, by the last look.
    fn is_done(&self) -> bool {
        let tail = self.reaper.tail();
        // Behind the tail of a trustee that has ended lies at most a jump.
        let gone = self.reaper.gone.get();
        let reaped = match self.reaper.oldest(self.callback_end()) {
            None => true,
            Some(at) => gone && !is_past(tail.count(), at.count()),
        };
        reaped && (gone || tail == self.position()) && self.deferred.get() == 0
    }

    /// Waits until everything issued has been executed and its callbacks have run. Panics
    /// of callbacks are held by the thread.
    pub(crate) fn finish(&self) {
        loop {
            self.flush();
            self.reap();
            if self.is_done() {
                return;
            }
            self.flush();
            let seen = self.reaper.tail();
            if seen != self.position() {
                self.wait_until(|| self.reaper.look(self.channel()) != seen);
            }
        }
    }

    /// True where nothing is in flight: nothing would be lost if the client went away.
    pub(crate) fn is_idle(&self) -> bool {
        self.reaper.look(self.channel());
        self.is_done()
    }

    /// A request of a callback could not be issued after all: its trustee has been shut
    /// down meanwhile. The next barrier says so.
    pub(crate) fn report_lost(&self) {
        let mut faults = self.channel().faults.lock().expect("never poisoned");
        faults.count += 1;
        faults.first.get_or_insert_with(|| Box::new("the trustee has been shut down"));
        let reported = self.reaper.faults_reported.get();
        self.reaper.faults_reported.set(reported.wrapping_sub(1));
    }

    /// What has gone wrong since it was last asked.
    pub(crate) fn take_faults(&self) -> Option<BarrierError> {
        // Relaxed: called after the tail has been acquired.
        let faults = self.channel().tail.faults.load(Ordering::Relaxed);
        if self.reaper.faults_reported.replace(faults) == faults {
            return None;
        }
        let taken = std::mem::take(&mut *self.channel().faults.lock().expect("never poisoned"));
        let first = taken.first.unwrap_or_else(|| Box::new(Poisoned));
        (taken.count > 0).then(|| BarrierError::new(first, taken.count))
    }
}
