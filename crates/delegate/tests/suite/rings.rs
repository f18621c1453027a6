//! Windows, rings that grow, and positions that wrap.

use crate::support::{Rng, hold_up, one, scaled, start, watchdog};
use corelay_delegate::{Builder, ClientGuard, Trust, Trustees, TryPostError, barrier, poll};
use std::cell::Cell;
use std::rc::Rc;
use std::thread;

/// Sums that come out only when every request and every answer of any length has arrived,
/// once and whole.
fn traffic(t: &Trust<u64>, rng: &mut Rng, requests: u64) {
    let answers = Rc::new(Cell::new(0u64));
    let (mut expected, mut expected_answers) = (t.apply(|n| *n), 0u64);
    for i in 0..requests {
        macro_rules! send {
            ($words:literal, $answer:literal) => {{
                let (words, note) = ([i; $words], Rc::clone(&answers));
                expected = expected.wrapping_add(words.iter().sum::<u64>() + 1);
                let f = move |n: &mut u64| {
                    *n = n.wrapping_add(words.iter().sum::<u64>() + 1);
                    [i; $answer]
                };
                if rng.below(3) == 0 {
                    t.post(move |n| {
                        f(n);
                    });
                } else {
                    expected_answers += $answer * i;
                    t.apply_then(f, move |a: [u64; $answer]| {
                        assert!(a.iter().all(|&word| word == i));
                        note.set(note.get() + a.iter().sum::<u64>());
                    });
                }
            }};
        }
        match rng.below(12) {
            0..4 => send!(0, 0),
            4 => send!(1, 1),
            5 => send!(3, 8),
            6 => send!(7, 2),
            7 => send!(0, 9),
            8 => send!(23, 1),
            9 => send!(25, 0),
            10 => send!(26, 8),
            _ => match rng.below(6) {
                0 => poll(),
                1 => assert_eq!(t.apply(|n| *n), expected),
                _ => send!(13, 4),
            },
        }
    }
    barrier().unwrap();
    assert_eq!(answers.get(), expected_answers);
    assert_eq!(t.apply(|n| *n), expected);
}

fn check(builder: Builder, requests: u64) {
    let trustees = start(builder);
    let t = trustees.entrust(0u64);
    traffic(&t, &mut Rng::new(requests), requests);
    // Once more in rings that have grown and wrapped, and once on a new channel.
    traffic(&t, &mut Rng::new(7), 100);
    drop(ClientGuard::new());
    traffic(&t, &mut Rng::new(8), 100);
}

#[test]
fn windows_from_the_smallest_to_the_largest() {
    let _watch = watchdog();
    for window in [
        1, 2, 3, 4, 5, 6, 7, 8, 9, 31, 32, 33, 255, 257, 4096, 65_536,
    ] {
        check(Trustees::dedicated(1).window(window), scaled(1_000));
        check(
            Trustees::dedicated(1).window(window).ring_bytes(512),
            scaled(500),
        );
    }
}

/// The queue of callbacks has room for the usual ones of as many requests as take the fast path:
/// longer ones, shorter ones and requests without any share it.
#[test]
fn callbacks_of_every_length_find_room() {
    let _watch = watchdog();
    for (window, seed) in [(1, 1), (2, 2), (7, 3), (64, 4), (256, 5), (4096, 6)] {
        let trustees = start(Trustees::dedicated(1).window(window));
        let (t, mut rng) = (trustees.entrust(0u64), Rng::new(seed));
        let (seen, mut expected) = (Rc::new(Cell::new(0u64)), 0u64);
        for i in 0..scaled(6_000) {
            macro_rules! send {
                ($words:literal) => {{
                    let (words, note) = ([i; $words], Rc::clone(&seen));
                    expected += i;
                    t.apply_then(
                        move |_| i,
                        move |answer| {
                            assert!(words.iter().all(|&word| word == answer));
                            note.set(note.get() + answer);
                        },
                    );
                }};
            }
            // Runs of one kind, and then some of another in their midst.
            match (i / 97 + u64::from(rng.below(10) == 0)) % 7 {
                0 => t.post(|n| *n += 1),
                1 => send!(0),
                2 => send!(2),
                3 => send!(3),
                4 => send!(9),
                5 => send!(15),
                _ => send!(16),
            }
        }
        barrier().unwrap();
        assert_eq!(seen.get(), expected);
    }
}

#[test]
fn a_window_of_65_536_is_filled() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(1).window(65_536).ring_bytes(4 << 20));
    let t = trustees.entrust(0u64);
    let seen = Rc::new(Cell::new(0u64));
    for _ in 0..2 {
        let held = hold_up(&t);
        let mut taken = 1;
        while taken < 60_000 {
            let note = Rc::clone(&seen);
            t.apply_then(|n| *n += 1, move |()| note.set(note.get() + 1));
            taken += 1;
        }
        // With nothing executed, all of them are in flight.
        assert_eq!(seen.get() % 59_999, 0);
        while t.try_post(|n| *n += 1).is_ok() {
            taken += 1;
        }
        assert!((60_000..=65_536).contains(&taken), "{taken}");
        drop(held);
        barrier().unwrap();
    }
    assert_eq!(seen.get(), 2 * 59_999);
}

#[test]
fn rings_of_every_size() {
    let _watch = watchdog();
    for ring in [512, 513, 1000, 1024, 2048, 4096, 65_536, 1 << 20, 1 << 30] {
        check(
            Trustees::dedicated(1).ring_bytes(ring).window(2000),
            scaled(1_500),
        );
    }
}

