//! Clocks that give absurd times: nothing wraps, nothing is mistaken for locked, no thread waits
//! for ever.

use super::{Named, scaled};
use corelay_clock::{Clock, Order, Time};
use corelay_txn::rlu::Domain;
use corelay_txn::tl2::{Stm, TVar};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// A clock that gives any time that the test wants.
#[derive(Debug)]
struct Absurd {
    time: fn(u64) -> u64,
    boundary: u64,
    calls: AtomicU64,
}

impl Absurd {
    fn all() -> Vec<Self> {
        let times: [fn(u64) -> u64; 8] = [
            |_| 0,
            |_| 1,
            |_| u64::MAX,
            |_| Time::NEVER.raw(),
            |call| u64::MAX - call,
            |call| (1 << 62) - 20 + call,
            |call| if call % 3 == 0 { u64::MAX } else { call },
            |call| call.wrapping_mul(0x9E37_79B9_7F4A_7C15),
        ];
        let of = |time| {
            [0, 7, u64::MAX].map(|boundary| Self {
                time,
                boundary,
                calls: AtomicU64::new(0),
            })
        };
        times.into_iter().flat_map(of).collect()
    }
}

impl Clock for Absurd {
    fn now(&self) -> Time {
        Time::from_raw((self.time)(self.calls.fetch_add(1, Ordering::SeqCst)))
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
    fn cmp(&self, a: Time, b: Time) -> Order {
        let apart = a.raw().abs_diff(b.raw());
        match a.cmp(&b) {
            _ if apart <= self.boundary => Order::Uncertain,
            std::cmp::Ordering::Less => Order::Before,
            _ => Order::After,
        }
    }
    fn boundary(&self) -> u64 {
        self.boundary
    }
}

#[test]
fn tl2_counts_right_by_absurd_times() {
    let _named = Named::new("TL2 on an absurd clock");
    for clock in Absurd::all() {
        let stm = Stm::new(clock);
        let (x, y) = (TVar::new(0_u64), TVar::new(0_u64));
        let each = scaled(200);
        thread::scope(|s| {
            for _ in 0..2 {
                s.spawn(|| {
                    for _ in 0..each {
                        stm.atomically(|tx| {
                            tx.update(&x, |x| x + 1)?;
                            tx.update(&y, |y| y + 1)
                        });
                    }
                });
            }
        });
        assert_eq!((x.load(), y.load()), (2 * each, 2 * each));
        assert!(stm.stats().beyond > 0, "it was trusted: {stm:?}");
    }
}

#[test]
fn rlu_counts_right_and_tears_nothing_by_absurd_times() {
    let _named = Named::new("RLU on an absurd clock");
    for clock in Absurd::all() {
        let domain = Domain::new(clock);
        let (x, y) = (domain.cell(0_u64), domain.cell(0_u64));
        let each = scaled(200);
        thread::scope(|s| {
            for _ in 0..2 {
                s.spawn(|| {
                    let mut session = domain.session();
                    for _ in 0..each {
                        session.write(|section| {
                            *section.try_lock(&x)? += 1;
                            *section.try_lock(&y)? += 1;
                            Ok(())
                        });
                        let (x, y) = session.read(|section| (*section.get(&x), *section.get(&y)));
                        assert_eq!(x, y, "torn");
                    }
                });
            }
        });
        let mut session = domain.session();
        let (x, y) = session.read(|section| (*section.get(&x), *section.get(&y)));
        assert_eq!((x, y), (2 * each, 2 * each));
    }
}
