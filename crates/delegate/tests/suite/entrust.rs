//! Many values at once: `entrust_all` gives the handles that as many calls of `entrust` would have
//! given.

use crate::support::{OnDrop, Tally, one, panic_of, start, watchdog};
use corelay_delegate::{Trust, Trustees, barrier};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// The number of the trustee that serves `t`.
fn home<T: 'static>(t: &Trust<T>) -> usize {
    let name = t.apply(|_| thread::current().name().map(str::to_owned));
    name.unwrap()
        .trim_start_matches("trustee-")
        .parse()
        .unwrap()
}

/// In order, and in turn with the values that are given one by one.
#[test]
fn values_keep_their_order_and_go_round() {
    let _watch = watchdog();
    for n in [1, 2, 3] {
        let trustees = start(Trustees::dedicated(n));
        let first = trustees.entrust(usize::MAX);
        assert_eq!(home(&first), 0);
        // None, fewer than trustees, and more than go in one shipment.
        let mut turn = 1;
        for len in [0, 1, 5, 10_000] {
            let handles = trustees.entrust_all(0..len);
            assert_eq!(handles.len(), len);
            for (i, t) in handles.iter().enumerate() {
                t.apply_then(|v| *v, move |v| assert_eq!(v, i));
                if i % 997 == 0 {
                    assert_eq!(home(t), (turn + i) % n);
                }
            }
            barrier().unwrap();
            turn += len;
        }
        assert_eq!(home(&trustees.entrust(0)), turn % n);
    }
}

/// One shipment holds a thousand small values: a round trip each would be 20,000 requests.
#[test]
fn many_values_take_few_requests() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(2));
    drop(trustees.entrust_all((0..20_000).map(|_| 0u64)));
    let requests: u64 = trustees.shutdown().iter().map(|m| m.requests).sum();
    assert_eq!(requests, 20);
}

#[test]
fn values_of_any_size() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(2));
    assert_eq!(trustees.entrust_all([(); 3_000]).len(), 3_000);
    for t in trustees.entrust_all((0..5).map(|i| vec![i; 100_000].into_boxed_slice())) {
        assert_eq!(t.apply(|v| v.len()), 100_000);
    }
    // One of these is more than a shipment.
    for (i, t) in trustees
        .entrust_all((0..5).map(|i| [i; 100_000]))
        .iter()
        .enumerate()
    {
        assert_eq!(t.apply(|v| v[99_999]), i as u8);
    }
}

#[test]
fn values_are_dropped_once_and_on_their_trustees() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(2));
    let elsewhere = Arc::new(AtomicU64::new(0));
    let tally = Tally::new();
    let value = |_| {
        let (token, elsewhere) = (tally.token(), Arc::clone(&elsewhere));
        OnDrop::new(move || {
            let name = thread::current().name().map(str::to_owned);
            let on_trustee = name.is_some_and(|name| name.starts_with("trustee-"));
            elsewhere.fetch_add(u64::from(!on_trustee), Ordering::Relaxed);
            drop(token);
        })
    };
    let mut handles = trustees.entrust_all((0..3_000).map(value)).to_vec();
    let kept = handles.split_off(2_000);
    drop(handles);
    trustees.shutdown();
    tally.assert_all_dropped(3_000);
    assert_eq!(elsewhere.load(Ordering::Relaxed), 0);
    drop(kept);
}

#[test]
fn values_that_panic_while_they_are_made() {
    let _watch = watchdog();
    let trustees = one();
    let tally = Tally::new();
    let values = (0..3_000).map(|i| match i {
        2_500 => resume_unwind(Box::new("enough")),
        _ => tally.token(),
    });
    assert_eq!(panic_of(|| trustees.entrust_all(values)), "enough");
    assert_eq!(trustees.entrust(1).apply(|n| *n), 1);
    assert_eq!(trustees.shutdown()[0].panics, 0);
    tally.assert_all_dropped(2_500);
}

/// Values may be made by calls to the trustees that get them.
#[test]
fn values_may_be_made_by_calls_to_their_trustees() {
    let _watch = watchdog();
    let trustees = one();
    let next = trustees.entrust(0u64);
    let draw = || {
        next.apply(|n| {
            *n += 1;
            *n
        })
    };
    let handles = trustees.entrust_all(std::iter::repeat_with(draw).take(1_100));
    let sum: u64 = handles.iter().map(|t| t.apply(|n| *n)).sum();
    assert_eq!(sum, 1_100 * 1_101 / 2);
}

#[test]
fn entrust_all_inside_a_closure_is_refused_by_name() {
    let _watch = watchdog();
    let (outer, trustees) = (one(), one());
    let t = outer.entrust(0u64);
    let (text, line) = t.apply(|_| {
        let line = line!() + 1;
        let text = panic_of(|| trustees.entrust_all([1, 2, 3]));
        (text, line)
    });
    let place = format!("corelay: Trustees::entrust_all at {}:{line}:", file!());
    assert!(text.starts_with(&place), "{place} in {text}");
    assert_eq!(trustees.shutdown()[0].requests, 0);
}