/// Rings grow while requests are in flight, and again, and callbacks of all of them wait.
#[test]
fn rings_grow_under_load() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(1).window(20_000).ring_bytes(1 << 20));
    let t = trustees.entrust(Vec::new());
    let held = hold_up(&t);
    let seen = Rc::new(Cell::new(0u64));
    for i in 0..10_000u64 {
        let note = Rc::clone(&seen);
        t.apply_then(
            move |log| {
                log.push(i);
                i
            },
            move |i| {
                assert_eq!(note.get(), i);
                note.set(i + 1);
            },
        );
    }
    drop(held);
    barrier().unwrap();
    assert_eq!(seen.get(), 10_000);
    assert!(t.apply(|log| log.iter().copied().eq(0..10_000)));
}

/// The first lap begins shortly before the positions wrap: the cursor, the count, both, one
/// soon after the other.
#[test]
fn positions_wrap() {
    let _watch = watchdog();
    const MAX: u32 = u32::MAX;
    let origins = [
        (MAX - 7, MAX - 3),
        (MAX, MAX),
        (MAX - 1, 0),
        (0, MAX - 1),
        (MAX - 63, MAX - 20),
        (MAX - 64, MAX),
        (MAX - 100, MAX - 30),
        (MAX - 5_000, MAX - 700),
        (MAX / 2 - 30, MAX / 2 - 10),
        (MAX / 2 - 3, MAX - 3),
        (12_345, 54_321),
    ];
    for (cursor, count) in origins {
        for window in [1, 2, 5, 16, 256] {
            check(
                Trustees::dedicated(1).origin(cursor, count).window(window),
                scaled(400),
            );
        }
        check(
            Trustees::dedicated(1).origin(cursor, count).ring_bytes(512),
            scaled(400),
        );
        check(
            Trustees::dedicated(1).origin(cursor, count).batch(1),
            scaled(400),
        );
    }
}

/// Every start of the last lap, with a ring that holds the count's carry unit too.
#[test]
fn positions_wrap_from_everywhere() {
    let _watch = watchdog();
    for back in 0..70 {
        for requests_back in [0, 1, 2, 3, 20, 40] {
            let origin = (u32::MAX - back, u32::MAX - requests_back);
            let builder = Trustees::dedicated(1)
                .origin(origin.0, origin.1)
                .ring_bytes(512);
            let trustees = start(builder);
            let t = trustees.entrust(0u64);
            traffic(&t, &mut Rng::new(u64::from(back) + 1), 60);
        }
    }
}

/// Faults at the wrap: the record that is marked is the right one.
#[test]
fn faults_at_the_wrap() {
    let _watch = watchdog();
    for (cursor, count) in [
        (u32::MAX - 40, u32::MAX - 10),
        (u32::MAX, u32::MAX),
        (0, u32::MAX - 5),
    ] {
        let trustees = start(Trustees::dedicated(1).origin(cursor, count));
        let (t, bad) = (trustees.entrust(0u64), trustees.entrust(0u64));
        let called = Rc::new(Cell::new(0u64));
        for i in 0..200u64 {
            let note = Rc::clone(&called);
            if i % 7 == 3 {
                bad.apply_then(|_| panic!("at the wrap"), |()| unreachable!("no answer"));
            } else {
                t.apply_then(move |n| *n += i, move |()| note.set(note.get() + 1));
            }
        }
        let error = barrier().unwrap_err();
        assert_eq!(error.count(), 29);
        assert_eq!(called.get(), 171);
        let sum: u64 = (0..200).filter(|i| i % 7 != 3).sum();
        assert_eq!(t.apply(|n| *n), sum);
    }
}

/// Faults while the rings grow: the record of ring growth is no request on any object.
#[test]
fn faults_while_rings_grow() {
    let _watch = watchdog();
    for window in [3, 8, 256, 4096] {
        let trustees = start(Trustees::dedicated(1).window(window));
        let (t, bad) = (trustees.entrust(0u64), trustees.entrust(0u64));
        let called = Rc::new(Cell::new(0u64));
        let _ = crate::support::panic_of(|| bad.apply(|_| panic!("poison")));
        for round in 0..20u64 {
            let held = (window > 1000).then(|| hold_up(&t));
            for i in 0..60u64 {
                let (note, block) = (Rc::clone(&called), [i; 20]);
                if i % 10 == 9 {
                    bad.apply_then(move |n| *n += block[19], |()| unreachable!("no answer"));
                } else {
                    t.apply_then(
                        move |n| *n += block[3] + 1,
                        move |()| note.set(note.get() + 1),
                    );
                }
            }
            drop(held);
            assert_eq!(barrier().unwrap_err().count(), 6, "round {round}");
        }
        assert_eq!(called.get(), 20 * 54);
        assert_eq!(bad.try_apply(|n| *n).ok(), None);
    }
}

/// One client after another takes over a trustee in mid-lap; and several at a time.
#[test]
fn clients_have_rings_of_their_own() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(1).origin(u32::MAX - 999, u32::MAX - 99));
    thread::scope(|s| {
        for client in 1..6 {
            let t = trustees.entrust(0u64);
            s.spawn(move || {
                let _client = ClientGuard::new();
                traffic(&t, &mut Rng::new(client), scaled(2_000));
            });
        }
    });
}

/// Gives up when it would have to wait, and sends the closures that came back later.
#[test]
fn a_stream_of_try_post() {
    let _watch = watchdog();
    for window in [1, 2, 30] {
        let trustees = start(Trustees::dedicated(1).window(window).ring_bytes(512));
        let t = trustees.entrust(Vec::new());
        let requests = scaled(2_000);
        for i in 0..requests {
            let mut f = move |log: &mut Vec<u64>| log.push(i);
            while let Err(error) = t.try_post(f) {
                let TryPostError::Full(back) = error else {
                    panic!("{error}")
                };
                f = back;
                thread::yield_now();
            }
        }
        assert!(t.apply(std::mem::take).into_iter().eq(0..requests));
    }
    drop(one());
}
