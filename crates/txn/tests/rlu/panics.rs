//! A clock that panics leaves no session waiting.

use corelay_clock::{Clock, Order, Time};
use corelay_txn::rlu::{Domain, Session};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A counter that panics when it is told to.
#[derive(Default)]
struct Loud {
    time: AtomicU64,
    stands: AtomicBool,
    reading: AtomicBool,
    committing: AtomicBool,
}

impl Clock for Loud {
    fn now(&self) -> Time {
        if self.stands.load(Ordering::SeqCst) {
            return Time::from_raw(1);
        }
        Time::from_raw(10 + self.time.fetch_add(2, Ordering::SeqCst))
    }
    fn read_time(&self) -> Time {
        assert!(!self.reading.load(Ordering::SeqCst), "reading");
        self.now()
    }
    fn commit_time(&self, _: Time) -> Time {
        assert!(!self.committing.load(Ordering::SeqCst), "committing");
        self.now()
    }
    fn after(&self, _: Time) -> Time {
        self.now()
    }
    fn cmp(&self, _: Time, _: Time) -> Order {
        Order::Uncertain
    }
    fn boundary(&self) -> u64 {
        0
    }
}

fn add(session: &mut Session<Loud>, cell: &corelay_txn::rlu::Rlu<u64, Loud>) {
    session.write(|section| {
        *section.try_lock(cell)? += 1;
        Ok(())
    });
}

#[test]
fn a_section_that_could_not_begin_is_not_waited_for() {
    let domain = Domain::new(Loud::default());
    let cell = domain.cell(0);
    let (mut writer, mut reader) = (domain.session(), domain.session());
    add(&mut writer, &cell);
    let say = |is_bad| {
        // Not beyond the horizon, so that the clock has to be read again.
        domain.clock().stands.store(is_bad, Ordering::SeqCst);
        domain.clock().reading.store(is_bad, Ordering::SeqCst);
    };
    say(true);
    catch_unwind(AssertUnwindSafe(|| reader.read(|s| *s.get(&cell)))).unwrap_err();
    say(false);
    add(&mut writer, &cell);
    writer.sync();
    assert_eq!(reader.read(|section| *section.get(&cell)), 2);
}

#[test]
fn an_announced_time_that_is_never_said_is_not_waited_for() {
    let domain = Domain::new(Loud::default());
    let cell = domain.cell(0);
    let (mut writer, mut reader) = (domain.session(), domain.session());
    let say = |is_bad| domain.clock().committing.store(is_bad, Ordering::SeqCst);
    say(true);
    catch_unwind(AssertUnwindSafe(|| add(&mut writer, &cell))).unwrap_err();
    say(false);
    assert_eq!(reader.read(|section| *section.get(&cell)), 0);
    // The write set has been kept, and is published with the next.
    writer.sync();
    assert_eq!(reader.read(|section| *section.get(&cell)), 1);
}
