//! Promise 6: A panic is caught, reaches the caller that waits, and poisons the object; the trustee
//! lives on.

use crate::support::{
    Gate, OnDrop, Tally, hold_up, one, panic_of, settle, start, text_of, watchdog,
};
use corelay_delegate::{Poisoned, Trust, Trustees, TryApplyError, TryPostError, barrier, poll};
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};
use std::process::Command;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[test]
fn promise_06_apply_raises_the_panic_in_its_caller() {
    let _watch = watchdog();
    #[derive(Debug, PartialEq)]
    struct Special(u64);
    let trustees = one();
    let t = trustees.entrust(0u64);
    let raise: [fn(); 4] = [
        || panic!("text"),
        || panic!("{} text", "formatted"),
        || panic_any(Special(7)),
        || resume_unwind(Box::new(Special(8))),
    ];
    for (i, raise) in raise.into_iter().enumerate() {
        let payload = catch_unwind(AssertUnwindSafe(|| t.apply(|_| raise()))).unwrap_err();
        match i {
            0 => assert_eq!(text_of(&*payload), "text"),
            1 => assert_eq!(text_of(&*payload), "formatted text"),
            _ => assert_eq!(payload.downcast_ref(), Some(&Special(i as u64 + 5))),
        }
        t.clear_poison();
        // The same from `try_apply`, with captures that stay in the caller's frame.
        let block = [i; 50];
        let call = || t.try_apply(move |_| (block[49] < 9).then(raise));
        let payload = catch_unwind(AssertUnwindSafe(call)).unwrap_err();
        assert_eq!(i >= 2, payload.is::<Special>());
        t.clear_poison();
    }
    barrier().unwrap();
    assert_eq!(trustees.shutdown()[0].panics, 8);
}

#[test]
fn promise_06_poison_is_the_objects_own_and_can_be_cleared() {
    let _watch = watchdog();
    let trustees = one();
    let (t, other) = (trustees.entrust(1u64), trustees.entrust(2u64));
    for round in 0..4 {
        assert!(!t.is_poisoned());
        assert_eq!(
            panic_of(|| t.apply(|_| panic!("round {round}"))),
            format!("round {round}")
        );
        assert!(t.is_poisoned() && !other.is_poisoned());
        std::thread::scope(|s| {
            s.spawn(|| assert!(t.is_poisoned(), "on another thread too"));
        });
        // All later callers are told.
        assert!(panic_of(|| t.apply(|n| *n)).contains("poisoned"));
        assert!(matches!(t.try_apply(|n| *n), Err(TryApplyError::Poisoned)));
        assert_eq!(other.apply(|n| *n), 2);
        t.post(|n| *n += 100);
        let called = Rc::new(Cell::new(false));
        let note = Rc::clone(&called);
        t.apply_then(|n| *n += 100, move |()| note.set(true));
        assert!(
            t.try_post(|n| *n += 100).is_ok(),
            "it is the trustee who notices"
        );
        let error = barrier().unwrap_err();
        assert_eq!(error.count(), 3);
        assert!(error.message().contains("poisoned"));
        assert!(error.into_first().is::<Poisoned>());
        assert!(!called.get(), "no answer, no callback");
        barrier().unwrap();
        t.clear_poison();
        assert!(!t.is_poisoned());
        assert_eq!(t.apply(|n| *n), 1);
    }
    // On a healthy object it does nothing, and twice is as good as once.
    other.clear_poison();
    assert_eq!(other.apply(|n| *n), 2);
    let _ = panic_of(|| t.apply(|_| panic!()));
    t.clear_poison();
    t.clear_poison();
    assert_eq!(t.apply(|n| *n), 1);
    // Poisoned again before the trustee has noticed that it was cleared.
    for _ in 0..3 {
        let _ = panic_of(|| t.apply(|_| panic!()));
        t.clear_poison();
    }
    assert_eq!(t.apply(|n| *n), 1);
}

#[test]
fn promise_06_a_poisoned_object_may_be_dropped() {
    let _watch = watchdog();
    let trustees = one();
    let tally = Tally::new();
    for _ in 0..5 {
        let t = trustees.entrust(tally.token());
        let _ = panic_of(|| t.apply(|_| panic!("poison")));
        assert!(t.is_poisoned());
    }
    let t = trustees.entrust(tally.token());
    t.apply(|_| ());
    drop(t);
    trustees.shutdown();
    tally.assert_all_dropped(6);
}

