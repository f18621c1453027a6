//! Promise 1: Any `T: Send`, any closure and result; values that are not `Send` are built in place.

use crate::support::{Gate, one, panic_of, start, watchdog, with_stack_of};
use corelay_delegate::{Trust, Trustees, barrier};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::thread;

fn pattern<const N: usize>(seed: usize) -> [u8; N] {
    std::array::from_fn(|i| (i.wrapping_mul(31) ^ (i >> 8) ^ seed) as u8)
}

/// `N` bytes travel as a capture, as a result, as a callback's capture and as a value.
fn bytes_travel<const N: usize>(trustees: &Trustees) {
    let t = trustees.entrust(pattern::<N>(0));
    for seed in [1, 77] {
        let bytes = pattern::<N>(seed);
        let before = t.apply(move |value| std::mem::replace(value, bytes));
        let expected = if seed == 1 {
            pattern::<N>(0)
        } else {
            pattern::<N>(1)
        };
        assert!(before == expected, "apply of {N} bytes");
        let Ok(now) = t.try_apply(|value| *value) else {
            panic!("neither poisoned nor closed")
        };
        assert!(now == bytes, "try_apply of {N} bytes");
    }
    let seen = Rc::new(Cell::new(0));
    for seed in 0..5 {
        let (bytes, mine, note) = (pattern::<N>(seed), pattern::<N>(seed + 1), Rc::clone(&seen));
        t.apply_then(
            move |value| std::mem::replace(value, bytes),
            move |answer| {
                assert!(mine == pattern::<N>(seed + 1), "callback of {N} bytes");
                let expected = pattern::<N>(if seed == 0 { 77 } else { seed - 1 });
                assert!(answer == expected, "answer of {N} bytes");
                note.set(note.get() + 1);
            },
        );
    }
    for seed in 5..9 {
        let bytes = pattern::<N>(seed);
        t.post(move |value| {
            assert!(*value == pattern::<N>(seed - 1), "post of {N} bytes");
            *value = bytes;
        });
    }
    barrier().unwrap();
    assert_eq!(seen.get(), 5);
}

macro_rules! for_sizes {
    ($trustees:expr; $($n:literal)*) => { $(bytes_travel::<$n>($trustees);)* };
}

#[test]
fn promise_01_captures_and_results_of_0_bytes_to_64_kib() {
    let _watch = watchdog();
    let trustees = one();
    // In unoptimised builds every move is another copy on the stack.
    with_stack_of(32 << 20, || {
        let trustees = one();
        for_sizes!(&trustees; 65536);
    });
    for_sizes!(&trustees; 0 1 2 7 8 9 15 16 17 24 31 32 33 40 56 63 64 65 71 72 73 80 120 127);
    for_sizes!(&trustees; 128 129 136 192 199 200 201 208 216 255 256 257 1024 4096 16384);
}

/// Now and then a large record, so that every kind of record stands beside every other.
#[test]
fn promise_01_mixed_sizes_in_one_ring() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(1).window(16));
    let t = trustees.entrust(0u64);
    let sum = Rc::new(Cell::new(0u64));
    let mut expected = 0;
    for round in 0..200u64 {
        macro_rules! ask {
            ($($words:literal)*) => { $({
                let (words, note) = ([round + $words; $words], Rc::clone(&sum));
                t.apply_then(
                    move |n| { *n += 1; words },
                    move |back| note.set(note.get() + back.iter().sum::<u64>()),
                );
                t.post(move |n| *n += words.len() as u64);
                expected += $words * (round + $words);
            })* };
        }
        ask!(1 23 0 25 2 26 8 9 3 24 100 1 0);
    }
    barrier().unwrap();
    assert_eq!(sum.get(), expected);
    let per_round = 13 + (1 + 23 + 25 + 2 + 26 + 8 + 9 + 3 + 24 + 100 + 1);
    assert_eq!(t.apply(|n| *n), 200 * per_round);
}

