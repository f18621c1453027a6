//! Values, captures and results of several MiB, on stacks of 2 MiB and on larger ones. That this
//! file compiles in an optimised build (`cargo xtask deep stress`) is a test too: LLVM did not end.

use crate::promise_03_futures::block_on;
use crate::support::{panic_of, start, watchdog, with_stack_of};
use crate::toy;
use corelay_delegate::{Builder, Trust, Trustees, TryApplyError, TryPostError, barrier};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const BYTES: usize = 4 << 20;

/// Several MiB, with both ends and their drops observed.
struct Large {
    bytes: [u8; BYTES],
    drops: Arc<AtomicUsize>,
}

impl Large {
    fn new(byte: u8, drops: &Arc<AtomicUsize>) -> Self {
        Self {
            bytes: [byte; BYTES],
            drops: Arc::clone(drops),
        }
    }

    fn ends(&self) -> (u8, u8) {
        (self.bytes[0], self.bytes[BYTES - 1])
    }
}

impl Drop for Large {
    fn drop(&mut self) {
        self.drops.fetch_add(1, Ordering::Relaxed);
    }
}

/// Runs `f` on a thread whose stack has room for large values: the caller's stack is its own
/// affair.
fn roomy(f: impl FnOnce(&Arc<AtomicUsize>) + Send) {
    let _watch = watchdog();
    with_stack_of(256 * BYTES, || f(&Arc::default()));
}

fn dropped(drops: &AtomicUsize) -> usize {
    drops.load(Ordering::Relaxed)
}

/// Trustees with stacks on which results have room.
fn with_room() -> Builder {
    Trustees::dedicated(1).stack_size(16 * BYTES)
}

#[test]
fn large_values_are_not_on_the_trustees_stack() {
    roomy(|drops| {
        let trustees = start(Trustees::dedicated(2));
        let one = trustees.entrust(Large::new(1, drops));
        let two = trustees.entrust_on(1, Large::new(2, drops));
        let many = trustees.entrust_all((3..6).map(|i| Large::new(i, drops)));
        let all = [one, two].into_iter().chain(many);
        for (i, handle) in (1..).zip(all) {
            assert_eq!(handle.apply(|large| large.ends()), (i, i));
        }
        trustees.shutdown();
        assert_eq!(dropped(drops), 5);
    });
}

#[test]
fn a_large_value_that_is_refused_is_dropped() {
    roomy(|drops| {
        let trustees = start(with_room());
        let t = trustees.entrust(());
        let text = panic_of(|| {
            t.apply(|()| {
                trustees.entrust(Large::new(1, drops));
            });
        });
        assert!(text.contains("Trustees::entrust"), "{text}");
        assert_eq!(dropped(drops), 1);
    });
}

#[test]
fn large_values_are_built_where_there_is_room() {
    roomy(|drops| {
        let trustees = start(with_room());
        let theirs = Arc::clone(drops);
        let built = trustees.entrust_with(move || Rc::new(Large::new(1, &theirs)));
        let plain = trustees.entrust_with(|| Large::new(2, drops));
        assert_eq!(built.apply(|large| large.ends()), (1, 1));
        assert_eq!(plain.apply(|large| large.ends()), (2, 2));
        let by_large = Large::new(3, drops);
        let counted = trustees.entrust_with_on(0, move || by_large.ends());
        assert_eq!(counted.apply(|ends| *ends), (3, 3));
        let text = panic_of(|| {
            trustees.entrust_with(|| -> Large { panic!("not built") });
        });
        assert_eq!(text, "not built");
        drop(trustees);
        assert_eq!(dropped(drops), 3);
    });
}

/// Sends one request of each form, with captures that are looked at on the trustee.
fn capture(t: &Trust<u64>, drops: &Arc<AtomicUsize>) -> usize {
    let add = |large: &Large, n: &mut u64| {
        assert_eq!(large.ends(), (1, 1));
        *n += 1;
        *n
    };
    let large = || Large::new(1, drops);
    let captured = large();
    assert_eq!(t.apply(move |n| add(&captured, n)), 1);
    let captured = large();
    assert_eq!(t.try_apply(move |n| add(&captured, n)).ok(), Some(2));
    let seen = Rc::new(Cell::new(0));
    for k in 3..6 {
        let (captured, seen) = (large(), Rc::clone(&seen));
        t.apply_then(move |n| add(&captured, n), move |n| seen.set(n));
        if k == 3 {
            barrier().unwrap();
        }
    }
    let captured = large();
    t.post(move |n| _ = add(&captured, n));
    let captured = large();
    let future = t.apply_async(move |n| add(&captured, n));
    assert_eq!(block_on(future).unwrap(), 7);
    barrier().unwrap();
    assert_eq!(seen.get(), 5);
    7
}