#[test]
fn promise_06_barrier_counts_and_gives_the_first() {
    let _watch = watchdog();
    let trustees = one();
    let objects: Vec<Trust<u64>> = (0..3).map(|_| trustees.entrust(0)).collect();
    let tally = Tally::new();
    for (i, t) in objects.iter().enumerate() {
        let tokens: Vec<_> = (0..6).map(|_| tally.token()).collect();
        let [a, b, c, d, e, f] = tokens.try_into().unwrap_or_else(|_| unreachable!());
        t.post(move |n| {
            *n += 1;
            drop(a);
        });
        t.apply_then(
            move |_| {
                let _b = b;
                panic!("object {i}");
            },
            move |()| drop(c),
        );
        t.post(move |_| drop(d));
        t.apply_then(move |_| drop(e), move |()| drop(f));
    }
    let error = barrier().unwrap_err();
    assert_eq!((error.count(), error.message()), (9, "object 0"));
    assert_eq!(
        error.to_string(),
        "9 delegated request(s) failed; the first: object 0"
    );
    assert_eq!(format!("{error:?}"), error.to_string());
    assert_eq!(text_of(&*error.into_first()), "object 0");
    tally.assert_all_dropped(18);
    barrier().unwrap();
    for t in &objects {
        t.clear_poison();
        assert_eq!(t.apply(|n| *n), 1);
    }
}

#[test]
fn promise_06_barrier_adds_up_over_trustees() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(3));
    for i in 0..3 {
        let t = trustees.entrust_on(i, ());
        for _ in 0..=i {
            t.post(|()| panic_any(5u8));
        }
    }
    let error = barrier().unwrap_err();
    assert_eq!(
        (error.count(), error.message()),
        (6, "a panic whose payload is no text")
    );
    assert!(error.into_first().is::<u8>());
    barrier().unwrap();
}

/// Each thread's barrier reports its own failures.
#[test]
fn promise_06_failures_are_reported_to_their_own_thread() {
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(0u64);
    std::thread::scope(|s| {
        s.spawn(|| {
            t.post(|_| panic!("theirs"));
            assert_eq!(barrier().unwrap_err().message(), "theirs");
        });
    });
    barrier().unwrap();
    t.clear_poison();
    t.post(|n| *n += 1);
    barrier().unwrap();
}

/// A failure is kept until a barrier asks for it, though its trustee has ended and others
/// have begun.
#[test]
fn promise_06_a_failure_outlives_its_trustee() {
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(0u64);
    t.post(|_| panic!("remember me"));
    trustees.shutdown();
    for _ in 0..3 {
        let others = one();
        others.entrust(0u64).apply(|_| ());
    }
    let error = barrier().unwrap_err();
    assert_eq!((error.count(), error.message()), (1, "remember me"));
}

#[test]
fn promise_06_faults_among_many() {
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(0u64);
    let objects: Vec<Trust<u64>> = (0..50).map(|_| trustees.entrust(0)).collect();
    let (called, failing) = (Rc::new(Cell::new(0u64)), 50 * 7);
    for round in 0..7u64 {
        for bad in &objects {
            for _ in 0..round {
                let called = Rc::clone(&called);
                t.apply_then(|n| *n += 1, move |()| called.set(called.get() + 1));
            }
            bad.apply_then(
                |_| panic!("one of many"),
                |()| unreachable!("it has no answer"),
            );
            bad.clear_poison();
            t.post(|n| *n += 1);
        }
    }
    let error = barrier().unwrap_err();
    // Clearing overtakes the poisoning here and there; then later ones reach poison.
    assert_eq!((error.count(), error.message()), (failing, "one of many"));
    assert_eq!(called.get(), 50 * 21);
    assert_eq!(t.apply(|n| *n), 50 * 21 + failing);
}

// ---- panics of callbacks ----

/// Leaves `n` executed requests behind, whose callbacks count themselves, each `bad`th with a
/// panic after that.
fn leave_callbacks(t: &Trust<u64>, n: u64, bad: u64, ran: &Rc<Cell<u64>>) {
    let done = Gate::new();
    let held = hold_up(t); // So that none is answered while the others are sent.
    for i in 1..=n {
        let (count, open) = (Rc::clone(ran), (i == n).then(|| done.clone()));
        t.apply_then(
            move |_| {
                if let Some(gate) = open {
                    gate.open();
                }
            },
            move |()| {
                count.set(count.get() + 1);
                if i % bad == 0 {
                    panic!("callback {i}");
                }
            },
        );
    }
    drop(held);
    settle(t, &done);
}

