//! The steps after a commit: making a log visible, waiting for the sections that read the earlier
//! values, and copying back.

use super::domain::Inner;
use super::journal::{Journal, Published, Reader};
use super::slot::SessionSlot;
use super::stats::{Part, Watch};
use super::words::{Presence, Stage};
use corelay_clock::{Clock, Time};
use corelay_sync::Backoff;
use corelay_sync::facade::MODEL;
use corelay_sync::facade::atomic::{Ordering, fence};
use corelay_sync::facade::hint::{self, spin_loop};
use corelay_sync::wait::{self, CodeName, NoSwitch};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// The name by which [`NoSwitch`] refuses a wait inside a section.
pub(super) const SECTION: CodeName<'_> = CodeName::fixed(&"a section of an RLU domain");

corelay_sync::facade::thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is inside a section. [`NoSwitch`] names the innermost guard, and a section
/// may run code with a guard of its own.
#[inline(always)]
pub(super) fn is_inside() -> bool {
    INSIDE.try_with(Cell::get).unwrap_or(false)
}

/// Notes that a section begins or ends on this thread; nothing switches in between.
#[inline(always)]
pub(super) fn set_inside(inside: bool) {
    let _ = INSIDE.try_with(|cell| cell.set(inside));
}

/// Draws after which a section stops waiting for its clock to pass the horizon: a millisecond, far
/// more than twice the boundary of any calibration.
const DRAWS: u32 = if MODEL { 16 } else { 1 << 16 };

