//! Making a log visible, waiting for those who read what was before, and copying back.

use super::domain::Inner;
use super::journal::{Journal, Published, Reader};
use super::slot::SessionSlot;
use super::words::{Presence, Stage};
use corelay_clock::{Clock, Time};
use corelay_sync::Backoff;
use corelay_sync::facade::MODEL;
use corelay_sync::facade::atomic::{Ordering, fence};
use corelay_sync::facade::hint::{self, spin_loop};
use corelay_sync::wait::{self, NoSwitch};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// What [`NoSwitch`] names inside a section.
pub(super) const SECTION: &str = "a section of an RLU domain";

corelay_sync::facade::thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Whether a section lasts on this thread. [`NoSwitch`] names the innermost guard, and a section may
/// run what has one of its own.
#[inline(always)]
pub(super) fn is_inside() -> bool {
    INSIDE.try_with(Cell::get).unwrap_or(false)
}

/// A section begins or ends on this thread; nothing switches in between.
#[inline(always)]
pub(super) fn set_inside(inside: bool) {
    let _ = INSIDE.try_with(|cell| cell.set(inside));
}

/// Draws after which a section waits no longer for its clock to pass the horizon: a millisecond, far more
/// than twice the boundary of any calibration.
const DRAWS: u32 = if MODEL { 16 } else { 1 << 16 };

