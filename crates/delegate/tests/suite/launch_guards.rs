//! Launched closures that wait without being suspended, and coroutines beside them that are no
//! launched closures.

use crate::support::{Gate, panic_of, scaled, start, until, watchdog};
use crate::toy;
use corelay_delegate::{
    AsyncError, Builder, ClientGuard, Trust, Trustees, TryApplyError, TryPostError, barrier,
};
use corelay_sync::wait::{self, CodeName, NoSwitch, on_thread};
use corelay_sync::{Session, Shared};
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

fn hosted(n: usize) -> Builder {
    Trustees::dedicated(n).host(toy::host())
}

/// A guard of `on_thread` holds: no other coroutine runs while the closure waits. Its trustee serves
/// nevertheless, also calls of that closure to other objects of its own, and begins launches.
#[test]
fn a_closure_that_keeps_its_thread_is_served_beneath() {
    let _watch = watchdog();
    let trustees = start(hosted(2));
    let on = |i| trustees.entrust_on(i, 0u64);
    let (held, own, far, beside) = (on(0), on(0), on(1), on(0));
    let is_guarded = Arc::new(AtomicBool::new(false));
    let (flag, mine) = (Arc::clone(&is_guarded), own.clone());
    let other = beside.launch(move |n| {
        for _ in 0..200 {
            mine.apply(|_| ());
            *n += u64::from(flag.load(Ordering::Relaxed));
        }
    });
    let (flag, mine, theirs) = (Arc::clone(&is_guarded), own.clone(), far.clone());
    let launch = held.launch(move |_| {
        let guard = on_thread();
        flag.store(true, Ordering::Relaxed);
        for _ in 0..100 {
            mine.apply(|n| *n += 1);
            theirs.apply(|n| *n += 1);
            theirs.apply_then(|n| *n += 1, |()| ());
        }
        // A launch is begun, and runs when the guard has gone.
        let launched = mine.launch(|n| *n += 1000);
        assert_eq!(theirs.apply(|n| *n), 200);
        barrier_but_for_launches(&theirs);
        flag.store(false, Ordering::Relaxed);
        drop(guard);
        launched.join().unwrap();
        mine.apply(|n| *n)
    });
    // Others are served as well.
    for _ in 0..100 {
        own.apply(|_| ());
    }
    assert_eq!(launch.join().unwrap(), 1100);
    other.join().unwrap();
    assert_eq!(beside.apply(|n| *n), 0, "it has run under the guard");
}

/// Waits until the caller's requests to `t` are done.
fn barrier_but_for_launches(t: &Trust<u64>) {
    let (done, said) = (Rc::new(Cell::new(false)), t.clone());
    let note = Rc::clone(&done);
    said.apply_then(|_| (), move |()| note.set(true));
    while !done.get() {
        said.apply(|_| ());
    }
}

/// A closure that keeps its thread cannot wait for a launch that cannot run there meanwhile: it is
/// refused.
#[test]
fn a_closure_that_keeps_its_thread_waits_for_no_launch_there() {
    let _watch = watchdog();
    let trustees = start(hosted(1));
    let (held, free) = (trustees.entrust(0u64), trustees.entrust(0u64));
    let launch = held.launch(move |_| {
        let guard = on_thread();
        let refused = free.launch(|n| *n += 1).join();
        assert!(
            matches!(refused, Err(AsyncError::Circular(_))),
            "{refused:?}"
        );
        let text = panic_of(barrier);
        assert!(text.contains("in a ring"), "{text}");
        drop(guard);
        barrier().unwrap();
        free.apply(|n| *n)
    });
    assert_eq!(launch.join().unwrap(), 1);
}

