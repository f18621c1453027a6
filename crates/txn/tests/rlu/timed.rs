//! The time of the parts, on clocks that ask for it.

use corelay_clock::{Clock, Logical, SkewedBuilder, Timed};
use corelay_txn::rlu::{Domain, Stats};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// The ticks of all parts: copying, locking, ordering, waiting.
fn parts(stats: Stats) -> [u64; 4] {
    [
        stats.ticks_copying,
        stats.ticks_locking,
        stats.ticks_ordering,
        stats.ticks_waiting,
    ]
}

/// Changes a cell a hundred times, beside a section that lasts `length` once.
fn change<C: Clock + 'static>(clock: C, length: Duration) -> Stats {
    let domain = Domain::new(clock);
    let cell = domain.cell([0_u64; 8]);
    let inside = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            domain.session().read(|section| {
                section.get(&cell);
                inside.store(true, Ordering::Release);
                thread::sleep(length);
            });
        });
        while !inside.load(Ordering::Acquire) {
            thread::yield_now();
        }
        let mut session = domain.session();
        for _ in 0..100 {
            session.write(|section| {
                section.try_lock(&cell)?[0] += 1;
                Ok(())
            });
        }
        session.sync();
    });
    domain.stats()
}

#[test]
fn parts_are_timed_on_a_clock_that_asks_for_it() {
    let skewed = SkewedBuilder {
        skew: 0,
        step: 1,
        boundary: 3,
        delay: 0,
    };
    let Some(logical) = Timed::new(Logical::new()) else {
        return;
    };
    let skewed = Timed::new(skewed.build()).unwrap();
    let length = Duration::from_millis(20);
    for stats in [change(logical, length), change(skewed, length)] {
        let [copying, locking, ordering, waiting] = parts(stats);
        // A copy may take no longer than reading the counter does.
        assert!(copying + locking > 0 && ordering > 0, "{stats:?}");
        assert!(stats.commits == 100 && waiting > 0, "{stats:?}");
    }
}

#[test]
fn other_clocks_time_nothing() {
    assert_eq!(parts(change(Logical::new(), Duration::ZERO)), [0; 4]);
}
