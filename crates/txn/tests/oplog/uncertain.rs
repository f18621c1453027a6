//! Pairs whose order the clock leaves open are counted, and nothing else.

use super::{Say, skewed};
use corelay_clock::{Clock, Logical, Order, Time};
use corelay_txn::oplog::{Add, OpLog, Remap, ReverseMap};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A clock whose times the test dictates; it never waits.
struct DictatedClock(AtomicUsize);

impl DictatedClock {
    const BOUNDARY: u64 = 10;

    fn at(&self, time: usize) -> &Self {
        self.0.store(time, Ordering::Relaxed);
        self
    }
}

impl Clock for DictatedClock {
    fn now(&self) -> Time {
        Time::from_raw(self.0.load(Ordering::Relaxed) as u64)
    }
    fn read_time(&self) -> Time {
        self.now()
    }
    fn commit_time(&self, _: Time) -> Time {
        self.now()
    }
    fn after(&self, _: Time) -> Time {
        self.now()
    }
    fn wait_out(&self, _: Time) {}
    fn cmp(&self, a: Time, b: Time) -> Order {
        match a.raw().abs_diff(b.raw()) {
            0..=Self::BOUNDARY => Order::Uncertain,
            _ if a < b => Order::Before,
            _ => Order::After,
        }
    }
    fn boundary(&self) -> u64 {
        Self::BOUNDARY
    }
}

/// Neighbours in a merge's order are counted if the clock does not tell them apart and the order
/// matters.
#[test]
fn comparisons_that_the_clock_left_open_are_counted() {
    let clock = DictatedClock(AtomicUsize::new(0));
    let log = OpLog::new(Vec::new(), &clock);
    let (mut one, mut other) = (log.session(), log.session());
    for (time, session) in [(100, &mut one), (111, &mut other)] {
        clock.at(time);
        session.update(Say(time as u32));
    }
    log.try_merge().unwrap();
    assert_eq!(log.stats().uncertain, 0);
    // 105 is in one log, 95 and 120 in the other; 105 and 120 are told apart.
    for (time, is_one) in [(105, true), (95, false), (120, false)] {
        let session = if is_one { &mut one } else { &mut other };
        clock.at(time);
        session.update(Say(time as u32));
    }
    assert_eq!(log.stats().uncertain, 0, "not before somebody reads");
    assert!(one.read(|said| *said == [100, 111, 95, 105, 120]));
    assert_eq!(log.stats().uncertain, 1);

    // At first each log alone has one of the two keys, then both logs have one.
    let map = OpLog::new(ReverseMap::new(), &clock);
    let (mut one, mut other) = (map.session(), map.session());
    one.update(Remap::Add(1, 1));
    other.update(Remap::Add(2, 2));
    map.try_merge().unwrap();
    assert_eq!(map.stats().uncertain, 0);
    one.update(Remap::Add(3, 1));
    other.update(Remap::Remove(3, 1));
    map.try_merge().unwrap();
    assert_eq!(map.stats().uncertain, 1);

    let sum = OpLog::new(0, &clock);
    sum.session().update(Add(1));
    let mut two = (sum.session(), sum.session());
    two.0.update(Add(1));
    two.1.update(Add(1));
    assert_eq!((sum.read(|&n| n), sum.stats().uncertain), (3, 0));

    // Exact, and one after the other with a boundary that was waited out.
    fn in_turn<C: Clock>(clock: C) -> u64 {
        let log = OpLog::new(Vec::new(), clock);
        let mut sessions = [log.session(), log.session()];
        for n in 0..20 {
            sessions[n as usize % 2].update(Say(n));
        }
        assert!(log.read(|said| said.iter().copied().eq(0..20)));
        log.stats().uncertain
    }
    assert_eq!((in_turn(Logical::new()), in_turn(skewed())), (0, 0));
}