/// One closure waits for the end of the other's trustee, whose closure waits for a launch that
/// cannot begin: one of the two is refused, whichever comes last.
#[test]
fn a_ring_without_a_refusable_request_is_refused() {
    let _watch = watchdog();
    for _ in 0..scaled(20) {
        let (here, there) = (start(hosted(1)), start(hosted(1)));
        let (held, asked) = (here.entrust(0u64), here.entrust(0u64));
        let far = there.entrust(0u64);
        let (tell, told) = mpsc::channel();
        let first = tell.clone();
        let launch = held.launch(move |_| {
            let _guard = on_thread();
            let ending = far.launch(move |_| {
                let _joined_by_the_barrier = asked.launch(|n| *n += 1);
                let ended = catch_unwind(AssertUnwindSafe(barrier));
                tell.send(ended.map_or("told", |_| "well")).unwrap();
            });
            drop(ending);
            let ended = catch_unwind(AssertUnwindSafe(|| drop(there.shutdown())));
            first.send(ended.map_or("told", |()| "well")).unwrap();
        });
        launch.join().unwrap();
        let mut said = [told.recv().unwrap(), told.recv().unwrap()];
        said.sort();
        assert!(said.contains(&"told"), "{said:?}");
    }
}

/// A closure launched by one that has ended may wait for that one's trustee to end.
#[test]
fn the_end_of_a_closure_waits_for_no_launch() {
    let _watch = watchdog();
    for _ in 0..scaled(50) {
        let (here, there) = (start(hosted(1)), start(hosted(1)));
        let (held, far) = (here.entrust(0u64), there.entrust(0u64));
        let (tell, told) = mpsc::channel();
        let launch = held.launch(move |_| {
            let launched = far.launch(move |_| {
                let ended = catch_unwind(AssertUnwindSafe(|| here.shutdown()));
                tell.send(ended.is_ok()).unwrap();
            });
            drop(launched);
        });
        launch.join().unwrap();
        drop(held);
        assert_eq!(told.recv(), Ok(true));
    }
}

/// A call inside a section that may not be suspended is refused, and so is a wait for room.
#[test]
fn a_section_that_may_not_be_suspended_refuses_calls() {
    let _watch = watchdog();
    let trustees = start(hosted(2).window(4));
    let (held, far) = (trustees.entrust_on(0, 0u64), trustees.entrust_on(1, 0u64));
    let gate = Gate::new();
    let shut = gate.clone();
    let launch = held.launch(move |_| {
        far.post(move |_| shut.wait());
        let name = CodeName::fixed(&"a section");
        // SAFETY: the guard is dropped below, before the name ends.
        let section = unsafe { NoSwitch::enter(&name) };
        let text = panic_of(|| far.apply(|n| *n));
        assert!(text.contains("Trust::apply at ") && text.contains("inside a section"));
        assert!(matches!(
            far.try_apply(|n| *n),
            Err(TryApplyError::Nested(_))
        ));
        let mut posted = 0;
        while let Ok(()) = far.try_post(|n| *n += 1) {
            posted += 1;
        }
        let full = far.try_post(|n| *n += 1);
        assert!(matches!(full, Err(TryPostError::Full(_))));
        let text = panic_of(|| far.post(|n| *n += 1));
        assert!(text.contains("a wait for room") && text.contains("inside a section"));
        drop(section);
        gate.open();
        far.apply(|n| *n) == posted
    });
    assert!(launch.join().unwrap());
}

/// Coroutines that are no launched closures make temporary clients. While one's finishes, the others
/// are in no call.
#[test]
fn a_temporary_client_is_its_coroutines_own() {
    let _watch = watchdog();
    let trustees = start(hosted(2));
    let (held, far) = (trustees.entrust_on(0, 0u64), trustees.entrust_on(1, 0u64));
    let gate = Gate::new();
    let (shut, opens) = (gate.clone(), gate.clone());
    far.post(move |_| shut.wait());
    let (tell, told) = mpsc::channel();
    let launch = held.launch(move |_| {
        let (asked, said) = (far.clone(), tell.clone());
        let first = wait::spawn(Box::new(move || {
            asked.apply_then(|n| *n += 1, move |()| said.send("answered").unwrap());
        }));
        let second = wait::spawn(Box::new(move || {
            barrier().unwrap();
            tell.send("no call").unwrap();
            opens.open();
        }));
        assert!(first.is_ok() && second.is_ok());
    });
    launch.join().unwrap();
    assert_eq!(
        told.iter().take(2).collect::<Vec<_>>(),
        ["no call", "answered"]
    );
}