#[test]
fn promise_06_a_callbacks_panic_reaches_the_call_that_ran_it() {
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(0u64);
    let ran = Rc::new(Cell::new(0));
    let calls: [&dyn Fn(); 6] = [
        &poll,
        &|| barrier().unwrap(),
        &|| t.apply(|_| ()),
        &|| {
            t.try_apply(|_| ())
                .unwrap_or_else(|error| panic!("{error}"))
        },
        // A busy client looks for answers now and then only.
        &|| (0..200).for_each(|_| t.post(|_| ())),
        &|| (0..200).for_each(|_| t.apply_then(|_| (), |()| ())),
    ];
    for (i, call) in calls.iter().enumerate() {
        leave_callbacks(&t, 10, 4, &ran);
        let text = panic_of(call);
        assert_eq!(text, "callback 4", "call {i}");
        // All callbacks that could run have run; the second panic was dropped.
        assert_eq!(ran.replace(0), 10, "call {i}");
        barrier().unwrap();
    }
    assert!(!t.is_poisoned(), "callbacks poison nothing");
}

/// `apply_then` and `post` raise after their request has been accepted.
#[test]
fn promise_06_the_request_is_accepted_before_the_panic_goes_on() {
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(0u64);
    let ran = Rc::new(Cell::new(0));
    for form in 0..4 {
        let before = t.apply(|n| *n);
        leave_callbacks(&t, 3, 2, &ran);
        let mut accepted = 0;
        let text = panic_of(|| {
            for _ in 0..1000 {
                accepted += 1;
                match form {
                    0 => t.post(|n| *n += 1),
                    1 => t.apply_then(|n| *n += 1, |()| ()),
                    2 => t.try_post(|n| *n += 1).unwrap(),
                    _ => t.try_apply_then(|n| *n += 1, |()| ()).unwrap(),
                }
            }
        });
        assert_eq!(text, "callback 2");
        barrier().unwrap();
        assert_eq!(t.apply(|n| *n) - before, accepted);
    }
}

/// The window is full, so `try_post` gives back; the panic of the callback it has run
/// meanwhile comes out of a later call.
#[test]
fn promise_06_a_held_panic_is_not_lost_where_the_request_is_not_taken() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(1).window(2).batch(1));
    let t = trustees.entrust(0u64);
    let (issued, begun, end) = (Gate::new(), Gate::new(), Gate::new());
    let open_at_the_end = OnDrop::new({
        let end = end.clone();
        move || end.open()
    });
    let (inner, wait) = (t.clone(), issued.clone());
    t.apply_then(
        move |_| wait.wait(),
        move |()| {
            inner.post(|n| *n += 1); // Takes the room that this callback has left.
            panic!("the callback");
        },
    );
    let begin = begun.clone();
    t.post(move |_| {
        begin.open();
        end.wait();
    });
    issued.open();
    begun.wait();
    // The first request has been answered, the second is under way.
    let result = t.try_post(|n| *n += 10);
    assert!(matches!(result, Err(TryPostError::Full(_))), "{result:?}");
    assert_eq!(panic_of(poll), "the callback");
    drop(open_at_the_end);
    barrier().unwrap();
    assert_eq!(t.apply(|n| *n), 1);
}

#[test]
fn promise_06_callbacks_panic_inside_another_apply() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(2));
    let (a, b) = (trustees.entrust_on(0, 0u64), trustees.entrust_on(1, 0u64));
    let log = Rc::new(RefCell::new(Vec::new()));
    // The callback's own apply panics, and the callback does not catch it.
    let (inner, note) = (b.clone(), Rc::clone(&log));
    let done = Gate::new();
    let (open, held) = (done.clone(), hold_up(&a));
    a.apply_then(
        |_| (),
        move |()| {
            note.borrow_mut().push("callback");
            inner.apply(|_| panic!("closure in a callback"));
        },
    );
    let note = Rc::clone(&log);
    a.apply_then(
        move |_| open.open(),
        move |()| note.borrow_mut().push("another"),
    );
    drop(held);
    settle(&a, &done);
    let mut answered = false;
    let text = panic_of(|| a.apply(|_| answered = true));
    assert_eq!((text.as_str(), answered), ("closure in a callback", true));
    assert_eq!(*log.borrow(), ["callback", "another"]);
    assert!(b.is_poisoned() && !a.is_poisoned());
    barrier().unwrap();
}

/// Both the closure of an `apply` and a callback that ran before it panic: neither panic is lost.
#[test]
fn promise_06_two_panics_are_raised_one_after_the_other() {
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(0u64);
    let ran = Rc::new(Cell::new(0));
    leave_callbacks(&t, 1, 1, &ran);
    let first = panic_of(|| t.apply(|_| panic!("closure")));
    t.clear_poison();
    let second = panic_of(poll);
    let mut both = [first, second];
    both.sort();
    assert_eq!(both, ["callback 1", "closure"]);
    barrier().unwrap();
}

