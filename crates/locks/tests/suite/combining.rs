//! Where combining locks differ from others: a closure may run on another thread.

use super::locks::add_to;
use crate::common::{Combines, Lock, for_combining_locks, tests_of};
use corelay_sync::Session;
use corelay_sync::wait::Sleeper;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Weak, mpsc};
use std::thread;
use std::time::Duration;

for_combining_locks!({
    a_limit_of_one: u64,
    a_sleeper_is_served_beyond_the_limit: u64,
    a_combiner_is_relieved_by_a_sleeper: u64,
    apply_inside_apply_is_refused: u64,
    a_panic_on_another_thread_reaches_its_caller: u64,
    a_panic_meets_a_combiner_that_unwinds: u64,
    a_payload_may_apply_and_panic_when_dropped: u64,
    a_value_may_not_apply_when_dropped_inside: OnDrop,
    a_forgotten_session_is_no_obstacle: u64,
    a_late_destructor_sleeps_until_served: u64,
});

mod adaptive {
    use super::*;

    tests_of!(closures Adaptive {
        apply_inside_apply_is_refused: u64,
        a_panic_on_another_thread_reaches_its_caller: u64,
        a_panic_meets_a_combiner_that_unwinds: u64,
        a_payload_may_apply_and_panic_when_dropped: u64,
        a_value_may_not_apply_when_dropped_inside: OnDrop,
        a_late_destructor_sleeps_until_served: u64,
    });
}

/// For how long a closure holds a lock, so that others come to wait for it.
const MOMENT: Duration = Duration::from_millis(1);

/// Calls `f` after another thread has entered, which leaves a moment later.
fn while_held<L: Lock<u64>, R>(lock: &L, f: impl FnOnce() -> R) -> R {
    let (tell, told) = mpsc::channel();
    thread::scope(|s| {
        s.spawn(move || {
            lock.session().apply(move |_| {
                tell.send(()).unwrap();
                thread::sleep(MOMENT);
            });
        });
        told.recv().unwrap();
        f()
    })
}

/// Applies `f` until another thread runs it.
fn run_by_another<L: Lock<u64>, R: Send>(
    lock: &L,
    mut f: impl FnMut(&mut u64) -> R + Send,
) -> thread::Result<R> {
    let this = thread::current().id();
    loop {
        let if_another = |n: &mut u64| (thread::current().id() != this).then(|| f(n));
        let apply = AssertUnwindSafe(|| lock.session().apply(if_another));
        let result = while_held(lock, || catch_unwind(apply));
        if let Some(result) = result.transpose() {
            return result;
        }
    }
}

fn a_limit_of_one<L: Combines<u64>>() {
    add_to(L::make_with_limit(0, 1), 2, 5_000);
    add_to(L::make_with_limit(0, 1), 6, 100);
}

fn a_sleeper_is_served_beyond_the_limit<L: Combines<u64>>() {
    let lock = L::make_with_limit(7, 1);
    assert_eq!(run_by_another(&lock, |n| *n).unwrap(), 7);
}

/// The others sleep, since a closure takes long, and keep coming. A call runs a few closures only: with
/// a limit of 1 at most 4, and as many again for a combiner that it relieves.
fn a_combiner_is_relieved_by_a_sleeper<L: Combines<u64>>() {
    thread_local! {
        /// The closures that this thread has run.
        static RAN: Cell<u64> = const { Cell::new(0) };
    }
    let lock = L::make_with_limit(0, 1);
    let work = || {
        let mut session = lock.session();
        for _ in 0..20 {
            let before = RAN.get();
            session.apply(|n| {
                *n += 1;
                RAN.set(RAN.get() + 1);
                thread::sleep(MOMENT);
            });
            let ran = RAN.get() - before;
            assert!(ran <= 8, "a call has run {ran} closures");
        }
    };
    thread::scope(|s| (0..4).for_each(|_| _ = s.spawn(work)));
    assert_eq!(lock.unmake(), 80);
}

/// The refusal reaches the outer caller, for it is a panic of the outer closure.
fn apply_inside_apply_is_refused<L: Lock<u64>>() {
    let lock = L::make(0);
    let outer = AssertUnwindSafe(|| lock.session().apply(|_| lock.session().apply(|n| *n += 1)));
    let text = *catch_unwind(outer)
        .unwrap_err()
        .downcast::<String>()
        .unwrap();
    let name = "apply_inside_apply_is_refused";
    assert!(text.contains(name), "{text} names the closure, in {name}");
    assert!(text.ends_with("this code may not wait"), "{text}");
    lock.session().apply(|n| *n += 1);
    assert_eq!(lock.unmake(), 1);
}

fn a_panic_on_another_thread_reaches_its_caller<L: Lock<u64>>() {
    let lock = L::make(0);
    let caught = run_by_another(&lock, |n| {
        *n += 1;
        resume_unwind(Box::new("mine"));
    });
    assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"mine"));
    assert_eq!(lock.unmake(), 1);
}