macro_rules! aligned {
    ($name:ident, $empty:ident, $n:literal) => {
        #[derive(Clone, Copy, PartialEq, Debug)]
        #[repr(align($n))]
        struct $name(u64);

        impl $name {
            fn check(&self, value: u64) {
                assert_eq!((&raw const *self).addr() % $n, 0, "alignment {}", $n);
                assert_eq!(self.0, value);
            }
        }

        #[derive(Clone, Copy)]
        #[repr(align($n))]
        struct $empty;

        impl $empty {
            fn check(&self) {
                assert_eq!(size_of::<Self>(), 0);
                assert_eq!((&raw const *self).addr() % $n, 0, "empty, alignment {}", $n);
            }
        }
    };
}

macro_rules! alignments {
    ($trustees:expr; $($name:ident $empty:ident $n:literal),*) => {$({
        aligned!($name, $empty, $n);
        let t = $trustees.entrust($name(1));
        let capture = $name(2);
        let result = t.apply(move |value| {
            value.check(1);
            capture.check(2);
            *value = $name(3);
            $name(4)
        });
        result.check(4);
        for small in [5u64, 6, 7] {
            // Results that are aligned and captures that are not, and the other way round.
            t.apply_then(move |value| { value.check(3); $name(small) }, move |r| r.check(small));
            let capture = $name(small);
            t.apply_then(move |_| { capture.check(small); small }, move |r| assert_eq!(r, small));
            let callback = $name(small);
            t.apply_then(|_| (), move |()| callback.check(small));
            t.post(move |_| capture.check(small));
        }
        let empty = $empty;
        t.post(move |_| empty.check());
        t.apply(move |_| { empty.check(); empty }).check();
        t.apply_then(move |_| { empty.check(); empty }, |back| back.check());
        t.apply_then(|_| (), move |()| empty.check());
        barrier().unwrap();
        let nothing = $trustees.entrust($empty);
        nothing.apply(|value| value.check());
    })*};
}

#[test]
fn promise_01_over_aligned_and_zero_sized() {
    let _watch = watchdog();
    let trustees = one();
    alignments!(&trustees; A16 E16 16, A32 E32 32, A64 E64 64, A128 E128 128, A256 E256 256,
        A512 E512 512, A1024 E1024 1024, A2048 E2048 2048, A4096 E4096 4096);
}

#[test]
fn promise_01_any_callable() {
    let _watch = watchdog();
    fn double(n: &mut u64) -> u64 {
        *n *= 2;
        *n
    }
    let trustees = one();
    let t = trustees.entrust(1u64);
    assert_eq!(t.apply(double), 2);
    assert_eq!(t.apply(double as fn(&mut u64) -> u64), 4);
    let boxed: Box<dyn FnOnce(&mut u64) -> u64 + Send> = Box::new(double);
    assert_eq!(t.apply(boxed), 8);
    let boxed: Box<dyn FnOnce(&mut u64) + Send> = Box::new(|n| *n += 1);
    t.post(boxed);
    let seen = Rc::new(Cell::new(0));
    let note = Rc::clone(&seen);
    let then: Box<dyn FnOnce(u64)> = Box::new(move |n| note.set(n));
    t.apply_then(double, then);
    barrier().unwrap();
    assert_eq!(seen.get(), 18);
    // A result that is a closure in turn.
    let more = t.apply(|n| {
        let n = *n;
        move |m: u64| n + m
    });
    assert_eq!(more(2), 20);
    assert_eq!(
        t.apply(|_| Err::<(), _>(String::from("an error is a value")))
            .unwrap_err()
            .len(),
        19
    );
}

#[test]
fn promise_01_rich_values() {
    let _watch = watchdog();
    let trustees = one();
    let map = trustees.entrust(HashMap::<String, Vec<u64>>::new());
    for i in 0..100u64 {
        let key = format!("key {}", i % 7);
        map.post(move |map| map.entry(key).or_default().push(i));
    }
    let total: u64 = map.apply(|map| map.values().flatten().sum());
    assert_eq!(total, 99 * 100 / 2);
    assert_eq!(map.apply(std::mem::take).len(), 7);
}