/// A callback that panics in the frame of another callback's `apply` would not be caught by
/// it: none runs there. Here each callback catches what it causes.
#[test]
fn promise_06_callbacks_may_catch() {
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(0u64);
    let caught = Rc::new(Cell::new(0));
    for _ in 0..20 {
        let (inner, caught) = (t.clone(), Rc::clone(&caught));
        t.apply_then(
            |n| *n += 1,
            move |()| {
                let text = panic_of(|| inner.apply(|_| panic!("inner")));
                assert!(text == "inner" || text.contains("poisoned"));
                inner.clear_poison();
                caught.set(caught.get() + 1);
            },
        );
    }
    // Requests behind a panic may reach a poisoned object before it is cleared.
    let failed = barrier().err().map_or(0, |error| error.count());
    assert_eq!(caught.get() + failed, 20);
    assert_eq!(t.apply(|n| *n), caught.get());
}

// ---- panics of destructors ----

struct Bomb(&'static str);

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("{}", self.0);
    }
}

#[test]
fn promise_06_a_value_whose_destructor_panics() {
    let _watch = watchdog();
    let trustees = one();
    let tally = Tally::new();
    let t = trustees.entrust((Bomb("retired value"), tally.token()));
    t.apply(|_| ());
    drop(t);
    let probe = trustees.entrust(1u64);
    crate::support::until(|| tally.dropped() == 1);
    assert_eq!(probe.apply(|n| *n), 1);
    let kept = trustees.entrust((Bomb("value at shutdown"), tally.token()));
    assert_eq!(trustees.shutdown()[0].panics, 2);
    tally.assert_all_dropped(2);
    drop(kept);
    drop(probe);
}

#[test]
fn promise_06_a_capture_whose_destructor_panics() {
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(0u64);
    // Dropped at the end of the closure: as if the closure panicked.
    let bomb = Bomb("executed");
    let text = panic_of(|| {
        t.apply(move |n| {
            *n += 1;
            let _bomb = &bomb;
        })
    });
    assert_eq!(text, "executed");
    assert!(t.is_poisoned());
    t.clear_poison();
    let bomb = Bomb("posted");
    t.post(move |_| drop(bomb));
    assert_eq!(barrier().unwrap_err().message(), "posted");
    // The object is poisoned now. Requests refused for that have their closures dropped.
    let (bomb, tally) = (Bomb("refused post"), Tally::new());
    let token = tally.token();
    t.post(move |_| {
        let _both = (&token, &bomb);
    });
    let error = barrier().unwrap_err();
    assert_eq!((error.count(), error.message()), (1, "refused post"));
    let bomb = Bomb("refused call");
    let text = panic_of(|| {
        t.apply(move |_| {
            let _bomb = &bomb;
        })
    });
    assert_eq!(text, "refused call");
    // Nobody else is harmed.
    t.clear_poison();
    assert_eq!(t.apply(|n| *n), 1);
    tally.assert_all_dropped(1);
    barrier().unwrap();
    assert_eq!(trustees.shutdown()[0].panics, 4);
}

#[test]
fn promise_06_a_callback_whose_destructor_panics() {
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(0u64);
    let fine = trustees.entrust(0u64);
    let bomb = Bomb("callback dropped unrun");
    let ran = Rc::new(Cell::new(false));
    let note = Rc::clone(&ran);
    let held = hold_up(&t); // So that nothing is reaped before the barrier.
    t.apply_then(|_| panic!("no answer"), move |()| drop(bomb));
    fine.apply_then(|n| *n += 1, move |()| note.set(true));
    drop(held);
    assert_eq!(panic_of(barrier), "callback dropped unrun");
    assert!(ran.get(), "the callbacks behind it have run");
    assert_eq!(barrier().unwrap_err().message(), "no answer");
    barrier().unwrap();
}

