//! Lone calls answered in ffwd's response lines: the promises that they touch. Closures do not
//! wait for threads here: an answer comes when those of its pass have run.

use crate::support::{Tally, panic_of, scaled, start, watchdog};
use corelay_delegate::{ClientGuard, Trust, Trustees, barrier};
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

fn grouped() -> Trustees {
    start(Trustees::dedicated(1).response_groups(true))
}

#[test]
fn promise_01_answers_of_every_size() {
    let _watch = watchdog();
    fn go<const N: usize>(t: &Trust<u64>) {
        let tally = Tally::new();
        let token = tally.token();
        let (count, words, token) = t.apply(move |n| {
            *n += 1;
            (*n, [*n; N], token)
        });
        assert_eq!(words, [count; N]);
        drop(token);
        tally.assert_all_dropped(1);
    }
    let trustees = grouped();
    let t = trustees.entrust(0u64);
    t.apply(|_| ());
    assert_eq!(t.apply(|n| *n as u8 + 1), 1);
    assert!(t.apply(|n| *n == 0));
    go::<0>(&t);
    go::<1>(&t);
    go::<2>(&t);
    go::<3>(&t);
    go::<40>(&t);
    // A lone `apply_then` takes the same way.
    t.apply_then(|n| *n, |n| assert_eq!(n, 5));
    barrier().unwrap();
}

#[test]
fn promise_06_panics_reach_their_callers() {
    let _watch = watchdog();
    let trustees = grouped();
    let t = trustees.entrust(0u64);
    for _ in 0..3 {
        assert_eq!(panic_of(|| t.apply(|_| -> u64 { panic!("mine") })), "mine");
        assert!(panic_of(|| t.apply(|n| *n)).contains("poisoned"));
        t.clear_poison();
        assert_eq!(t.apply(|n| *n), 0);
    }
}

/// More clients than a group has seats, in several generations: seats are taken again whatever
/// their toggles are.
#[test]
fn promise_09_more_clients_than_a_group() {
    const CLIENTS: u64 = 17;
    let _watch = watchdog();
    let trustees = grouped();
    let t = trustees.entrust(0u64);
    let calls = scaled(200);
    for generation in 1..=3 {
        let start = Barrier::new(CLIENTS as usize);
        thread::scope(|s| {
            for client in 0..CLIENTS {
                let (t, start) = (&t, &start);
                s.spawn(move || {
                    let _guard = ClientGuard::new();
                    start.wait();
                    let mut last = 0;
                    // Odd and even numbers of calls.
                    for _ in 0..calls + client {
                        let now = t.apply(|n| {
                            *n += 1;
                            *n
                        });
                        assert!(now > last);
                        last = now;
                    }
                });
            }
        });
        let each = CLIENTS * calls + CLIENTS * (CLIENTS - 1) / 2;
        assert_eq!(t.apply(|n| *n), generation * each);
    }
}

#[test]
fn promise_10_both_sides_sleep() {
    let _watch = watchdog();
    let trustees = start(
        Trustees::dedicated(1)
            .spin(Duration::ZERO)
            .response_groups(true),
    );
    let t = trustees.entrust(0u64);
    for n in 0..20 {
        thread::sleep(Duration::from_millis(1));
        let pause = Duration::from_millis(n % 3);
        t.apply(move |n| {
            thread::sleep(pause);
            *n += 1;
        });
    }
    assert_eq!(t.apply(|n| *n), 20);
}

#[test]
fn promise_11_closed_is_closed_however_often_it_is_asked() {
    let _watch = watchdog();
    let trustees = grouped();
    let t = trustees.entrust(0u64);
    t.apply(|n| *n += 1);
    trustees.shutdown();
    for _ in 0..3 {
        assert!(panic_of(|| t.apply(|n| *n)).contains("shut down"));
    }
}
