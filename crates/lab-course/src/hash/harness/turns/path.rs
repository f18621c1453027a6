//! The recent path of a thread through the points, and how rare it is.
//!
//! A fault that shows at every 200th growth lies on a path that few calls take: lock operations
//! in places, or in an order, that other calls do not have. Three points in a row are counted, as
//! fuzzers count the edges of a program, and a thread is held up more often where it is rare.

use crate::dice::mix;
use std::panic::Location;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Counters; two paths that share one are counted together.
const COUNTERS: usize = 1 << 13;

static SEEN: [AtomicU32; COUNTERS] = [const { AtomicU32::new(0) }; COUNTERS];
static ALL: AtomicU64 = AtomicU64::new(0);

/// A kind of point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A call of the table begins or has ended.
    Call,
    /// A lock is about to be taken.
    Before,
    /// A lock has been taken.
    Inside,
    /// A lock has been released.
    After,
    /// An atomic variable is about to be read or written.
    Atomic,
    /// The thread says that it waits for another.
    Spin,
}

/// How rare a path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rarity {
    Common,
    Uncommon,
    Rare,
}

/// The last points of a thread.
#[derive(Debug, Default)]
pub(crate) struct Path {
    last: [u64; 2],
    address: usize,
}

impl Path {
    /// Goes on to a point, and returns how rare the path to it is.
    pub(crate) fn at(&mut self, kind: Kind, place: &Location<'_>, address: usize) -> Rarity {
        let same = u64::from(address == self.address);
        let place = (u64::from(place.line()) << 32) | u64::from(place.column());
        let here = mix(place ^ ((kind as u64) << 24) ^ (same << 30));
        let [two, one] = self.last;
        let path = mix(here ^ one.rotate_left(21) ^ two.rotate_left(42));
        self.last = [one, here];
        self.address = address;
        // Relaxed: lost or late counts only shift the odds.
        let seen = SEEN[path as usize % COUNTERS].fetch_add(1, Ordering::Relaxed);
        let all = ALL.fetch_add(1, Ordering::Relaxed);
        match u64::from(seen) {
            seen if seen * 4_000 <= all => Rarity::Rare,
            seen if seen * 200 <= all => Rarity::Uncommon,
            _ => Rarity::Common,
        }
    }
}

/// Returns how many points threads have passed. A number that stands still is a sign of a hang.
pub fn passed() -> u64 {
    // Relaxed: the watching thread looks again and again.
    ALL.load(Ordering::Relaxed)
}