#[test]
fn large_captures_are_not_on_the_trustees_stack() {
    roomy(|drops| {
        let trustees = start(Trustees::dedicated(1));
        let t = trustees.entrust(0u64);
        let asked = capture(&t, drops);
        assert_eq!(dropped(drops), asked);
    });
}

#[test]
#[cfg_attr(
    corelay_asan,
    ignore = "the sanitizer follows unwinding on stacks of up to 64 MiB"
)]
fn large_captures_that_do_not_run_are_dropped_off_the_stack() {
    roomy(|drops| {
        let trustees = start(Trustees::dedicated(1));
        let t = trustees.entrust(0u64);
        let captured = Large::new(1, drops);
        let text = panic_of(|| {
            t.apply(move |_| {
                assert_eq!(captured.ends(), (1, 1));
                panic!("midway");
            });
        });
        assert_eq!((text.as_str(), dropped(drops)), ("midway", 1));
        // Poisoned.
        let captured = Large::new(1, drops);
        let refused = t.try_apply(move |_| captured.ends());
        assert!(matches!(refused, Err(TryApplyError::Poisoned)));
        let captured = Large::new(1, drops);
        t.post(move |_| drop(captured));
        let captured = Large::new(1, drops);
        let future = t.apply_async(move |_| captured.ends());
        assert!(block_on(future).is_err());
        assert_eq!(barrier().unwrap_err().count(), 1);
        assert_eq!(dropped(drops), 4);
        // Refused by a closed trustee: the captures come back.
        trustees.shutdown();
        let captured = Large::new(1, drops);
        match t.try_apply(move |_| captured.ends()) {
            Err(TryApplyError::Closed(f)) => assert_eq!(f(&mut 0), (1, 1)),
            _ => panic!("it is closed"),
        }
        let captured = Large::new(1, drops);
        match t.try_post(move |_| drop(captured)) {
            Err(TryPostError::Closed(f)) => drop(f),
            _ => panic!("it is closed"),
        }
        assert_eq!(dropped(drops), 6);
    });
}

#[test]
fn large_results_come_from_stacks_with_room() {
    roomy(|drops| {
        let trustees = start(with_room());
        let t = trustees.entrust(0u8);
        let theirs = Arc::clone(drops);
        let make = move |n: &mut u8| {
            *n += 1;
            Large::new(*n, &theirs)
        };
        assert_eq!(t.apply(make.clone()).ends(), (1, 1));
        let seen = Rc::new(Cell::new(0));
        let first = Rc::clone(&seen);
        t.apply_then(make.clone(), move |large| first.set(large.ends().0));
        barrier().unwrap();
        assert_eq!(seen.get(), 2);
        let future = t.apply_async(make.clone());
        assert_eq!(
            block_on(future).map(|large| large.ends()).ok(),
            Some((3, 3))
        );
        // Its result is not wanted: it is dropped on the trustee.
        drop(t.apply_async(make));
        barrier().unwrap();
        trustees.shutdown();
        assert_eq!(dropped(drops), 4);
    });
}

#[test]
fn large_captures_and_results_of_launches() {
    roomy(|drops| {
        let usual = start(Trustees::dedicated(1).host(toy::host()));
        let t = usual.entrust(0u64);
        let captured = Large::new(1, drops);
        let launch = t.launch(move |_| captured.ends());
        assert_eq!(launch.join().ok(), Some((1, 1)));
        let trustees = start(with_room().host(toy::host()));
        let t = trustees.entrust(0u64);
        let theirs = Arc::clone(drops);
        let launch = t.launch(move |_| Large::new(2, &theirs));
        assert_eq!(launch.join().map(|large| large.ends()).ok(), Some((2, 2)));
        assert_eq!(dropped(drops), 2);
        usual.shutdown();
        let t = trustees.entrust(0u64);
        trustees.shutdown();
        let captured = Large::new(1, drops);
        assert!(t.try_launch(move |_| captured.ends()).is_err());
        assert_eq!(dropped(drops), 3);
    });
}

/// A member's requests to its own objects, too: its stack is its function's.
#[test]
fn large_values_of_flat_members() {
    roomy(|drops| {
        let team = Trustees::flat(2).stack_size(256 * BYTES);
        let team = team.start().unwrap();
        let numbers = [0, 1].map(|i| team.entrust_on(i, 0u64));
        let asked: usize = team
            .run(|me| {
                let own = me.entrust(Large::new(9, drops));
                assert_eq!(own.apply(|large| large.ends()), (9, 9));
                // First each its own, then each the other's.
                let mine = capture(&numbers[me.number()], drops);
                barrier().unwrap();
                mine
            })
            .iter()
            .sum();
        let numbers = [0, 1].map(|i| team.entrust_on(1 - i, 0u64));
        let others: usize = team
            .run(|me| capture(&numbers[me.number()], drops))
            .iter()
            .sum();
        team.shutdown();
        assert_eq!(dropped(drops), asked + others + 2);
    });
}