/// A temporary client is finished also inside a section that may not be suspended: its trustee
/// serves beneath it.
#[test]
fn a_temporary_client_is_finished_inside_of_a_section() {
    let _watch = watchdog();
    let trustees = start(hosted(2));
    let (held, own) = (trustees.entrust_on(0, 0u64), trustees.entrust_on(0, 0u64));
    let far = trustees.entrust_on(1, 0u64);
    let (gate, inside) = (Gate::new(), Gate::new());
    let (shut, begun, asked) = (gate.clone(), inside.clone(), far.clone());
    far.post(move |_| shut.wait());
    let launch = held.launch(move |_| {
        let spawned = wait::spawn(Box::new(move || {
            let name = CodeName::fixed(&"a section");
            // SAFETY: the guard is dropped below, before the name ends.
            let section = unsafe { NoSwitch::enter(&name) };
            begun.open();
            asked.post(|n| *n += 1);
            drop(section);
        }));
        assert!(spawned.is_ok());
    });
    inside.wait();
    for _ in 0..100 {
        own.apply(|n| *n += 1);
    }
    gate.open();
    launch.join().unwrap();
    until(|| far.apply(|n| *n) == 1);
}

/// A callback of such a client may wait for an object that a launched closure of its trustee holds:
/// that closure has its turns.
#[test]
fn a_callback_of_a_temporary_client_is_suspended() {
    let _watch = watchdog();
    let trustees = start(hosted(2));
    let (held, beside) = (trustees.entrust_on(0, 0u64), trustees.entrust_on(0, 0u64));
    let far = trustees.entrust_on(1, 0u64);
    let (tell, told) = mpsc::channel();
    let (pause, theirs) = (far.clone(), held.clone());
    let holds = held.launch(move |n| {
        told.recv().unwrap();
        (0..50).for_each(|_| pause.apply(|_| ()));
        *n += 1;
    });
    let (answer, answered) = mpsc::channel();
    let launch = beside.launch(move |_| {
        let spawned = wait::spawn(Box::new(move || {
            far.apply_then(|_| (), move |()| answer.send(theirs.apply(|n| *n)).unwrap());
        }));
        assert!(spawned.is_ok());
    });
    tell.send(()).unwrap();
    assert_eq!(answered.recv(), Ok(1));
    holds.join().unwrap();
    launch.join().unwrap();
}

/// A closure that keeps its thread makes a request to the object of another closure that has just
/// ended. If that one has not yet ended, it cannot, and the request is refused.
#[test]
fn an_ended_closures_object_is_freed_beneath_a_closure() {
    let _watch = watchdog();
    let trustees = start(hosted(2));
    let far = trustees.entrust_on(1, ());
    for _ in 0..scaled(50) {
        let (first, second) = (trustees.entrust_on(0, 0u64), trustees.entrust_on(0, 0u64));
        let gate = Gate::new();
        let (shut, a, b, theirs) = (gate.clone(), far.clone(), far.clone(), first.clone());
        far.post(move |()| shut.wait());
        // Both are answered together, and go on one after the other.
        let ends = first.launch(move |_| a.apply(|()| ()));
        let asks = second.launch(move |_| {
            b.apply(|()| ());
            let _guard = on_thread();
            match theirs.try_apply(|n| *n += 1) {
                Ok(()) => true,
                Err(TryApplyError::Circular(_)) => false,
                Err(other) => panic!("{other:?}"),
            }
        });
        gate.open();
        let has_run = asks.join().unwrap();
        ends.join().unwrap();
        assert_eq!(first.apply(|n| *n), u64::from(has_run));
    }
}

/// A guard inside a launched closure gives its channels back, but for those by which it has
/// launched: a barrier waits for those closures.
#[test]
fn a_barrier_waits_for_what_was_launched_before_a_guard_ended() {
    let _watch = watchdog();
    let trustees = start(hosted(2));
    let (held, far) = (trustees.entrust_on(0, 0u64), trustees.entrust_on(1, 0u64));
    let pause = trustees.entrust_on(0, ());
    let ended = Arc::new(AtomicBool::new(false));
    let launch = held.launch(move |_| {
        let guard = ClientGuard::new();
        let note = Arc::clone(&ended);
        drop(far.launch(move |_| {
            (0..100).for_each(|_| pause.apply(|()| ()));
            note.store(true, Ordering::Relaxed);
        }));
        drop(guard);
        barrier().unwrap();
        ended.load(Ordering::Relaxed)
    });
    assert!(launch.join().unwrap());
}

