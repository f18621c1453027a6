//! The client's side of a channel: taking answers and running callbacks.

use super::Channel;
use super::client::Client;
use super::label::Label;
use super::mark;
use super::request::{Outcome, Reap, read_label};
use super::ring::{Rings, View};
use super::word::{Position, is_past};
use crate::error::BarrierError;
use crate::held::circle::{Wait, address};
use crate::serving::guarded;
use corelay_sync::facade::atomic::Ordering;
use corelay_sync::{prefetch_read, trace};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// Where a client stands in its answer ring and in its callback queue, in units.
///
/// ```text
/// 63             32 31               0
/// +----------------+-----------------+
/// | answer, wraps  | callback offset |
/// +----------------+-----------------+
/// ```
/// The callback offset never overflows into the other: it ends with the queue.
#[derive(Clone, Copy)]
pub(crate) struct Reaped(u64);

impl Reaped {
    /// Behind an entry of so many units in the callback queue and in the answer ring.
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

/// What reaping touches.
pub(super) struct Reaper {
    reaped: Cell<Reaped>,
    /// The answer ring that the oldest unreaped request's answer lies in.
    answers: Cell<View>,
    /// The rings of the oldest unreaped request.
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
    pub(super) fn new(rings: Box<Rings>, origin: Position) -> Self {
        let answers = rings.answers;
        let rings = Box::into_raw(rings);
        Self {
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
    pub(super) fn rings(&self) -> &Rings {
        // SAFETY: freed only by `jump` out of them, or with the client.
        unsafe { &*self.rings.get() }
    }

    /// Where the answer at `cursor` lies.
    #[inline(always)]
    pub(super) fn answer(&self, cursor: u32, units: usize) -> *mut u64 {
        self.rings().touch_answer(cursor, units);
        self.answers.get().at(cursor)
    }

    #[inline(always)]
    pub(super) fn reaped(&self) -> Reaped {
        self.reaped.get()
    }

    #[inline(always)]
    pub(super) fn set_reaped(&self, reaped: Reaped) {
        self.reaped.set(reaped);
    }

    /// The callbacks have moved forward by `units`.
    pub(super) fn callbacks_moved(&self, units: u32) {
        self.reaped
            .set(Reaped(self.reaped.get().0 - u64::from(units)));
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

    /// The rings that the next request goes into.
    pub(super) fn newest(&self) -> *mut Rings {
        *self.all.borrow().back().expect("there is always one")
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
        self.answers.set(self.rings().answers);
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
    /// Takes all answers there are and runs their callbacks, and those that callbacks have
    /// left to be run. Panics of callbacks are held by the thread.
    pub(crate) fn reap(&self) {
        self.observe_poll();
        let _in_callback = self.thread.enter_callbacks();
        while let Err(payload) = guarded(|| {
            self.reap_all();
            self.thread.run_left_callbacks();
        }) {
            self.thread.hold(payload);
        }
    }

    /// Publishes what has been issued, and reaps where there is something to.
    pub(crate) fn catch_up(&self) {
        let _call = self.thread.enter_call();
        self.flush();
        if self.thread.has_left_callbacks() || (self.has_callbacks() && !self.is_lone_unanswered())
        {
            self.reap();
            self.note_quiet();
        } else {
            self.observe_poll_in_vain();
        }
    }

    /// True where an answer may be waiting to be reaped.
    #[inline(always)]
    pub(crate) fn has_callbacks(&self) -> bool {
        !self.callbacks.is_empty(self.reaper.reaped()) || self.thread.has_left_callbacks()
    }

    /// Reaps up to the tail. Unwinds out of a callback, with everything in order: cursors
    /// are stored before a callback runs.
    fn reap_all(&self) {
        if !self.reap_lone() {
            return;
        }
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
        let mut reaped = self.reaper.reaped();
        // Answers of the whole batch at once: they lie in the trustee's cache.
        let answers = tail.count().wrapping_sub(before.count()).min(256);
        for unit in (0..answers).step_by(8) {
            prefetch_read(
                self.reaper
                    .answers
                    .get()
                    .at(reaped.answer().wrapping_add(unit)),
            );
        }
        while self.is_reapable(reaped, tail) {
            let entry = self.callbacks.at(reaped.callback());
            let mut outcome = Outcome::Well;
            if FAULTS {
                // SAFETY: an entry begins here; its second word is the position.
                let at = Position(unsafe { entry.wrapping_add(1).read() });
                let record = self.reaper.rings().requests.at(at.cursor());
                // SAFETY: executed, so the record is ours again, its label still there.
                let label = unsafe { read_label(record) };
                outcome = if label == Label::FAULTED {
                    Outcome::Fault
                } else {
                    Outcome::FirstWell
                };
            }
            // SAFETY: the first word of an entry.
            let reap = unsafe { entry.cast::<Reap>().read() };
            // SAFETY: the oldest entry, executed.
            reaped = unsafe { reap(self, reaped, tail, outcome) };
        }
    }

    /// True where an entry begins at `reaped` whose request lies before `tail`.
    #[inline(always)]
    pub(super) fn is_reapable(&self, reaped: Reaped, tail: Position) -> bool {
        if self.callbacks.is_empty(reaped) {
            return false;
        }
        // SAFETY: an entry begins here; its second word is the position.
        let at = Position(unsafe { self.callbacks.at(reaped.callback()).wrapping_add(1).read() });
        is_past(tail.cursor(), at.cursor())
    }

    /// Position of the oldest request whose callback has not been taken out.
    pub(super) fn oldest_callback(&self) -> Option<Position> {
        let reaped = self.reaper.reaped();
        if self.callbacks.is_empty(reaped) {
            return None;
        }
        // SAFETY: an entry begins here; its second word is the position.
        Some(Position(unsafe {
            self.callbacks.at(reaped.callback()).wrapping_add(1).read()
        }))
    }

    /// True where everything issued has been executed and reaped, by the last look, but for closures
    /// that it has launched.
    fn is_answered(&self) -> bool {
        if self.lone.is_pending() {
            return false;
        }
        let tail = self.reaper.tail();
        // Behind the tail of a trustee that has ended lies at most a jump.
        let gone = self.reaper.gone.get();
        let reaped = match self.oldest_callback() {
            None => true,
            Some(at) => gone && !is_past(tail.cursor(), at.cursor()),
        };
        reaped && (gone || tail == self.position()) && !self.thread.has_left_callbacks()
    }

    /// Waits until everything issued has been executed and its callbacks have run, and the closures
    /// that it has launched have ended. Panics of callbacks are held by the thread.
    pub(crate) fn finish(&self) {
        self.finish_until(|| self.is_answered() && !self.has_launches());
    }

    /// Does what [`finish`](Self::finish) does, but lets launched closures run on.
    pub(crate) fn finish_requests(&self) {
        self.finish_until(|| self.is_answered());
    }

    fn finish_until(&self, is_done: impl Fn() -> bool) {
        let _call = self.thread.enter_call();
        loop {
            self.flush();
            self.reap();
            if is_done() {
                return;
            }
            self.flush();
            self.await_progress(&mark::ANSWERS);
        }
    }

    /// True where nothing is in flight: nothing would be lost if the client went away.
    pub(crate) fn is_idle(&self) -> bool {
        self.reaper.look(self.channel());
        self.is_answered() && !self.has_launches()
    }

    /// Whether there is something to reap, or the tail has moved since the last look: what
    /// [`await_progress`](Self::await_progress) waits for.
    pub(crate) fn has_gone_on(&self) -> bool {
        if self.thread.has_left_callbacks() {
            return true;
        }
        if self.lone.is_pending() {
            return !self.is_lone_unanswered();
        }
        let before = self.reaper.tail();
        self.is_reapable(self.reaper.reaped(), before) || self.reaper.look(self.channel()) != before
    }

    /// Waits until there is something to reap or the tail has moved. `why` is for a recording.
    pub(super) fn await_progress(&self, why: &'static trace::Mark) {
        if self.thread.has_left_callbacks() {
            return;
        }
        if self.lone.is_pending() {
            return self.wait_until(why, None, || !self.is_lone_unanswered());
        }
        let before = self.reaper.tail();
        if before == self.position() && self.has_launches() {
            let launches = Wait::Launches(address(self.channel));
            return self.wait_until(why, Some(launches), || !self.has_launches());
        }
        if self.reaper.gone.get()
            || before == self.position()
            || self.is_reapable(self.reaper.reaped(), before)
        {
            return;
        }
        let tail = Wait::Tail(address(self.channel), before.0);
        self.wait_until(why, Some(tail), || {
            self.reaper.look(self.channel()) != before
        });
    }

    /// A request in the mail line that nobody waits for went wrong. The next barrier says so;
    /// first of all where `is_first`, although others may have been kept earlier.
    pub(super) fn report_own_fault(&self, payload: Box<dyn Any + Send>, is_first: bool) {
        self.channel().report_fault(payload, is_first);
        let reported = self.reaper.faults_reported.get();
        self.reaper.faults_reported.set(reported.wrapping_sub(1));
    }

    /// True where the next barrier has something to report.
    pub(crate) fn has_faults(&self) -> bool {
        // Relaxed: called after the tail has been acquired.
        let faults = self.channel().tail.faults.load(Ordering::Relaxed);
        self.reaper.faults_reported.get() != faults
    }

    /// What has gone wrong since it was last asked.
    pub(crate) fn take_faults(&self) -> Option<BarrierError> {
        // Relaxed: called after the tail has been acquired.
        let faults = self.channel().tail.faults.load(Ordering::Relaxed);
        if self.reaper.faults_reported.replace(faults) == faults {
            return None;
        }
        let taken = std::mem::take(&mut *self.channel().faults.lock().expect("never poisoned"));
        taken.into_error()
    }
}
