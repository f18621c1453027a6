use crate::support::*;
use corelay_delegate::*;
use corelay_sync::{Issue, Session, Shared};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::panic::{AssertUnwindSafe, catch_unwind};

#[test]
fn b1_try_in_callback_then_outer_waits() {
    let _w = watchdog();
    let trustees = start(Trustees::dedicated(1).window(2).batch(1));
    let t = trustees.entrust(0u64);
    let gate = Gate::new();
    let open = gate.clone();
    let inner = t.clone();
    let full = Rc::new(Cell::new(false));
    let was_full = Rc::clone(&full);
    t.apply_then(|n| *n += 1, move |()| {
        open.open();
        inner.post(|n| *n += 10);
        inner.apply(|_| ());
        was_full.set(matches!(inner.try_post(|n| *n += 1000), Err(TryPostError::Full(_))));
    });
    t.apply_then(move |n| { gate.wait(); *n += 1 }, |()| ());
    t.post(|n| *n += 100);
    barrier().unwrap();
    assert!(full.get());
    assert_eq!(t.apply(|n| *n), 112);
}

#[test]
fn b2_deferred_order() {
    let _w = watchdog();
    let trustees = start(Trustees::dedicated(1).window(2).batch(1));
    let t = trustees.entrust(Vec::new());
    let gate = Gate::new();
    let (open, a, b) = (gate.clone(), t.clone(), t.clone());
    t.apply_then(|_| (), move |()| {
        a.post(|v| v.push("a0"));
        a.post(|v| v.push("a1"));
        open.open();
    });
    t.apply_then(move |_| gate.wait(), move |()| b.post(|v| v.push("b")));
    barrier().unwrap();
    assert_eq!(t.apply(|v| v.clone()), ["a0", "a1", "b"]);
}

#[test]
fn b3_apply_in_callback_behind_deferred() {
    let _w = watchdog();
    let trustees = start(Trustees::dedicated(1).window(2).batch(1));
    let t = trustees.entrust(Vec::new());
    let a = t.clone();
    let (gate, b) = (Gate::new(), Gate::new());
    let (g, h) = (gate.clone(), b.clone());
    t.apply_then(move |_| g.wait(), move |()| {
        a.post(|v: &mut Vec<i32>| v.push(0));
        a.post(|v| v.push(1));
        h.open();
        a.apply(|v| v.push(2));
    });
    t.apply_then(move |_| b.wait(), |()| ());
    gate.open();
    barrier().unwrap();
    assert_eq!(t.apply(|v| v.clone()), [0, 1, 2]);
}

struct Caller(Trust<u64>);
impl Drop for Caller {
    fn drop(&mut self) {
        assert!(matches!(self.0.try_post(|_| ()), Err(TryPostError::Nested(_))));
    }
}

#[test]
fn b4_payload_that_calls_in_its_destructor() {
    let _w = watchdog();
    let trustees = one();
    let t = trustees.entrust(0u64);
    let u = trustees.entrust(0u64);
    let gate = Gate::new();
    let held = gate.clone();
    t.post(move |_| held.wait());
    for _ in 0..3 {
        let c = Caller(u.clone());
        t.post(move |_| { std::panic::panic_any(c) });
        t.clear_poison();
    }
    gate.open();
    let e = barrier().unwrap_err();
    std::mem::forget(e.into_first());
    t.clear_poison();
    for _ in 0..3 {
        let c = Caller(u.clone());
        t.post(move |_| { std::panic::panic_any(c) });
        t.apply_then(|_| 0u64, |_| ());
        until(|| t.is_poisoned());
        t.clear_poison();
    }
    let e = barrier().unwrap_err();
    std::mem::forget(e.into_first());
}

#[test]
fn b5_guard_in_callback() {
    let _w = watchdog();
    let trustees = one();
    let t = trustees.entrust(0u64);
    t.apply_then(|n| *n += 1, |()| drop(ClientGuard::new()));
    t.apply_then(|n| *n += 1, |()| ());
    let r = catch_unwind(AssertUnwindSafe(|| barrier()));
    println!("{r:?}");
    barrier().unwrap();
    assert_eq!(t.apply(|n| *n), 2);
}

#[test]
fn b6_session_outlives_guard() {
    let _w = watchdog();
    let trustees = one();
    let t = trustees.entrust(0u64);
    let gate = Gate::new();
    let mut s = t.session();
    drop(ClientGuard::new());
    let g = gate.clone();
    s.issue(move |_| g.wait(), |()| ());
    for _ in 0..50 { s.issue(|n| *n += 1, |()| ()); }
    drop(s);
    gate.open();
    assert_eq!(t.apply(|n| *n), 50);
}

#[test]
fn b7_session_barrier_in_callback() {
    let _w = watchdog();
    let trustees = one();
    let t: &'static Trust<u64> = Box::leak(Box::new(trustees.entrust(0u64)));
    let mut s = t.session();
    let mut s2 = t.session();
    s.issue(|n| *n += 1, move |()| s2.barrier());
    s.issue(|n| *n += 1, move |()| ());
    let text = panic_of(|| s.barrier());
    assert!(text.contains("barrier") && text.contains("inside a callback"), "{text}");
}

#[test]
fn b8_faults_survive_sweep() {
    let _w = watchdog();
    let trustees = one();
    let t = trustees.entrust(0u64);
    t.post(|_| panic!("lost?"));
    trustees.shutdown();
    let second = one();
    let u = second.entrust(0u64);
    u.apply(|_| ());
    assert_eq!(barrier().unwrap_err().message(), "lost?");
}