/// Two sessions of one closure are one client's. The second, left where another coroutine finds it,
/// may not be used during a call of the first.
#[test]
fn a_session_is_used_by_one_coroutine_at_a_time() {
    thread_local! {
        static LEFT: RefCell<Option<corelay_delegate::TrustSession<'static, u64>>> =
            const { RefCell::new(None) };
    }
    let _watch = watchdog();
    let trustees = start(hosted(2));
    let (a, b) = (trustees.entrust_on(0, 0u64), trustees.entrust_on(0, 0u64));
    let boxed = Box::into_raw(Box::new(trustees.entrust_on(1, 0u64)));
    // SAFETY: the box is taken back at the end, when no session is left.
    let far: &'static Trust<u64> = unsafe { &*boxed };
    let gate = Gate::new();
    let shut = gate.clone();
    let first = a.launch(move |_| {
        let mut mine = far.session();
        LEFT.set(Some(far.session()));
        // The other one runs while this waits.
        mine.apply(move |n| {
            shut.wait();
            *n += 1;
        });
        drop(LEFT.take());
    });
    let second = b.launch(move |_| {
        let left = || LEFT.take();
        let mut session = left().expect("launched later, and begun while that one waits");
        let text = panic_of(|| session.apply(|n| *n));
        LEFT.set(Some(session));
        gate.open();
        text
    });
    let text = second.join().unwrap();
    assert!(text.contains("by two coroutines at a time"), "{text}");
    first.join().unwrap();
    assert_eq!(far.apply(|n| *n), 1);
    drop(trustees);
    // SAFETY: `Box::into_raw` made the address; both closures have ended, and their sessions.
    drop(unsafe { Box::from_raw(boxed) });
}

/// A trustee that has been asked to end, and finds a launch in its last look, takes requests again.
/// Requests of other trustees' closures that came during that look are not lost.
#[test]
fn a_trustee_that_opens_again_loses_no_nested_request() {
    let _watch = watchdog();
    for _ in 0..scaled(10) {
        let (asks, ends) = (start(Trustees::dedicated(1)), start(hosted(1).batch(1)));
        let (from, to, held) = (asks.entrust(()), ends.entrust(0u64), ends.entrust(0u64));
        let [begun, first, second, last, looks] = std::array::from_fn(|_| Gate::new());
        let (pause, ends_now) = (asks.entrust(()), Arc::new(AtomicBool::new(false)));
        // Two clients, of which the trustee turns to this thread's first, and one request of each.
        to.apply(|_| ());
        let (x, gates) = (
            to.clone(),
            [&begun, &first, &second, &last].map(Gate::clone),
        );
        let other = std::thread::spawn(move || {
            let [begun, first, second, last] = gates;
            x.post(move |_| {
                begun.open();
                first.wait();
            });
            x.post(move |_| {
                second.open();
                last.wait();
            });
            barrier().unwrap();
        });
        begun.wait();
        let end = std::thread::spawn(move || ends.shutdown());
        // A delay in which the request is probably sent. If not, the test sees nothing.
        std::thread::sleep(Duration::from_millis(5));
        first.open();
        second.wait();
        // The trustee has been asked to end, and has passed this thread by: it finds later requests
        // in its last look.
        let (begun, looking) = (Gate::new(), looks.clone());
        let seen = begun.clone();
        to.post(move |_| {
            seen.open();
            looking.wait();
        });
        let over = Arc::clone(&ends_now);
        let launch = held.launch(move |_| {
            while !over.load(Ordering::Relaxed) {
                pause.apply(|()| ());
            }
        });
        last.open();
        begun.wait();
        let asked = to.clone();
        from.apply(move |()| asked.post(|n| *n += 1));
        looks.open();
        // Its trustee has sent the closure's requests.
        from.apply(|()| ());
        until(|| to.try_apply(|n| *n).is_ok_and(|n| n == 1));
        ends_now.store(true, Ordering::Relaxed);
        launch.join().unwrap();
        other.join().unwrap();
        end.join().unwrap();
    }
}