#[test]
fn promise_01_entrust_with_builds_and_drops_on_the_trustee() {
    let _watch = watchdog();
    // Neither Send nor Sync.
    struct Local {
        home: thread::ThreadId,
        dropped: Arc<Mutex<Option<thread::ThreadId>>>,
        shared: Rc<RefCell<Vec<*const u8>>>,
    }
    impl Drop for Local {
        fn drop(&mut self) {
            *self.dropped.lock().unwrap() = Some(thread::current().id());
        }
    }
    let trustees = start(Trustees::dedicated(2));
    for trustee in 0..2 {
        let dropped = Arc::new(Mutex::new(None));
        let note = Arc::clone(&dropped);
        let local = trustees.entrust_with_on(trustee, || Local {
            home: thread::current().id(),
            dropped: note,
            shared: Rc::new(RefCell::new(Vec::new())),
        });
        let home = local.apply(|local| {
            let another = Rc::clone(&local.shared);
            another.borrow_mut().push(std::ptr::null());
            assert_eq!(Rc::strong_count(&local.shared), 2);
            assert_eq!(thread::current().id(), local.home);
            local.home
        });
        assert_ne!(home, thread::current().id());
        // From another thread too: the handle may go anywhere.
        thread::scope(|s| {
            s.spawn(|| assert_eq!(local.apply(|local| local.shared.borrow().len()), 1));
        });
        drop(local);
        let probe = trustees.entrust_on(trustee, ());
        probe.apply(|()| ());
        // The object's retirement is read by the pass after the one that served the call.
        crate::support::until(|| dropped.lock().unwrap().is_some());
        assert_eq!(*dropped.lock().unwrap(), Some(home));
    }
}

#[test]
fn promise_01_entrust_with_may_borrow_and_panic() {
    let _watch = watchdog();
    let trustees = one();
    let mut asked = 0;
    let t = trustees.entrust_with(|| {
        asked += 1;
        asked * 10
    });
    assert_eq!((asked, t.apply(|n| *n)), (1, 10));
    for _ in 0..3 {
        let text = panic_of(|| trustees.entrust_with::<u64>(|| panic!("no value today")));
        assert_eq!(text, "no value today");
    }
    // The trustee and its registry are in order.
    let u = trustees.entrust(5u64);
    assert_eq!(u.apply(|n| *n) + t.apply(|n| *n), 15);
    assert!(!t.is_poisoned() && !u.is_poisoned());
    barrier().unwrap();
}

#[test]
fn promise_01_handles_are_send_and_sync_whatever_the_value() {
    fn is_send_and_sync<X: Send + Sync>() {}
    is_send_and_sync::<Trust<u64>>();
    is_send_and_sync::<Trust<Rc<Cell<u64>>>>();
    is_send_and_sync::<Trust<*mut u8>>();
    fn is_send<X: Send>() {}
    is_send::<corelay_delegate::BarrierError>();
    is_send::<corelay_delegate::StartError>();
}

#[test]
fn promise_01_callbacks_need_not_be_send() {
    let _watch = watchdog();
    let trustees = one();
    let t = trustees.entrust(7u64);
    let here = thread::current().id();
    let log = Rc::new(RefCell::new(Vec::new()));
    let gate = Gate::new();
    let held = gate.clone();
    t.post(move |_| held.wait());
    for i in 0..10 {
        let log = Rc::clone(&log);
        t.apply_then(
            move |n| *n + i,
            move |n| {
                assert_eq!(thread::current().id(), here);
                log.borrow_mut().push(n);
            },
        );
    }
    assert!(log.borrow().is_empty());
    gate.open();
    barrier().unwrap();
    assert_eq!(*log.borrow(), (7..17).collect::<Vec<_>>());
}