#[test]
fn b9_entrust_with_held_panic_leaks() {
    let _w = watchdog();
    let trustees = one();
    let t = trustees.entrust(0u64);
    let tally = Tally::new();
    t.apply_then(|_| (), |()| panic!("held"));
    t.apply_then(|_| (), |()| ());
    let token = tally.token();
    // run
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert_eq!(panic_of(|| trustees.entrust(token)), "held");
    t.apply(|_| ());
    t.apply(|_| ());
    tally.assert_all_dropped(1);
}

#[test]
fn b10_jump_alone_asleep() {
    let _w = watchdog();
    let trustees = start(Trustees::dedicated(1).window(3).spin(std::time::Duration::ZERO));
    let t = trustees.entrust(0u64);
    let inner = t.clone();
    let big = [0u64; 25];
    let gate = Gate::new();
    let g = gate.clone();
    t.apply_then(move |_| g.wait(), move |()| {
        let r = inner.try_post(move |n| *n += big[3]);
        println!("{r:?}");
    });
    for _ in 0..2 { t.apply_then(move |n| *n += big[2], |()| ()); }
    let before = trustees.metrics()[0].sleeps;
    gate.open();
    until(|| trustees.metrics()[0].sleeps > before);
    poll();
    barrier().unwrap();
}

#[test]
fn b10b_jump_alone_closed() {
    let _w = watchdog();
    let trustees = start(Trustees::dedicated(1).window(3));
    let t = trustees.entrust(0u64);
    let inner = t.clone();
    let big = [0u64; 25];
    t.apply_then(|_| (), move |()| {
        let r = inner.try_post(move |n| *n += big[3]);
        println!("{r:?}");
    });
    for _ in 0..2 { t.apply_then(move |n| *n += big[2], |()| ()); }
    trustees.shutdown();
    poll();
    barrier().unwrap();
}

#[test]
fn b11_busy_trustee_sees_head() {
    let _w = watchdog();
    let trustees = one();
    let t = trustees.entrust(0u64);
    let rounds = 30;
    for round in 0..rounds {
        let issued = Arc::new(AtomicU64::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let ran = Arc::new(AtomicU64::new(0));
        let go = Gate::new();
        let over = Gate::new();
        let posts = 100 + round;
        std::thread::scope(|s| {
            s.spawn(|| {
                let _g = ClientGuard::new();
                t.apply(|_| ());
                go.wait();
                for _ in 0..posts {
                    let ran = Arc::clone(&ran);
                    t.post(move |_| { ran.fetch_add(1, Ordering::Relaxed); });
                }
                over.wait();
            });
            let mut k = 0u64;
            let mut later = 0;
            while later < 20_000 {
                k += 1;
                let (is, st) = (Arc::clone(&issued), Arc::clone(&stop));
                t.post(move |_| while is.load(Ordering::Acquire) < k + 1 && !st.load(Ordering::Acquire) { std::hint::spin_loop(); });
                poll();
                issued.store(k, Ordering::Release);
                if k == 3 { go.open(); }
                if k > 3 { later += 1; }
                if ran.load(Ordering::Relaxed) == posts { break; }
            }
            println!("round {round}: later {later}, ran {} of {posts}", ran.load(Ordering::Relaxed));
            stop.store(true, Ordering::Release);
            barrier().unwrap();
            over.open();
            assert!(later < 20_000);
        });
    }
}

#[test]
fn b13_barrier_in_destructor_of_lost() {
    let _w = watchdog();
    let trustees = start(Trustees::dedicated(1).window(8).batch(1));
    let t = trustees.entrust(0u64);
    let inner = t.clone();
    let trustees = Rc::new(RefCell::new(Some(trustees)));
    let t2 = Rc::clone(&trustees);
    let gate = Gate::new();
    let g = gate.clone();
    t.apply_then(move |_| g.wait(), move |()| {
        let gate = Gate::new();
        let g = gate.clone();
        inner.post(move |_| g.wait());
        let mut n = 0;
        while inner.try_post(|_| ()).is_ok() { n += 1; }
        println!("{n} direct");
        struct Last; impl Drop for Last { fn drop(&mut self) { let r = barrier(); println!("in drop: {r:?}"); } }
        let d = Last;
        inner.post(move |_| { let _d = &d; });
        inner.post(|_| ());
        gate.open();
        drop(t2.take());
    });
    for _ in 0..3 { t.apply_then(|_| (), |()| ()); }
    gate.open();
    let r = barrier();
    println!("{r:?}");
}

#[test]
fn b14_recursion_at_thread_end() {
    let _w = watchdog();
    let trustees = start(Trustees::dedicated(2));
    let a = trustees.entrust_on(0, 0u64);
    let b = trustees.entrust_on(1, 0u64);
    fn chain(b: Trust<u64>, left: u32) {
        if left > 0 {
            let again = b.clone();
            b.apply_then(|n| *n += 1, move |()| chain(again, left - 1));
        }
    }
    let c = b.clone();
    std::thread::spawn(move || a.apply_then(|_| (), move |()| chain(c, 20_000))).join().unwrap();
    assert_eq!(b.apply(|n| *n), 20_000);
}
#[test]
fn b12_child() {
    if std::env::var_os("CHILD").is_none() { return; }
    let trustees = one();
    let t = trustees.entrust(0u64);
    t.apply_then(|_| (), |()| panic!("callback"));
    until(|| trustees.metrics()[0].requests >= 2);
    std::thread::sleep(std::time::Duration::from_millis(20));
    let u = t.clone();
    assert_eq!(panic_of(|| {
        let _d = OnDrop::new(move || { for _ in 0..3 { u.post(|_| ()) } });
        panic!("outer");
    }), "outer");
    assert_eq!(panic_of(|| barrier()), "callback");
}
