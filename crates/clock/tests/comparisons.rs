//! The promises of `cmp` and `after`, for made-up and drawn times.

#![cfg(not(any(corelay_loom, corelay_shuttle)))]

use corelay_clock::{Clock, Fitness, Logical, Order, Ordo, SkewedBuilder, Time};
use proptest::prelude::*;

fn skewed(boundary: u64) -> corelay_clock::Skewed {
    SkewedBuilder {
        skew: boundary / 2,
        step: (boundary / 4).max(1),
        boundary,
        delay: 0,
    }
    .build()
}

fn opposite(order: Order) -> Order {
    match order {
        Order::Before => Order::After,
        Order::After => Order::Before,
        Order::Uncertain => Order::Uncertain,
    }
}

/// Any two times, including those at the ends of the range and those near each other.
fn times() -> impl Strategy<Value = (u64, u64)> {
    let any = 0..=Time::NEVER.raw();
    prop_oneof![
        (any.clone(), any.clone()),
        (any.clone(), 0..2_000_u64).prop_map(|(a, by)| (a, (a + by).min(Time::NEVER.raw()))),
    ]
}

fn compares<C: Clock>(clock: &C, a: u64, b: u64, exact: bool) -> Result<(), TestCaseError> {
    let boundary = clock.boundary();
    let (a, b) = (Time::from_raw(a), Time::from_raw(b));
    let order = clock.cmp(a, b);
    let expected = match a.raw().abs_diff(b.raw()) {
        apart if apart <= boundary => Order::Uncertain,
        _ if a < b => Order::Before,
        _ => Order::After,
    };
    prop_assert_eq!(order, expected);
    prop_assert_eq!(clock.cmp(b, a), opposite(order));
    prop_assert_eq!(clock.is_before(a, b), order == Order::Before);
    prop_assert!(!exact || a == b || order != Order::Uncertain);
    Ok(())
}

proptest! {
    #[test]
    fn times_are_apart_by_more_than_the_boundary_or_uncertain(
        (a, b) in times(),
        boundary in 0..1_000_u64,
    ) {
        compares(&Logical::new(), a, b, true)?;
        compares(&skewed(boundary), a, b, false)?;
        if Fitness::probe().verdict().is_ok() {
            compares(&Ordo::with_boundary(boundary), a, b, false)?;
        }
    }

    #[test]
    fn after_is_certainly_after(boundary in 0..5_000_u64, draws in 1..20_usize) {
        fn holds<C: Clock>(clock: &C, draws: usize) -> Result<(), TestCaseError> {
            let mut time = clock.now();
            for draw in 0..draws {
                let next = match draw % 3 {
                    0 => clock.after(time),
                    1 => clock.commit_time(time),
                    _ => clock.announced_time(time),
                };
                prop_assert_eq!(clock.cmp(time, next), Order::Before);
                prop_assert!(next < Time::NEVER && Time::ZERO < next);
                time = next;
            }
            Ok(())
        }
        holds(&Logical::new(), draws)?;
        holds(&skewed(boundary), draws)?;
        if Fitness::probe().verdict().is_ok() {
            holds(&Ordo::with_boundary(boundary), draws)?;
        }
    }
}

/// The exact edge, which made-up times seldom hit.
#[test]
fn times_a_boundary_apart_are_uncertain_and_a_tick_more_is_certain() {
    fn edge<C: Clock>(clock: &C) {
        let (at, boundary) = (Time::from_raw, clock.boundary());
        for a in [0, 1, 1_000, Time::NEVER.raw() - boundary - 1] {
            let (near, far) = (at(a + boundary), at(a + boundary + 1));
            assert_eq!(clock.cmp(at(a), near), Order::Uncertain);
            assert_eq!(clock.cmp(near, at(a)), Order::Uncertain);
            assert!(!clock.is_before(at(a), near) && clock.is_before(at(a), far));
            assert_eq!(clock.cmp(far, at(a)), Order::After);
        }
    }
    edge(&Logical::new());
    edge(&skewed(100));
    if Fitness::probe().verdict().is_ok() {
        edge(&Ordo::with_boundary(100));
    }
}

#[test]
fn with_the_largest_boundary_everything_is_uncertain() {
    if Fitness::probe().verdict().is_err() {
        return;
    }
    let clock = Ordo::with_boundary(u64::MAX);
    assert_eq!(clock.cmp(Time::ZERO, clock.now()), Order::Uncertain);
    assert_eq!(clock.cmp(Time::NEVER, Time::ZERO), Order::Uncertain);
}

#[test]
fn a_boundary_is_only_raised() {
    if Fitness::probe().verdict().is_err() {
        return;
    }
    let clock = Ordo::with_boundary(100);
    assert_eq!(clock.raise_boundary(50), 100);
    assert_eq!(clock.boundary(), 100);
    assert_eq!(clock.raise_boundary(200), 100);
    assert_eq!(clock.boundary(), 200);
}

#[test]
#[should_panic(expected = "no time of this clock")]
fn a_floor_of_another_clock_is_refused_by_the_counter() {
    Logical::new().commit_time(Time::from_raw(1 << 40));
}

#[test]
#[should_panic(expected = "no time of this clock")]
fn a_time_of_the_far_future_is_refused_without_waiting() {
    if let Err(unfit) = Fitness::probe().verdict() {
        panic!("{unfit}; for this test: no time of this clock");
    }
    Ordo::with_boundary(10).after(Time::NEVER);
}

/// `ZERO` is no floor: the clock does not wait for a boundary that is wider than its count so far.
#[test]
fn a_commit_time_without_a_floor_does_not_wait() {
    if Fitness::probe().verdict().is_ok() {
        let clock = Ordo::with_boundary(u64::MAX);
        assert!(clock.commit_time(Time::ZERO) > Time::ZERO);
        assert!(clock.announced_time(Time::ZERO) > Time::ZERO);
    }
}
