//! One shared counter.

use crate::{Clock, Order, Time};
use corelay_sync::CachePadded;
use corelay_sync::facade::atomic::{AtomicU64, Ordering};

/// One shared counter that every commit increments.
///
/// It is exact: only two reads between the same commits are uncertain. Every commit moves the
/// counter's cache line to its core, and every reader fetches the line afterwards.
///
/// Commits have even times, reads odd ones. A read that has seen a commit's increment is later than
/// the commit, any other is earlier, and no comparison needs "or equal".
#[derive(Debug)]
pub struct Logical {
    commits: CachePadded<AtomicU64>,
}

impl Logical {
    /// A clock at its first time.
    pub fn new() -> Self {
        Self {
            commits: CachePadded::new(AtomicU64::new(2)),
        }
    }
}

impl Default for Logical {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for Logical {
    #[inline(always)]
    fn now(&self) -> Time {
        // Acquire: pairs with the increment of each commit that it counts, and shows their
        // announcements.
        Time::from_raw(self.commits.load(Ordering::Acquire) | 1)
    }

    #[inline(always)]
    fn read_time(&self) -> Time {
        self.now()
    }

    #[inline(always)]
    fn commit_time(&self, floor: Time) -> Time {
        // AcqRel: publishes the announcements of this commit to later reads and commits, and shows
        // it those of earlier commits.
        let time = self.commits.fetch_add(2, Ordering::AcqRel) + 2;
        assert!(
            time > floor.raw(),
            "{floor:?} is no time of this clock, which stands at {time}: a floor must be one that \
             this clock has given out"
        );
        Time::from_raw(time)
    }

    #[inline(always)]
    fn after(&self, t: Time) -> Time {
        self.commit_time(t)
    }

    #[inline(always)]
    fn wait_out(&self, _t: Time) {
        // Nothing to wait for: the next increment is greater.
    }

    #[inline(always)]
    fn cmp(&self, a: Time, b: Time) -> Order {
        match a.cmp(&b) {
            std::cmp::Ordering::Less => Order::Before,
            std::cmp::Ordering::Equal => Order::Uncertain,
            std::cmp::Ordering::Greater => Order::After,
        }
    }

    fn boundary(&self) -> u64 {
        0
    }

    #[inline(always)]
    fn exact(&self, _: crate::sealed::Ours) -> bool {
        true
    }
}
