//! Promise 2: `apply` may borrow, and does not leave the caller's frame before it is answered.

use crate::support::{Gate, OnDrop, hold_up, one, panic_of, scaled, settle, start, watchdog};
use corelay_delegate::{Trust, Trustees, TryApplyError, barrier};
use corelay_sync::{Session, Shared};
use std::cell::Cell;
use std::rc::Rc;

#[test]
fn promise_02_apply_borrows_from_its_caller() {
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(vec![1u64, 2, 3]);
    let factor = 10;
    let mut seen = Vec::new();
    let text = String::from("borrowed text");
    let part: &str = t.apply(|v| {
        seen.extend(v.iter().map(|n| n * factor));
        &text[..8]
    });
    assert_eq!(
        (part, seen.as_slice()),
        ("borrowed", [10, 20, 30].as_slice())
    );
    let mut big = [0u64; 300];
    t.apply(|v| big[299] = v[2]);
    assert_eq!(big[299], 3);
    assert_eq!(t.try_apply(|v| seen.append(v)).ok(), Some(()));
    assert_eq!(seen.len(), 6);
    let slot = &mut big[0];
    t.session().apply(|v| {
        *slot = 5;
        v.push(*slot);
    });
    assert_eq!((big[0], t.apply(|v| v[0])), (5, 5));
}

/// Each answer must be there when `apply` returns: the trustee writes into the caller's
/// frame, which the next call uses for something else.
#[test]
fn promise_02_frames_are_left_after_the_answer() {
    let _watch = watchdog();
    #[inline(never)]
    fn through_a_frame(t: &Trust<u64>, i: u64) -> u64 {
        let mut frame = [i; 40];
        t.apply(|n| {
            *n += 1;
            frame.iter_mut().for_each(|word| *word += *n);
        });
        frame.iter().sum::<u64>() / 40 - i
    }
    let trustees = one();
    let t = trustees.entrust(0u64);
    let threads = 4;
    let each = scaled(2_000);
    std::thread::scope(|s| {
        for _ in 0..threads {
            s.spawn(|| {
                let mut last = 0;
                for i in 0..each {
                    let n = through_a_frame(&t, i);
                    assert!(n > last, "every call sees a later value");
                    last = n;
                }
            });
        }
    });
    assert_eq!(t.apply(|n| *n), threads * each);
}

/// Sends two requests, the first with a callback that panics, and waits until both have been
/// executed. The next call that reaps runs the callback.
fn leave_a_panicking_callback(t: &Trust<u64>) {
    let ran = Gate::new();
    let (open, held) = (ran.clone(), hold_up(t));
    t.apply_then(|_| (), |()| panic!("the callback"));
    t.apply_then(move |_| open.open(), |()| ());
    drop(held);
    settle(t, &ran);
}

#[test]
fn promise_02_panics_of_callbacks_are_held_until_the_answer() {
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(0u64);

    leave_a_panicking_callback(&t);
    let mut answered = false;
    let text = panic_of(|| {
        t.apply(|n| {
            *n += 1;
            answered = true;
        })
    });
    assert_eq!((text.as_str(), answered), ("the callback", true));

    leave_a_panicking_callback(&t);
    let mut answered = false;
    assert_eq!(
        panic_of(|| t.try_apply(|_| answered = true)),
        "the callback"
    );
    assert!(answered);

    // The captures are too large for the line: they lie in the caller's frame.
    leave_a_panicking_callback(&t);
    let mut block = [0u64; 64];
    let text = panic_of(|| t.apply(|n| block.fill(*n + 7)));
    assert_eq!((text.as_str(), block[63]), ("the callback", 8));

    leave_a_panicking_callback(&t);
    let mut answered = false;
    let mut session = t.session();
    assert_eq!(
        panic_of(|| session.apply(|_| answered = true)),
        "the callback"
    );
    assert!(answered);

    // Nothing is left over.
    barrier().unwrap();
    assert_eq!(t.apply(|n| *n), 1);
}

/// While a callback waits in `apply`, callbacks of other requests do not run, so nothing
/// can unwind through the borrowing frame.
#[test]
fn promise_02_a_panic_of_the_closure_comes_after_its_last_access() {
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(0u64);
    let touched = Cell::new(0u64);
    for round in 1..=50u64 {
        let mut frame = [0u64; 32];
        let text = panic_of(|| {
            t.apply(|_| {
                let late = OnDrop::new(|| frame.fill(round));
                if round > 0 {
                    panic!("closure {round}");
                }
                drop(late);
            })
        });
        assert_eq!(text, format!("closure {round}"));
        touched.set(touched.get() + frame[31]);
        t.clear_poison();
    }
    assert_eq!(touched.get(), (1..=50).sum::<u64>());
}

#[test]
fn promise_02_apply_inside_a_callback_borrows_too() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(2));
    let (a, b) = (trustees.entrust_on(0, 1u64), trustees.entrust_on(1, 2u64));
    let seen = Rc::new(Cell::new(0));
    let (note, a2) = (Rc::clone(&seen), a.clone());
    a.apply_then(
        |n| *n,
        move |n| {
            let mut frame = [n; 20];
            b.apply(|m| frame[19] += *m);
            a2.apply(|m| frame[18] += *m);
            note.set(frame[19] * 10 + frame[18]);
        },
    );
    barrier().unwrap();
    assert_eq!(seen.get(), 32);
}

#[test]
fn promise_02_refused_borrows_come_back() {
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(0u64);
    trustees.shutdown();
    let mut text = String::from("still here");
    let f = match t.try_apply(|n| {
        text.push('!');
        *n
    }) {
        Err(TryApplyError::Closed(f)) => f,
        other => panic!("{other:?}"),
    };
    assert_eq!(f(&mut 3), 3);
    assert_eq!(text, "still here!");
}