/// Runs at the end of a block, also where a clock panics in it. Forgotten where only a panic counts,
/// and the clock has answered.
pub(super) struct OnDrop<F: Fn()>(pub(super) F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

impl<C: Clock> Inner<C> {
    /// True where times are never uncertain. Not asked of the boundary: that may be raised between
    /// two looks, and a session and a syncer have to go by the same design.
    #[inline(always)]
    pub(super) fn is_exact(&self) -> bool {
        corelay_clock::is_exact(&self.clock)
    }

    /// Begins a section; its local time.
    #[inline(always)]
    pub(super) fn enter(&self, slot: &SessionSlot) -> u64 {
        if self.is_exact() {
            slot.enter(Presence::OPENING);
            let local = self.clock.read_time().raw();
            slot.set_local(local);
            return local;
        }
        // In no order to what stands before and after in the program; `enter` makes it earlier
        // than what this section reads, and the horizon makes it late enough.
        let local = self.clock.now().raw().min(Time::NEVER.raw());
        slot.enter(Presence::since(local));
        if local <= slot.horizon() {
            return self.enter_beyond(slot);
        }
        local
    }

    /// Enters anew with a local time beyond the horizon.
    ///
    /// Anew, with a fence: who has looked at the presence before takes the section for another
    /// one, which has seen the horizon that it raised.
    #[cold]
    #[inline(never)]
    fn enter_beyond(&self, slot: &SessionSlot) -> u64 {
        // Inside already, and no section yet whose end would say otherwise.
        let unwind = OnDrop(|| slot.leave());
        loop {
            let local = self.time_beyond(slot);
            slot.enter(Presence::since(local));
            if local > slot.horizon() {
                std::mem::forget(unwind);
                return local;
            }
        }
    }

    /// A local time beyond the horizon: waits for at most twice the boundary, and for a clock that is
    /// caught not at all. The times of a domain are compared as numbers, so whatever number is beyond
    /// the horizon does.
    fn time_beyond(&self, slot: &SessionSlot) -> u64 {
        let horizon = slot.horizon();
        for _ in 0..DRAWS {
            let local = self.clock.read_time().raw().min(Time::NEVER.raw());
            // Relaxed: an advice. Who does not know it waits in vain.
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
        // Relaxed: as above. From here on horizons say nothing of the clock.
        self.caught.store(true, Ordering::Relaxed);
        horizon + 1
    }

    /// A time at or before one that had been drawn when the horizon was raised.
    fn drawn_by(&self, horizon: u64) -> Time {
        Time::from_raw(horizon.saturating_sub(self.clock.boundary()))
    }

    /// Makes the collecting log visible.
    ///
    /// `floor`: a local time that this thread has drawn before.
    pub(super) fn publish(&self, slot: &SessionSlot, journal: &mut Journal, floor: Option<u64>) {
        let volume = &journal.volumes[journal.collecting];
        let log = volume.log();
        // Announced before the time is drawn: a section that begins after the draw finds it, and
        // waits for what is drawn. Those of local times up to the floor need not.
        // Nor may it be visible where a commit is not that this session has seen: whatever clocks say,
        // that has raised this horizon.
        let floor = floor.map_or(0, |local| self.visible_at(local));
        let floor = floor.max(slot.horizon());
        log.set_stage(Stage::announced(floor));
        // Sections would wait for a time that is not going to be said.
        let unwind = OnDrop(|| log.set_stage(Stage::COLLECTING));
        let drawn = self.clock.commit_time(Time::ZERO);
        // Computed once: readers and syncers compare with the same number, whatever becomes of
        // the boundary; and not before what was announced, whatever became of the clock.
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
    }

    /// From when on a time drawn now is certainly later than `time`; a number that a
    /// [`Stage`] can hold, whatever a clock says.
    #[inline(always)]
    fn visible_at(&self, time: u64) -> u64 {
        let visible = time.saturating_add(self.clock.boundary());
        visible.min(Time::NEVER.raw())
    }

    /// Has all sections that begin from now on be beyond the answer; `readers` are the others. The
    /// answer is `visible`, or later where a section has a later time that may have begun before the
    /// commit was announced: it would take copies, and has perhaps taken originals.
    fn raise_horizons(&self, slot: &SessionSlot, visible: u64, readers: &mut Vec<Reader>) -> u64 {
        let newest = self.raise_to(slot, visible, readers);
        if newest <= visible {
            return visible;
        }
        self.postpone(slot, newest, readers);
        newest
    }

    /// Whoever is found now with a time that is later still was not inside at the first look.
    #[cold]
    #[inline(never)]
    fn postpone(&self, slot: &SessionSlot, visible: u64, readers: &mut Vec<Reader>) {
        slot.counters.postponed.add(1);
        readers.clear();
        self.raise_to(slot, visible, readers);
    }

    /// The newest local time of `readers`: who is inside, and may not see the horizon `visible`.
    #[inline(always)]
    fn raise_to(&self, slot: &SessionSlot, visible: u64, readers: &mut Vec<Reader>) -> u64 {
        // Our own slot first: see `Slots::catch_up`. And this session is to see what it sees of
        // others' commits as of no earlier than its own.
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

    /// Copies the published log back if its readers are gone. False where there is one still.
    ///
    /// `me` counts the freed.
    pub(super) fn advance(
        &self,
        me: &SessionSlot,
        slot: &SessionSlot,
        journal: &mut Journal,
    ) -> bool {
        if !self.readers_are_gone(slot, journal) {
            return false;
        }
        let Some(Published { volume, .. }) = journal.published.take() else {
            return true;
        };
        let behind = &mut journal.volumes[volume];
        // SAFETY: the grace period has passed.
        unsafe { behind.write_back() };
        // SAFETY: unlinked by what was copied back, and the grace period has passed.
        let freed = unsafe { behind.free_garbage() };
        me.counters.freed.add(freed);
        if let Some(free) = journal.retired.replace(volume) {
            journal.volumes[free].begin();
        }
        self.sweep();
        true
    }

    /// True once nobody reads what the published log has locked, but sections of `slot`, whose
    /// session has no reference now: no section that is not beyond it; on clocks that know
    /// uncertainty, none that was seen behind the raised horizons, whatever its time.
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
            // SAFETY: slots live as long as the domain.
            let now = unsafe { reader.slot() }.presence();
            if is_exact {
                !now.is_past(visible)
            } else {
                now == reader.seen
            }
        });
        journal.readers.is_empty()
    }

    /// Makes everything visible that the journal holds, and copies it back; waits for readers.
    ///
    /// The caller has the service of `slot`, and is in no section.
    pub(super) fn flush(&self, me: &SessionSlot, slot: &SessionSlot, journal: &mut Journal) {
        self.finish(me, slot, journal);
        if journal.collects() {
            self.publish(slot, journal, None);
            self.finish(me, slot, journal);
        }
    }

    /// Makes visible what has been collected, behind what was published before.
    ///
    /// The caller has the service of `slot`, its own, and is in no section.
    pub(super) fn push(&self, slot: &SessionSlot, journal: &mut Journal) {
        self.finish(slot, slot, journal);
        if journal.collects() {
            self.publish(slot, journal, None);
        }
    }

    fn finish(&self, me: &SessionSlot, slot: &SessionSlot, journal: &mut Journal) {
        if self.advance(me, slot, journal) {
            return;
        }
        me.counters.waits.add(1);
        let mut patience = Patience::new();
        while !self.advance(me, slot, journal) {
            patience.wait(|| {
                // SAFETY: slots live as long as the domain.
                unsafe { journal.readers.first()?.slot() }.at()
            });
        }
    }
}

/// A section that has been waited for so long is reported.
const LONG: Duration = Duration::from_secs(2);

/// Waits outside of sections: spins, lets other fibres and threads run, and tells who is waited
/// for if it takes long.
pub(super) struct Patience {
    backoff: Backoff,
    since: Option<Instant>,
    reported: bool,
}

impl Patience {
    pub(super) fn new() -> Self {
        // A section of this thread would be waited for without end.
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
