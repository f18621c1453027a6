//! The trustee's side of a channel: a lane finds a client's requests, runs them and publishes the
//! answers.

mod deferred;

use self::deferred::{Deferrals, Verdict};
use crate::catch::guarded;
use crate::client::nested;
use crate::context::discard::{discard, wake};
use crate::context::events;
use crate::context::leaf::Leaf;
use crate::context::serving::Serving;
use crate::error::Poisoned;
use crate::observe::sampler::Sampler;
use crate::request::label::Label;
use crate::request::track::Track;
use crate::request::{Cursors, Vtable, read_head, read_label, write_label};
use crate::wire::Channel;
use crate::wire::word::{Mail, Position, is_past};
use corelay_sync::facade::atomic::Ordering;
use corelay_sync::facade::cell::place_of;
use corelay_sync::facade::memory;
use corelay_sync::facade::sync::Arc;
use corelay_sync::wait::CodeName;
use corelay_sync::{prefetch_read, prefetch_write};
use std::any::Any;
use std::cell::Cell;
use std::rc::Rc;

/// A lane: a trustee's half of the channel to one client.
pub(crate) struct Lane {
    pub(crate) channel: Arc<Channel>,
    track: Track,
    /// The last mail that the lane has done with: its requests and its call have been run.
    seen: Cell<Mail>,
    /// Whether the request that runs is the mail call, rather than one of the ring.
    calling: Cell<bool>,
    /// The requests that wait until their held objects are free.
    deferrals: Deferrals,
}

impl Lane {
    /// Makes the trustee's half of a channel that has just announced itself.
    pub(crate) fn new(channel: Arc<Channel>, serving: Rc<Serving>) -> Self {
        // Relaxed: the registration acquired it; only this side writes it later.
        let origin = Position(channel.tail.position.load(Ordering::Relaxed));
        Self {
            track: Track::new(&channel, origin, serving),
            seen: Cell::new(Mail::new(origin.cursor(), 0)),
            calling: Cell::new(false),
            deferrals: Deferrals::default(),
            channel,
        }
    }

    /// Looks at the mail word, and runs up to `batch` requests that it publishes, and its call.
    /// Returns the number run.
    #[inline]
    pub(crate) fn serve(&self, serving: &Serving, batch: u32) -> u32 {
        // Acquire: pairs with the client's Release of the mail word; publishes requests and the
        // mail call.
        let mail = Mail(self.channel.mail.word.load(Ordering::Acquire));
        if mail == self.seen.get() {
            self.channel.prefetch_mail();
            return 0;
        }
        self.serve_mail(serving, mail, batch)
    }

    fn serve_mail(&self, serving: &Serving, mail: Mail, batch: u32) -> u32 {
        let mut ran = self.run_ring(serving, mail.cursor(), batch);
        if !is_past(mail.cursor(), self.track.at().request.cursor()) {
            let has_call = mail.call_differs(self.seen.get());
            if has_call {
                self.run_call(serving, mail);
                ran += 1;
            }
            self.seen.set(mail);
            if has_call {
                ran += self.run_behind_call(serving, mail, batch);
            }
        }
        ran
    }

    /// Runs the requests after a single request, which the client has put into the ring and could
    /// not publish by the mail word.
    #[inline(always)]
    fn run_behind_call(&self, serving: &Serving, mail: Mail, batch: u32) -> u32 {
        // Acquire: pairs with the client's Release of the head.
        let head = Position(self.channel.head.load(Ordering::Acquire));
        // Acquire, and after the head: as in `serve_head`.
        if Mail(self.channel.mail.word.load(Ordering::Acquire)) != mail {
            return 0;
        }
        self.run_ring(serving, head.cursor(), batch)
    }

    /// Does what [`serve`](Self::serve) does, and looks at the head too, so that it finds requests
    /// that the client has not published by the mail word yet. Returns the number run.
    pub(crate) fn serve_head(&self, serving: &Serving, batch: u32) -> u32 {
        // Acquire: pairs with the client's Release of the head.
        let head = Position(self.channel.head.load(Ordering::Acquire));
        // Acquire, and after the head: a mail sent before that head is seen now, so later requests
        // do not overtake a mail call.
        let mail = Mail(self.channel.mail.word.load(Ordering::Acquire));
        let ran = if mail == self.seen.get() {
            0
        } else {
            self.serve_mail(serving, mail, batch)
        };
        if mail != self.seen.get() {
            // The batch ended before the mail was done with.
            return ran;
        }
        ran + self.run_ring(serving, head.cursor(), batch)
    }

