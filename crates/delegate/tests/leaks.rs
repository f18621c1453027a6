//! Rounds leave nothing behind: the bytes in use are counted over thousands of them.

#![cfg(not(any(corelay_loom, corelay_shuttle)))]

mod counting;

use corelay_delegate::{ClientGuard, Trustees, barrier};
use counting::in_use;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Waker};
use std::thread;

/// Bytes that a scenario may keep for good, however many rounds it goes: a table that has grown, a
/// vector's spare room. One leaked channel is more.
const SLACK: i64 = 3_000;

fn leaves_nothing(what: &str, mut round: impl FnMut(u64)) {
    let rounds = 100;
    (0..rounds).for_each(&mut round);
    let before = in_use();
    (rounds..4 * rounds).for_each(&mut round);
    let left = in_use() - before;
    if left >= SLACK {
        let _ = std::panic::take_hook();
        panic!("{what}: {left} bytes after {} rounds", 3 * rounds);
    }
}

fn quietly(f: impl FnOnce()) {
    assert!(catch_unwind(AssertUnwindSafe(f)).is_err());
}

#[test]
fn rounds_leave_no_memory_in_use() {
    // Panics are part of it; their texts are not, nor the memory of a backtrace.
    std::panic::set_hook(Box::new(|_| ()));

    leaves_nothing("trustees that come and go", |i| {
        let trustees = Trustees::dedicated(1).start().unwrap();
        let t = trustees.entrust(i);
        t.apply_then(|n| *n, |_| ());
        assert_eq!(t.apply(|n| *n), i);
        if i % 2 == 0 {
            drop(trustees);
            assert!(t.try_apply(|n| *n).is_err());
        }
    });

    leaves_nothing("callbacks left at trustees that end", |i| {
        let trustees = Trustees::dedicated(1).start().unwrap();
        let t = trustees.entrust(i);
        t.apply_then(|n| *n, move |n| assert_eq!(n, i));
        drop(trustees);
    });

    let trustees = Trustees::dedicated(1).start().unwrap();
    let t = trustees.entrust(0u64);

    leaves_nothing("futures, and threads that end before them", |i| {
        let client = t.clone();
        let (kept, panics) = thread::spawn(move || {
            drop(client.apply_async(|n| [*n; 100]));
            let kept: Vec<_> = (0..200).map(|_| client.apply_async(|n| *n)).collect();
            (kept, client.apply_async(|n| assert!(*n == u64::MAX)))
        })
        .join()
        .unwrap();
        for mut future in kept {
            let mut context = Context::from_waker(Waker::noop());
            if i % 2 == 0 {
                assert!(Pin::new(&mut future).poll(&mut context).is_ready());
            }
        }
        drop(panics);
        t.clear_poison();
    });

    leaves_nothing("threads that come and go", |_| {
        let client = t.clone();
        thread::spawn(move || {
            client.post(|n| *n += 1);
            client.apply_then(|n| *n += 1, |()| ());
        })
        .join()
        .unwrap();
        t.apply(|_| ()); // The trustee has taken notice of the thread's end.
        t.apply(|_| ());
    });

    leaves_nothing("guards", |_| {
        // Rings that have grown, too.
        (0..200).for_each(|_| t.apply_then(|n| *n, |_| ()));
        drop(ClientGuard::new());
        t.apply(|_| ());
        t.apply(|_| ());
    });

    leaves_nothing("objects that come and go", |i| {
        let other = trustees.entrust(vec![i; 10]);
        other.post(|v| v.push(1));
        drop(other.clone());
        drop(other);
        t.apply(|_| ());
        t.apply(|_| ());
    });

    let observed = Trustees::dedicated(1).observe(true).start().unwrap();
    let total = observed.entrust(0u64);
    leaves_nothing("names, and clients that are observed", |i| {
        let (mine, total) = (observed.entrust(i).named("mine"), total.clone());
        let client = thread::Builder::new().name(format!("client {i}"));
        let client = client.spawn(move || {
            let _client = ClientGuard::named("another name");
            (0..200).for_each(|_| total.apply_then(|n| *n += 1, |()| ()));
            mine.set_name("theirs");
        });
        client.unwrap().join().unwrap();
        assert!(!observed.report().to_json().is_empty());
        observed.entrust(()); // The trustee has taken notice of what has gone.
        observed.entrust(());
    });

    leaves_nothing("large captures, answers and callbacks", |i| {
        let block = [i; 100];
        t.post(move |n| *n += block[99]);
        t.apply_then(move |_| block, move |answer| assert_eq!(answer, block));
        assert_eq!(t.apply(move |_| block), block);
        barrier().unwrap();
    });

    leaves_nothing("panics", |i| {
        quietly(|| t.apply(|_| panic!("closure {i}")));
        t.clear_poison();
        t.post(move |_| panic!("post {i}"));
        let text = String::from("of a callback that is not called");
        t.apply_then(|_| panic!("request"), move |()| drop(text));
        let text = String::from("of a callback that panics");
        assert!(barrier().is_err());
        t.clear_poison();
        t.apply_then(|_| (), move |()| panic!("{text}"));
        quietly(|| barrier().unwrap());
    });

    leaves_nothing("entrusting in vain", |i| {
        quietly(|| drop(trustees.entrust_with(|| -> u64 { panic!("no value {i}") })));
        // A callback's panic is raised by the call that entrusts.
        t.apply_then(|_| (), |()| panic!("callback"));
        while catch_unwind(AssertUnwindSafe(|| drop(trustees.entrust([i; 20])))).is_ok() {}
        t.apply(|_| ());
        t.apply(|_| ());
    });

    leaves_nothing("refusals", |i| {
        let over = Trustees::dedicated(1).start().unwrap();
        let closed = over.entrust(i);
        drop(over);
        let block = [i; 50];
        assert!(closed.try_post(move |n| *n += block[49]).is_err());
        assert!(
            closed
                .try_apply_then(move |_| block, move |_| assert!(block[0] == i))
                .is_err()
        );
        assert!(closed.try_apply(move |_| block).is_err());
    });
}
