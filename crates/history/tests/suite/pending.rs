//! Calls that never returned.

use crate::support::{history, refuted};
use corelay_history::model::register::{Operation::*, Output::*, Register};
use corelay_history::model::{counter, register};
use corelay_history::{Call, Failure, GaveUp, History, check, check_within};

type Registers = History<register::Operation<u32>, register::Output<u32>>;

#[test]
fn pending_calls_may_take_effect_at_any_time_or_never() {
    let reads = |values: [u32; 3]| -> Registers {
        let mut h = History::new();
        h.push(0, Call::pending(Write(1), 2));
        for (at, value) in [0, 10, 20].into_iter().zip(values) {
            h.push(1, Call::returned(Read, at..=at + 5, Value(value)));
        }
        h
    };
    for explained in [[0, 0, 0], [0, 0, 1], [0, 1, 1], [1, 1, 1]] {
        check(&Register::new(0), &reads(explained)).unwrap();
    }
    for wrong in [[1, 0, 0], [0, 1, 0], [1, 0, 1]] {
        refuted(&Register::new(0), &reads(wrong));
    }
}

#[test]
fn pending_calls_take_effect_once_and_not_before_they_begin() {
    let mut h: Registers = history([
        (1, Read, 0..=1, Value(0)),
        (1, Write(2), 5..=6, Written),
        (1, Read, 7..=8, Value(1)),
        (1, Write(3), 9..=10, Written),
    ]);
    h.push(0, Call::pending(Write(1), 2));
    check(&Register::new(0), &h).unwrap();
    h.push(1, Call::returned(Read, 11..=12, Value(1)));
    refuted(&Register::new(0), &h);
    let early: Registers = history([(1, Read, 0..=1, Value(1))]);
    let mut early = early;
    early.push(0, Call::pending(Write(1), 2));
    refuted(&Register::new(0), &early);
}

/// A thread whose call panicked goes on. The call may take effect even later.
#[test]
fn a_thread_may_go_on_after_a_pending_call() {
    let mut h: Registers = History::new();
    h.push(0, Call::pending(Write(1), 0));
    h.push(0, Call::returned(Read, 1..=2, Value(0)));
    h.push(0, Call::returned(Read, 3..=4, Value(1)));
    check(&Register::new(0), &h).unwrap();
    h.push(0, Call::returned(Read, 5..=6, Value(0)));
    refuted(&Register::new(0), &h);
}

/// Each of them may or may not have taken effect. That would be 2^20 situations, if configurations
/// that others can replace were not dropped.
#[test]
fn many_pending_calls_do_no_harm() {
    let mut h: Registers = History::new();
    for thread in 0..20 {
        h.push(thread, Call::pending(Write(thread as u32 + 1), 0));
    }
    for n in 0..200 {
        h.push(
            20,
            Call::returned(Write(0), 10 * n + 1..=10 * n + 3, Written),
        );
        h.push(20, Call::returned(Read, 10 * n + 4..=10 * n + 6, Value(0)));
    }
    check_within(&Register::new(0), &h, 10_000).unwrap();
    h.push(20, Call::returned(Read, 9_000..=9_001, Value(7)));
    h.push(20, Call::returned(Write(0), 9_002..=9_003, Written));
    check_within(&Register::new(0), &h, 10_000).unwrap();
    h.push(20, Call::returned(Read, 9_004..=9_005, Value(7)));
    let wrong = check_within(&Register::new(0), &h, 10_000).unwrap_err();
    assert!(matches!(wrong, Failure::NotLinearizable(_)), "{wrong}");
}

#[test]
fn equal_pending_calls_are_interchangeable() {
    use counter::{Counter, Operation, Output};
    let mut h = History::new();
    for thread in 0..100 {
        h.push(thread, Call::pending(Operation::Add(1), 0));
    }
    let read = |count| Call::returned(Operation::Read, 1..=2, Output::Value(count));
    let mut right = h.clone();
    right.push(100, read(100));
    check(&Counter::new(0), &right).unwrap();
    h.push(100, read(101));
    refuted(&Counter::new(0), &h);
}

#[test]
fn too_many_calls_in_flight_give_up() {
    let mut wide: Registers = History::new();
    for thread in 0..129 {
        wide.push(thread, Call::pending(Write(thread as u32), 0));
    }
    wide.push(129, Call::returned(Read, 1..=2, Value(3)));
    let gave_up = check(&Register::new(0), &wide).unwrap_err();
    assert_eq!(gave_up, Failure::GaveUp(GaveUp::InFlight));
    let mut many: Registers = History::new();
    for thread in 0..30 {
        many.push(
            thread,
            Call::returned(Write(thread as u32), 0..=thread as u64 + 1, Written),
        );
    }
    let gave_up = check_within(&Register::new(0), &many, 100).unwrap_err();
    assert_eq!(gave_up, Failure::GaveUp(GaveUp::Configurations(100)));
    assert!(gave_up.to_string().contains("more than 100 configurations"));
}
