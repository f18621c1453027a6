//! The smallest algorithm on a clock: one commit of two objects, and readers that must see both
//! halves or neither. With the rule it is right; without the rule a clock for tests has to show the
//! error.

use corelay_clock::{Clock, Time};
use corelay_sync::Backoff;
use corelay_sync::facade::atomic::{AtomicU64, Ordering};
use corelay_sync::facade::sync::Arc;
use corelay_sync::facade::thread;

/// The stamp before any commit.
const OLD: u64 = 0;
/// The stamp of a commit under way.
const PENDING: u64 = Time::NEVER.raw();

/// The order of the writer's announcement and draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Draws {
    /// The rule: announce, then draw.
    AfterItHasAnnounced,
    /// The mistake: draw without announcing.
    WithoutAnnouncing,
}

struct Objects<C> {
    clock: C,
    /// The commit's time in each object.
    stamps: [AtomicU64; 2],
}

impl<C: Clock> Objects<C> {
    fn write(&self, draws: Draws) {
        if draws == Draws::AfterItHasAnnounced {
            // Relaxed: the clock must order this.
            self.stamps
                .iter()
                .for_each(|s| s.store(PENDING, Ordering::Relaxed));
        }
        let time = self.clock.commit_time(Time::ZERO);
        // Relaxed: the stamp is all that is published.
        self.stamps
            .iter()
            .for_each(|s| s.store(time.raw(), Ordering::Relaxed));
    }

    /// Whether each object is seen as the commit left it.
    fn read(&self) -> [bool; 2] {
        let begin = self.clock.read_time();
        let is_new = |stamp: &AtomicU64| {
            let mut backoff = Backoff::new();
            loop {
                // Relaxed: the clock must order this.
                match stamp.load(Ordering::Relaxed) {
                    PENDING => backoff.wait(),
                    OLD => return false,
                    time => return self.clock.is_before(Time::from_raw(time), begin),
                }
            }
        };
        [is_new(&self.stamps[0]), is_new(&self.stamps[1])]
    }
}

/// Runs one writer and `readers` readers, each of which reads until it has seen the commit, but at
/// most `times` times. Returns how often a reader saw half a commit. This thread writes and is the
/// first to read the clock.
pub(crate) fn torn<C: Clock + 'static>(
    clock: C,
    draws: Draws,
    readers: usize,
    times: usize,
) -> usize {
    clock.now();
    let objects = Arc::new(Objects {
        clock,
        stamps: [AtomicU64::new(OLD), AtomicU64::new(OLD)],
    });
    let read = |_| {
        let objects = Arc::clone(&objects);
        thread::spawn(move || {
            let mut torn = 0;
            for _ in 0..times {
                match objects.read() {
                    [true, true] => break,
                    [x, y] => torn += usize::from(x != y),
                }
            }
            torn
        })
    };
    let readers: Vec<_> = (0..readers).map(read).collect();
    objects.write(draws);
    readers
        .into_iter()
        .map(|reader| reader.join().unwrap())
        .sum()
}