/// A destructor combines while its thread unwinds, and runs a closure that panics.
fn a_panic_meets_a_combiner_that_unwinds<L: Lock<u64>>() {
    struct InDrop<F: FnMut()>(F);
    impl<F: FnMut()> Drop for InDrop<F> {
        fn drop(&mut self) {
            (self.0)();
        }
    }
    let lock = L::make(0);
    let (tell, told) = mpsc::channel();
    thread::scope(|s| {
        let unwinds = s.spawn(|| {
            let _in_drop = InDrop(|| {
                lock.session().apply(|_| {
                    tell.send(()).unwrap();
                    thread::sleep(MOMENT);
                });
            });
            resume_unwind(Box::new("the combiner's"));
        });
        told.recv().unwrap();
        let apply = || lock.session().apply(|_| resume_unwind(Box::new("mine")));
        let caught: thread::Result<()> = catch_unwind(AssertUnwindSafe(apply));
        assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"mine"));
        let caught: thread::Result<()> = unwinds.join();
        assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"the combiner's"));
    });
}

fn a_payload_may_apply_and_panic_when_dropped<L: Lock<u64> + 'static>() {
    struct Payload<L: Lock<u64>>(Arc<L>);
    impl<L: Lock<u64>> Drop for Payload<L> {
        fn drop(&mut self) {
            self.0.session().apply(|n| *n += 1);
            resume_unwind(Box::new("the payload's"));
        }
    }
    let lock = Arc::new(L::make(0));
    let throw = |_: &mut u64| resume_unwind(Box::new(Payload(Arc::clone(&lock))));
    let here: thread::Result<()> = catch_unwind(AssertUnwindSafe(|| lock.session().apply(throw)));
    for caught in [here, run_by_another(&*lock, throw)] {
        let payload = caught.unwrap_err();
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(payload)));
        assert_eq!(dropped.unwrap_err().downcast_ref(), Some(&"the payload's"));
    }
    let lock = Arc::into_inner(lock).expect("the payloads are gone");
    assert_eq!(lock.unmake(), 2);
}

/// A value that calls something when it is dropped.
struct OnDrop(Option<Box<dyn FnOnce() + Send>>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        if let Some(call) = self.0.take() {
            call();
        }
    }
}

/// A value that is replaced uses its own lock: a clear panic. With the lock, it finds none.
fn a_value_may_not_apply_when_dropped_inside<L: Lock<OnDrop> + 'static>() {
    let lock = Arc::new(L::make(OnDrop(None)));
    let applies = |lock: Weak<L>| {
        OnDrop(Some(Box::new(move || {
            if let Some(lock) = lock.upgrade() {
                lock.session().apply(|_| ());
            }
        })))
    };
    let weak = Arc::downgrade(&lock);
    lock.session().apply(|value| *value = applies(weak));
    let replace = AssertUnwindSafe(|| lock.session().apply(|value| *value = OnDrop(None)));
    let text = *catch_unwind(replace)
        .unwrap_err()
        .downcast::<String>()
        .unwrap();
    assert!(text.ends_with("this code may not wait"), "{text}");
    let weak = Arc::downgrade(&lock);
    lock.session().apply(|value| *value = applies(weak));
    let lock = Arc::into_inner(lock).expect("nobody else has it");
    drop(lock.unmake());
}

fn a_forgotten_session_is_no_obstacle<L: Lock<u64>>() {
    let lock = L::make(0);
    for _ in 0..3 {
        while_held(&lock, || {
            let mut session = lock.session();
            session.apply(|n| *n += 1);
            std::mem::forget(session);
        });
    }
    lock.session().apply(|n| *n = 0);
    add_to(lock, 2, 100);
}

/// A thread ends, has no [`Sleeper`] any more, and its destructor waits for a lock.
fn a_late_destructor_sleeps_until_served<L: Lock<u64> + 'static>() {
    struct AtExit<L: Lock<u64>>(Arc<L>);
    impl<L: Lock<u64>> Drop for AtExit<L> {
        fn drop(&mut self) {
            self.0.session().apply(|n| *n += 1);
        }
    }
    thread_local! {
        static EARLY: RefCell<Option<Box<dyn std::any::Any>>> = const { RefCell::new(None) };
    }
    let lock = Arc::new(L::make(0));
    let theirs = Arc::clone(&lock);
    let thread = lock.session().apply(|_| {
        let thread = thread::spawn(|| {
            EARLY.set(Some(Box::new(AtExit(theirs))));
            // The thread-local that was used last is destroyed first.
            drop(Sleeper::current());
        });
        thread::sleep(10 * MOMENT);
        thread
    });
    thread.join().unwrap();
    let lock = Arc::into_inner(lock).expect("the thread is gone");
    assert_eq!(lock.unmake(), 1);
}
