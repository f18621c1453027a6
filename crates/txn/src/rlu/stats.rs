//! Counts of what happens in sections, for a session or a domain.

use corelay_clock::{Clock, Laps};
use corelay_sync::facade::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counts of events in the sections of a session, or of all sessions of a domain.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Stats {
            $($(#[$doc])* pub $name: u64,)*
        }

        /// Counters that one session writes and any thread reads.
        #[derive(Default)]
        pub(super) struct Counters {
            $(pub(super) $name: Counter,)*
        }

        impl Counters {
            pub(super) fn stats(&self) -> Stats {
                Stats { $($name: self.$name.get(),)* }
            }
        }

        impl Stats {
            /// The sum of both, field by field.
            #[must_use]
            pub fn plus(self, other: Self) -> Self {
                Self { $($name: self.$name + other.$name,)* }
            }

            /// The difference to `earlier`, field by field.
            #[must_use]
            pub fn since(self, earlier: Self) -> Self {
                Self { $($name: self.$name - earlier.$name,)* }
            }
        }
    };
}

counters! {
    /// Write sections that were committed and had locked something.
    commits,
    /// Write sections that were aborted. `write` repeats them, `try_write` does not.
    aborts,
    /// The part of `aborts` whose reason was that another session had locked the object.
    aborts_locked,
    /// Times that write sets were made visible to others.
    syncs,
    /// Syncs that had to wait for sections of other sessions.
    waits,
    /// Syncs done for another session, which held locks and did nothing.
    helps,
    /// Looks at a locked object whose commit was too near the section's time for the clock to order
    /// them. The section took the original.
    uncertain,
    /// Looks at a locked object after which the section took the copy.
    copies,
    /// Looks at a locked object whose owner had announced its commit and not yet said the commit's
    /// time. The section waited for it.
    pending,
    /// Objects that were freed after the sections that might read them had ended.
    freed,
    /// Commits that became visible later than at the time that they had drawn, because a section
    /// with a later time was inside. That section began between the draw and the look, or its clock
    /// is wrong.
    postponed,
    /// Sections that had to be beyond a time that was certainly later than the clock: the clock's
    /// boundary does not hold. After the first, the domain's sections do not wait for the clock any
    /// more.
    beyond,
    /// Ticks that were spent copying: objects into the log, earlier copies aside, and copies back.
    /// Like all ticks here, 0 unless the domain's clock is [`Timed`](corelay_clock::Timed).
    ticks_copying,
    /// Ticks that were spent locking: records, locks taken and given back, aborts undone, and waits
    /// for objects that other sessions have locked.
    ticks_locking,
    /// Ticks that commits were spent on being ordered: they are announced, draw their times and raise
    /// horizons. With them the time after which a section begins anew, beyond its horizon.
    ticks_ordering,
    /// Ticks that were spent waiting for other sessions: for their sections to end before a commit
    /// is copied back, looks included, for a commit's time to be said, and for a journal that
    /// another session serves.
    ticks_waiting,
}

/// A part of read-log-update whose time is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Copying,
    Locking,
    Ordering,
    Waiting,
}

/// A watch that counts the ticks of parts, for a session whose clock asks for it. For other clocks
/// nothing is left of it when it is compiled.
pub(super) struct Watch<'a, C> {
    laps: Laps<'a, C>,
    counters: &'a Counters,
}

impl<'a, C: Clock> Watch<'a, C> {
    /// Begins a part. Its time counts for the session that has `counters`, which is the caller's.
    #[inline(always)]
    pub(super) fn start(clock: &'a C, counters: &'a Counters) -> Self {
        Self {
            laps: Laps::start(clock),
            counters,
        }
    }

    /// Ends a part, and begins the next one.
    #[inline(always)]
    pub(super) fn end(&mut self, part: Part) {
        let Some(ticks) = self.laps.split() else {
            return;
        };
        let counter = match part {
            Part::Copying => &self.counters.ticks_copying,
            Part::Locking => &self.counters.ticks_locking,
            Part::Ordering => &self.counters.ticks_ordering,
            Part::Waiting => &self.counters.ticks_waiting,
        };
        counter.add(ticks);
    }
}

/// A counter that one thread at a time increments.
#[derive(Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    #[inline(always)]
    pub(super) fn add(&self, n: u64) {
        // Relaxed, both: a count, with one writer.
        self.0
            .store(self.0.load(Ordering::Relaxed) + n, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        // Relaxed: a count.
        self.0.load(Ordering::Relaxed)
    }
}