/// Nobody can drop such payloads, so they are forgotten; without a size they are no leaks.
#[test]
fn promise_06_a_payload_whose_destructor_panics() {
    let _watch = watchdog();
    struct Payload;
    impl Drop for Payload {
        fn drop(&mut self) {
            // A payload that panics when it is dropped, too.
            panic_any(Inner);
        }
    }
    struct Inner;
    impl Drop for Inner {
        fn drop(&mut self) {
            panic_any(());
        }
    }
    let trustees = one();
    let objects: Vec<Trust<u64>> = (0..5).map(|_| trustees.entrust(0)).collect();
    // Of several, the first is handed over; the others are dropped.
    for t in &objects {
        t.post(|_| panic_any(Payload));
    }
    let error = barrier().unwrap_err();
    assert_eq!(error.count(), 5);
    let first = error.into_first();
    assert!(first.is::<Payload>());
    std::mem::forget(first);
    // The same with callbacks.
    objects.iter().for_each(Trust::clear_poison);
    let held = hold_up(&objects[0]);
    for t in &objects {
        t.apply_then(|n| *n += 1, |()| panic_any(Payload));
    }
    drop(held);
    let payload = catch_unwind(AssertUnwindSafe(barrier)).unwrap_err();
    assert!(payload.is::<Payload>());
    std::mem::forget(payload);
    // The same at the end of a thread, where nobody asks.
    let (handles, held) = (objects.clone(), hold_up(&objects[0]));
    std::thread::spawn(move || {
        let _held = held;
        for t in &handles {
            t.apply_then(|n| *n += 1, |()| panic_any(Payload));
            t.post(|_| panic_any(Payload));
        }
    })
    .join()
    .unwrap();
    for t in &objects {
        t.clear_poison();
        assert_eq!(t.apply(|n| *n), 2);
    }
    assert_eq!(trustees.shutdown()[0].panics, 10);
}

/// Destructors of payloads run on the trustee, where nothing may wait: a call is refused, by
/// name, and does no harm.
#[test]
fn promise_06_a_payload_whose_destructor_calls() {
    let _watch = watchdog();
    struct Caller {
        armed: bool,
        other: Trust<u64>,
        refused: Arc<AtomicU64>,
    }
    impl Drop for Caller {
        fn drop(&mut self) {
            if self.armed {
                let text = panic_of(|| self.other.apply(|n| *n += 1));
                assert!(
                    text.contains("promise_06_a_payload_whose_destructor"),
                    "{text}"
                );
                self.refused.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
    let trustees = one();
    let other = trustees.entrust(0u64);
    let refused = Arc::new(AtomicU64::new(0));
    for burst in 1..40 {
        let objects: Vec<Trust<u64>> = (0..burst).map(|_| trustees.entrust(0)).collect();
        let held = hold_up(&other);
        for t in &objects {
            let (other, refused) = (other.clone(), Arc::clone(&refused));
            let caller = Caller {
                armed: true,
                other,
                refused,
            };
            t.post(move |_| panic_any(caller));
        }
        drop(held);
        let error = barrier().unwrap_err();
        assert_eq!(error.count(), burst);
        let first = error.into_first().downcast::<Caller>();
        first.unwrap_or_else(|_| panic!("another")).armed = false;
    }
    assert_eq!(other.apply(|n| *n), 0);
    // All but the first of each burst, by their trustee.
    assert_eq!(refused.load(Ordering::Relaxed), (0..39).sum::<u64>());
}

/// A request made while the thread unwinds runs callbacks; one of them panics. To raise that panic
/// now would abort the process, so it is kept.
#[test]
fn promise_06_a_callbacks_panic_waits_until_the_thread_has_unwound() {
    let _watch = watchdog();
    const CHILD: &str = "CORELAY_TEST_UNWINDING_CHILD";
    if std::env::var_os(CHILD).is_none() {
        let this = std::env::current_exe().unwrap();
        let test =
            "promise_06_panics::promise_06_a_callbacks_panic_waits_until_the_thread_has_unwound";
        let child = Command::new(this)
            .args(["--exact", test])
            .env(CHILD, "1")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&child.stderr);
        assert!(child.status.success(), "{}\n{text}", child.status);
        return;
    }
    let trustees = one();
    let t = trustees.entrust(0u64);
    let ran = Rc::new(Cell::new(0));
    for call in 0..4 {
        leave_callbacks(&t, 2, 1, &ran);
        let (inner, note) = (t.clone(), Rc::clone(&ran));
        let text = panic_of(|| {
            let _destructor = OnDrop::new(|| {
                match call {
                    0 => (0..100).for_each(|_| inner.post(|n| *n += 1)),
                    1 => inner.apply(|n| *n += 100),
                    2 => barrier().unwrap(),
                    _ => poll(),
                }
                assert_eq!(note.replace(0), 2, "callbacks run");
            });
            panic!("unwinding");
        });
        assert_eq!(text, "unwinding");
        assert_eq!(panic_of(barrier), "callback 1");
        barrier().unwrap();
    }
    assert_eq!(t.apply(|n| *n), 200);
}