    /// Runs every request that the client has sent up to now, and its mail call.
    pub(crate) fn drain(&self, serving: &Serving) {
        // Acquire: pairs with the client's Release of the head.
        let head = Position(self.channel.head.load(Ordering::Acquire));
        // Acquire: as in `serve_head`.
        let mail = Mail(self.channel.mail.word.load(Ordering::Acquire));
        // More than once if a launch has ended a batch.
        while mail != self.seen.get() {
            self.serve_mail(serving, mail, u32::MAX);
        }
        while is_past(head.cursor(), self.track.at().request.cursor()) {
            self.run_ring(serving, head.cursor(), u32::MAX);
        }
    }

    /// Runs the ring up to `target`, or as many units as `batch` requests of the smallest kind
    /// take, and advances the tail. Returns the number of requests run.
    fn run_ring(&self, serving: &Serving, target: u32, batch: u32) -> u32 {
        let start = self.track.at().request;
        let left = target.wrapping_sub(start.cursor());
        if (left as i32) <= 0 {
            return 0;
        }
        let stop = start.cursor().wrapping_add(left.min(batch));
        self.prefetch(start.cursor(), stop);
        if serving.is_holding() {
            return self.run_holding(serving, start, stop);
        }
        match &serving.sampler {
            Some(sampler) if sampler.is_due() => self.run_timing(serving, sampler, stop),
            _ => self.run_all(serving, stop, || self.run_until(serving, stop, |_, _| ())),
        }
        self.end_batch(serving, start, self.track.at().request)
    }

    /// [`run_ring`](Self::run_ring) for a trustee some of whose objects are held.
    #[cold]
    #[inline(never)]
    fn run_holding(&self, serving: &Serving, start: Position, stop: u32) -> u32 {
        while is_past(stop, self.track.at().request.cursor()) {
            self.run_all(serving, stop, || self.run_until(serving, stop, |_, _| ()));
        }
        self.end_batch(serving, start, self.done_up_to())
    }

    /// Runs only the next request, whose object is free.
    pub(super) fn run_one(&self, serving: &Serving) {
        let stop = self.track.at().request.cursor().wrapping_add(1);
        self.run_all(serving, stop, || self.run_until(serving, stop, |_, _| ()));
    }

    /// Ends a batch, in which the requests since `start` have been run or deferred: publishes
    /// `tail`, before which all have been run, and counts the batch. Returns the number of
    /// requests, or 1 if there was only the growth of a ring.
    #[inline(always)]
    fn end_batch(&self, serving: &Serving, start: Position, tail: Position) -> u32 {
        self.publish_tail(tail);
        let ran = self.track.at().request.count().wrapping_sub(start.count());
        serving
            .requests
            .set(serving.requests.get() + u64::from(ran));
        serving.batches.set(serving.batches.get() + 1);
        // The growth of a ring is no request, but it is work.
        ran.max(1)
    }

    #[inline(always)]
    pub(super) fn publish_tail(&self, tail: Position) {
        // Release: pairs with the client's Acquire of the tail; publishes the answers and
        // hands the request records back.
        self.channel.tail.position.store(tail.0, Ordering::Release);
        self.tell_client();
    }

    /// Wakes the client's thread if it sleeps, and tasks that wait for room in the client's window.
    /// The trustee has made visible what it has done.
    #[inline(always)]
    fn tell_client(&self) {
        self.channel.sleeper.wake_if_asleep();
        // After the light barrier of `wake_if_asleep`.
        if self.channel.waiters.is_any() {
            self.let_tasks_in();
        }
    }

    #[cold]
    #[inline(never)]
    fn let_tasks_in(&self) {
        let channel = &self.channel;
        let let_in = channel.waiters.let_in(channel.queued());
        let _leaf = Leaf::enter_wakers();
        let_in.into_iter().for_each(wake);
    }

    /// Runs the ring up to `stop`, and the requests that its closures make to this trustee's own
    /// objects. Ends early once an object is held: from then on requests have to be deferred.
    #[inline(always)]
    fn run_all(&self, serving: &Serving, stop: u32, run: impl Fn()) {
        let name = CodeName::new(self, Self::running);
        while is_past(stop, self.track.at().request.cursor()) {
            let leaf = Leaf::enter(&name);
            while let Err(payload) = guarded(&run) {
                self.fault(serving, payload);
            }
            drop(leaf);
            if serving.nested.get() {
                nested::drain(serving);
                if serving.is_holding() {
                    return;
                }
            }
        }
    }