/// A guard that runs a closure at the end of a block, also if a clock panics there. Code for which
/// only the panic matters forgets the guard once the clock has answered.
pub(super) struct OnDrop<F: Fn()>(pub(super) F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

impl<C: Clock> Inner<C> {
    /// Whether the domain's clock is exact, so that its times are never uncertain. This does not
    /// ask for the boundary, which may be raised between two looks, since a session and a syncer
    /// have to go by the same design.
    #[inline(always)]
    pub(super) fn is_exact(&self) -> bool {
        corelay_clock::is_exact(&self.clock)
    }

    /// A watch that counts the ticks of parts for the session of `me`.
    #[inline(always)]
    pub(super) fn watch<'a>(&'a self, me: &'a SessionSlot) -> Watch<'a, C> {
        Watch::start(&self.clock, &me.counters)
    }

    /// Begins a section and returns its local time.
    #[inline(always)]
    pub(super) fn enter(&self, slot: &SessionSlot) -> u64 {
        if self.is_exact() {
            slot.enter(Presence::OPENING);
            let local = self.clock.read_time().raw();
            slot.set_local(local);
            return local;
        }
        // The draw is in no order to the operations around it. `enter` makes it earlier than the
        // section's reads, and the horizon makes it late enough.
        let local = self.clock.now().raw().min(Time::NEVER.raw());
        slot.enter(Presence::since(local));
        if local <= slot.horizon() {
            return self.enter_beyond(slot);
        }
        local
    }

    /// Enters again, with a local time beyond the horizon.
    ///
    /// Entering passes a fence again. A session that has looked at the presence before takes this
    /// for another section, one that has seen the horizon that it raised.
    #[cold]
    #[inline(never)]
    fn enter_beyond(&self, slot: &SessionSlot) -> u64 {
        let mut watch = self.watch(slot);
        // The session is inside already, but no section exists yet whose end would say otherwise.
        let unwind = OnDrop(|| slot.leave());
        loop {
            let local = self.time_beyond(slot);
            slot.enter(Presence::since(local));
            if local > slot.horizon() {
                std::mem::forget(unwind);
                watch.end(Part::Ordering);
                return local;
            }
        }
    }

    /// A local time beyond the horizon. Waits for at most twice the boundary, and not at all for a
    /// clock that was caught being wrong. The times of a domain are compared as numbers, so any
    /// number beyond the horizon will do.
    fn time_beyond(&self, slot: &SessionSlot) -> u64 {
        let horizon = slot.horizon();
        for _ in 0..DRAWS {
            let local = self.clock.read_time().raw().min(Time::NEVER.raw());
            // Relaxed: a hint; a session that misses it waits in vain.
            if local > horizon || self.caught.load(Ordering::Relaxed) {
                return local.max(horizon + 1);
            }
            let (seen, now) = (self.drawn_by(horizon), Time::from_raw(local));
            if self.clock.is_before(now, seen) {
                slot.counters.beyond.add(1);
                self.clock.met_beyond(seen, now);
                break;
            }
            spin_loop();
        }
        // Relaxed: a hint. From now on horizons say nothing about the clock.
        self.caught.store(true, Ordering::Relaxed);
        horizon + 1
    }

    /// A time no later than the one that had been drawn when a commit raised the horizon to this
    /// number.
    fn drawn_by(&self, horizon: u64) -> Time {
        Time::from_raw(horizon.saturating_sub(self.clock.boundary()))
    }

    /// Publishes the collecting log: announces the commit, draws its time, raises the horizons (on
    /// a clock that is not exact), and makes the log visible to later sections.
    ///
    /// `floor`: a local time that this thread has drawn before. `me`: the caller's slot, which gets
    /// the time that this takes.
    pub(super) fn publish(
        &self,
        me: &SessionSlot,
        slot: &SessionSlot,
        journal: &mut Journal,
        floor: Option<u64>,
    ) {
        let mut watch = self.watch(me);
        let volume = &journal.volumes[journal.collecting];
        let log = volume.log();
        // Announced before the time is drawn: a section that begins after the draw finds the
        // announcement and waits for the time. Sections with local times up to the floor need not
        // wait. Nor may the commit be visible where an earlier commit that this session has seen is
        // not: whatever clocks say, that commit has raised this horizon.
        let floor = floor.map_or(0, |local| self.visible_at(local));
        let floor = floor.max(slot.horizon());
        log.set_stage(Stage::announced(floor));
        // Otherwise sections would wait for a time that will never be said.
        let unwind = OnDrop(|| log.set_stage(Stage::COLLECTING));
        let drawn = self.clock.commit_time(Time::ZERO);
        // Computed once: readers and syncers compare with the same number, whatever happens to the
        // boundary. And not before the announced floor, whatever happens to the clock.
        let mut visible = self.visible_at(drawn.raw()).max(floor);
        std::mem::forget(unwind);
        journal.readers.clear();
        if !self.is_exact() {
            log.set_stage(Stage::announced(visible));
            visible = self.raise_horizons(slot, visible, &mut journal.readers);
        }
        log.set_stage(Stage::committed(visible));
        journal.turn(visible, !self.is_exact());
        slot.counters.syncs.add(1);
        watch.end(Part::Ordering);
    }

    /// The first local time that is certainly later than `time`, if it is drawn now. A number that
    /// a [`Stage`] can hold, whatever a clock says.
    #[inline(always)]
    fn visible_at(&self, time: u64) -> u64 {
        let visible = time.saturating_add(self.clock.boundary());
        visible.min(Time::NEVER.raw())
    }

    /// Makes all sections that begin from now on be beyond the answer; fills `readers` with the
    /// other ones. The answer is `visible`, unless some section has a later time. That section may
    /// have begun before the commit was announced: it would take copies, and has perhaps taken
    /// originals. Then the answer is later.
    fn raise_horizons(&self, slot: &SessionSlot, visible: u64, readers: &mut Vec<Reader>) -> u64 {
        let newest = self.raise_to(slot, visible, readers);
        if newest <= visible {
            return visible;
        }
        self.postpone(slot, newest, readers);
        newest
    }

    /// Raises the horizons again, to the later time `visible` of a section that was found inside,
    /// and looks for readers anew. Once is enough: a section that is found now with a still later
    /// time was not inside at the first look.
    #[cold]
    #[inline(never)]
    fn postpone(&self, slot: &SessionSlot, visible: u64, readers: &mut Vec<Reader>) {
        slot.counters.postponed.add(1);
        readers.clear();
        self.raise_to(slot, visible, readers);
    }

    /// Raises all horizons to `visible` and fills `readers` with the sessions inside, which may not
    /// see it. Returns the latest local time of them.
    #[inline(always)]
    fn raise_to(&self, slot: &SessionSlot, visible: u64, readers: &mut Vec<Reader>) -> u64 {
        // This session's slot first: see `Slots::catch_up`. And this session must see others'
        // commits as of no earlier time than its own.
        slot.raise_horizon(visible);
        let mut newest = 0;
        for reader in self.slots.iter() {
            if std::ptr::eq(reader, slot) {
                continue;
            }
            reader.raise_horizon(visible);
            let seen = reader.presence();
            if !seen.is_outside() {
                newest = newest.max(seen.local());
                readers.push(Reader::new(reader, seen));
            }
        }
        newest
    }

    /// Copies the published log back if its readers are gone. Returns false if some are still
    /// there.
    ///
    /// `me` counts the freed objects, and the time that this takes.
    pub(super) fn advance(
        &self,
        me: &SessionSlot,
        slot: &SessionSlot,
        journal: &mut Journal,
    ) -> bool {
        let mut watch = self.watch(me);
        let is_gone = self.readers_are_gone(slot, journal);
        watch.end(Part::Waiting);
        if !is_gone {
            return false;
        }
        let Some(Published { volume, .. }) = journal.published.take() else {
            return true;
        };
        let behind = &mut journal.volumes[volume];
        // SAFETY: `readers_are_gone` says that the grace period has passed.
        unsafe { behind.write_back(|part| watch.end(part)) };
        // SAFETY: the write-back has unlinked it, and `readers_are_gone` says that the grace period
        // has passed.
        let freed = unsafe { behind.free_garbage() };
        me.counters.freed.add(freed);
        if let Some(free) = journal.retired.replace(volume) {
            journal.volumes[free].begin();
        }
        self.sweep();
        true
    }

    /// Whether nobody reads the originals that the published log has locked. Sections of `slot` do
    /// not count: its session has no reference now. On an exact clock no section may be left that
    /// is not beyond the log's time. On clocks that know uncertainty none may be left that was seen
    /// after the horizons were raised, whatever its time.
    fn readers_are_gone(&self, slot: &SessionSlot, journal: &mut Journal) -> bool {
        let Some(published) = &mut journal.published else {
            return true;
        };
        let visible = published.visible;
        let is_exact = self.is_exact();
        if !published.is_scanned {
            // SeqCst: pairs with the fence of `SessionSlot::enter`: we see the section below, or it
            // reads the clock after our commit.
            fence(Ordering::SeqCst);
            published.is_scanned = true;
            let others = self.slots.iter().filter(|&s| !std::ptr::eq(s, slot));
            let readers = others.map(|reader| Reader::new(reader, reader.presence()));
            journal.readers.extend(readers);
        }
        journal.readers.retain(|reader| {
            // SAFETY: a slot lives as long as the domain, which is `self`.
            let now = unsafe { reader.slot() }.presence();
            if is_exact {
                !now.is_past(visible)
            } else {
                now == reader.seen
            }
        });
        journal.readers.is_empty()
    }

    /// Makes visible all that the journal holds, and copies it back. Waits for readers.
    ///
    /// The caller has the service of `slot`, and is in no section.
    pub(super) fn flush(&self, me: &SessionSlot, slot: &SessionSlot, journal: &mut Journal) {
        self.finish(me, slot, journal);
        if journal.collects() {
            self.publish(me, slot, journal, None);
            self.finish(me, slot, journal);
        }
    }

    /// Makes visible what has been collected, once the readers of the previously published log are
    /// gone.
    ///
    /// The caller has the service of `slot`, its own, and is in no section.
    pub(super) fn push(&self, slot: &SessionSlot, journal: &mut Journal) {
        self.finish(slot, slot, journal);
        if journal.collects() {
            self.publish(slot, slot, journal, None);
        }
    }

    fn finish(&self, me: &SessionSlot, slot: &SessionSlot, journal: &mut Journal) {
        if self.advance(me, slot, journal) {
            return;
        }
        me.counters.waits.add(1);
        let mut patience = Patience::new();
        while !self.advance(me, slot, journal) {
            let mut watch = self.watch(me);
            patience.wait(|| {
                // SAFETY: a slot lives as long as the domain, which is `self`.
                unsafe { journal.readers.first()?.slot() }.at()
            });
            watch.end(Part::Waiting);
        }
    }
}

/// The wait for a section after which it is reported.
const LONG: Duration = Duration::from_secs(2);

/// A wait outside of sections: it spins, lets other fibres and threads run, and reports the section
/// waited for if it takes long.
pub(super) struct Patience {
    backoff: Backoff,
    since: Option<Instant>,
    reported: bool,
}

impl Patience {
    pub(super) fn new() -> Self {
        // It would wait for a section of this thread without end.
        if is_inside() {
            NoSwitch::refuse("a wait for the sections of an RLU domain");
        }
        Self {
            backoff: Backoff::new(),
            since: None,
            reported: false,
        }
    }

    pub(super) fn wait(
        &mut self,
        at: impl FnOnce() -> Option<&'static std::panic::Location<'static>>,
    ) {
        if self.backoff.is_yielding() && !NoSwitch::is_active() {
            wait::give_turn();
        }
        self.backoff.wait();
        hint::in_vain(self.backoff.yields());
        if !MODEL && !self.reported && self.backoff.is_spent() {
            let since = *self.since.get_or_insert_with(Instant::now);
            if since.elapsed() > LONG {
                self.reported = true;
                report(at());
            }
        }
    }
}

#[cold]
fn report(at: Option<&std::panic::Location<'_>>) {
    let begun = at.map_or(String::new(), |at| format!(" at {at}"));
    eprintln!(
        "corelay: an RLU writer has waited {} s for the section that began{begun}; \
         what was removed is not freed until that ends",
        LONG.as_secs()
    );
}