    /// [`run_all`](Self::run_all) with a stamp wherever requests of another type begin. Requests
    /// that panic leave no sample.
    #[cold]
    #[inline(never)]
    fn run_timing(&self, serving: &Serving, sampler: &Sampler, stop: u32) {
        self.run_all(serving, stop, || {
            let mut lap = sampler.lap();
            self.run_until(serving, stop, |vtable, ran| lap.end(vtable.name, ran));
        });
        events::ran_slowly(sampler.end_batch());
    }

    /// Prefetches the lines of a batch and of its answers, all at once.
    #[inline(always)]
    fn prefetch(&self, from: u32, to: u32) {
        let units = to.wrapping_sub(from).min(256);
        prefetch_write(&raw const self.channel.tail.position);
        for unit in (8..units).step_by(8) {
            prefetch_read(self.track.requests().at(from.wrapping_add(unit)));
        }
        let answer = self.track.at().answer();
        for unit in (0..units).step_by(8) {
            prefetch_write(self.track.answers().at(answer.wrapping_add(unit)));
        }
    }

    /// Runs the ring up to `stop`: the trustee's inner loop. Ends early after a closure that has
    /// made a request. A panic of a closure unwinds out of this, with the lane's place at that
    /// request. Calls `ran` with the vtable and the number of requests for each row of requests of
    /// one type.
    #[inline(always)]
    fn run_until(&self, serving: &Serving, stop: u32, mut ran: impl FnMut(&'static Vtable, u32)) {
        let mut at = self.track.at();
        while is_past(stop, at.request.cursor()) {
            let record = self.track.request(at.request.cursor());
            // SAFETY: all before `stop` are published, so a record begins here, with a label.
            let label = unsafe { read_label(record) };
            self.track.set_at(at);
            let mut run_to = stop;
            if serving.any_marked() {
                if self.passes_over(serving, label, record) {
                    at = self.track.at();
                    continue;
                }
                // Each request is looked at.
                run_to = at.request.cursor();
            }
            // SAFETY: a client wrote the label by `Label::new`, or it is that of ring growth.
            let vtable = unsafe { label.vtable() };
            let before = at.request;
            // SAFETY: published, of this vtable, and run once: the cursors move past it.
            at = unsafe { (vtable.run)(record, at, &self.track, run_to) };
            ran(vtable, at.request.count().wrapping_sub(before.count()));
            if serving.nested.get() {
                break;
            }
        }
        self.track.set_at(at);
    }

    /// Runs the mail call of `mail`, or refuses or defers it if its object is poisoned or held, and
    /// answers it unless it is deferred.
    pub(super) fn run_call(&self, serving: &Serving, mail: Mail) {
        let line = &self.channel.mail;
        line.shadow.write(0, 1);
        let record = place_of(&line.call).cast::<u64>();
        let mut refused = false;
        if serving.any_marked() {
            match self.judge_call(serving, mail, record) {
                Verdict::Run => {}
                Verdict::Refuse => refused = true,
                Verdict::Defer => return,
            }
        }
        // SAFETY: the mail published the call.
        let (vtable, object) = unsafe { read_head(record) };
        self.calling.set(true);
        let sampler = serving.sampler.as_ref();
        let sampler = sampler.filter(|sampler| !refused && sampler.is_due());
        let lap = sampler.map(|sampler| (sampler, sampler.lap()));
        let name = CodeName::new(self, Self::running);
        let leaf = Leaf::enter(&name);
        let result = guarded(|| {
            if refused {
                // Taken before the discard: the destructors of captures may unwind.
                let why = self.deferrals.refusal();
                // SAFETY: the call is published, and is not run.
                unsafe { (vtable.discard)(record) };
                return Err(why);
            }
            // SAFETY: the call is published, and runs once: `done` says so below.
            unsafe { (vtable.run)(record, self.track.at(), &self.track, 0) };
            Ok(())
        })
        .flatten();
        drop(leaf);
        if let Some((sampler, mut lap)) = lap {
            lap.end(vtable.name, 1);
            events::ran_slowly(sampler.end_batch());
        }
        self.calling.set(false);
        let mut done = mail;
        if let Err(mut payload) = result {
            if !refused {
                payload = serving.poison(object, vtable.name, payload);
            } else if let Some(ring) = payload.downcast_ref() {
                events::refused_circular(ring);
            } else if !payload.is::<Poisoned>() {
                // A destructor of a capture has panicked.
                serving.count_panic();
            }
            let fault = Box::into_raw(Box::new(payload));
            memory::write(record.wrapping_add(2), 1);
            // SAFETY: the line is the trustee's until `done` is stored, and the payload takes one
            // word.
            unsafe {
                record
                    .wrapping_add(2)
                    .cast::<*mut Box<dyn Any + Send>>()
                    .write(fault)
            };
            done = done.faulted();
        }
        serving.requests.set(serving.requests.get() + 1);
        serving.batches.set(serving.batches.get() + 1);
        // Release: pairs with the caller's Acquire of `done`; publishes the result.
        line.done.store(done.0, Ordering::Release);
        self.tell_client();
        if serving.nested.get() {
            nested::drain(serving);
        }
    }

    /// Deals with a panic of the request at the lane's place: poisons the object, marks the record,
    /// and moves past it.
    #[cold]
    fn fault(&self, serving: &Serving, payload: Box<dyn Any + Send>) {
        let record = self.track.requests().at(self.track.at().request.cursor());
        // SAFETY: the record's label is still there; only its captures are consumed.
        let label = unsafe { read_label(record) };
        // SAFETY: a client wrote the label by `Label::new`.
        let vtable = unsafe { label.vtable() };
        let payload = serving.poison(label.object(), vtable.name, payload);
        self.mark(record, payload);
    }

    /// Drops a request unrun because its object is poisoned or it would wait in a ring of launches,
    /// and marks its record as faulted. Returns true, for [`passes_over`](Self::passes_over).
    #[cold]
    pub(super) fn refuse(&self, label: Label, record: *mut u64) -> bool {
        // SAFETY: a client wrote the label by `Label::new`.
        let vtable = unsafe { label.vtable() };
        // Taken before the discard: the destructors of captures may unwind.
        let why = self.deferrals.refusal();
        // SAFETY: the request is published, and is not run. If it unwinds, `fault` marks the record
        // instead.
        unsafe { (vtable.discard)(record) };
        if let Some(ring) = why.downcast_ref() {
            events::refused_circular(ring);
        }
        self.mark(record, why);
        true
    }

    /// Hands over the failure of the request at the lane's place, to its future or to the client's
    /// next barrier, and moves past it. A request of the second kind gets the label of a fault, and
    /// is counted as one.
    fn mark(&self, record: *mut u64, payload: Box<dyn Any + Send>) {
        // SAFETY: the record is the trustee's until the tail passes it.
        let label = unsafe { read_label(record) };
        // SAFETY: a client wrote the label by `Label::new`.
        let vtable = unsafe { label.vtable() };
        // Before the label is overwritten, which names the running closure: the payload's
        // destructor is user code, and may call corelay.
        match vtable.fault {
            // SAFETY: the record is of that vtable; it has faulted or been discarded, and is passed
            // below, so this is the one call.
            Some(fault) => unsafe { fault(record, payload) },
            None => discard(self.channel.keep_fault(payload, false)),
        }
        let at = self.track.at();
        self.track.set_at(Cursors {
            request: at.request.after(vtable.step),
            answer: at.answer.wrapping_add(vtable.answer_units),
        });
        if vtable.fault.is_some() {
            // No callback is to be dropped, and no barrier to be told.
            return;
        }
        // SAFETY: the record is the trustee's until the tail passes it.
        unsafe { write_label(record, Label::FAULTED) };
        // Relaxed: only this side writes it, and the tail's Release publishes it.
        let faults = self.channel.tail.faults.load(Ordering::Relaxed);
        self.channel
            .tail
            .faults
            .store(faults.wrapping_add(1), Ordering::Relaxed);
    }

    /// The type name of the closure that runs now. Called from inside that closure.
    pub(crate) fn running(&self) -> &'static str {
        let vtable = if self.calling.get() {
            let record = place_of(&self.channel.mail.call).cast::<u64>();
            // SAFETY: a mail call runs, so the line holds one.
            unsafe { read_head(record) }.0
        } else {
            let record = self.track.requests().at(self.track.at().request.cursor());
            // SAFETY: a request of this ring runs, so a label is there.
            let label = unsafe { read_label(record) };
            // SAFETY: a client wrote the label by `Label::new`.
            unsafe { label.vtable() }
        };
        (vtable.name)()
    }
}
