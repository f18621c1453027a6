//! The end of objects, and of their trustee while others still send requests and hold
//! handles, under loom: scenes, short enough for two preemptions.
//!
//! A free that comes too early is a race on the object's `Shadow`, which loom reports.

use crate::model::{Flag, scene, trustees, unexplored};
use corelay_delegate::{ClientGuard, IntoInnerError, Trust, Trustees, TryApplyError, TryPostError};
use corelay_sync::facade::atomic::{AtomicUsize, Ordering};
use corelay_sync::facade::sync::Arc;
use corelay_sync::facade::thread;

/// Counts drops.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        // Relaxed: the models ask whether it is ordered before the reads.
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A trustee, asleep, with an object. Its client is there to the model's end: the address of a
/// freed channel would go to the next one or not, as the allocator likes, and the inbox compares
/// addresses.
fn entrusted(drops: &Arc<AtomicUsize>) -> (Trustees, Trust<Counted>) {
    let trustees = trustees();
    let value = trustees.entrust(Counted(drops.clone()));
    (trustees, value)
}

#[test]
fn a_request_runs_before_its_object_is_dropped() {
    scene(|| {
        let drops = Arc::new(AtomicUsize::new(0));
        let (trustees, value) = unexplored(|| entrusted(&drops));
        // The first one wakes the trustee: it is at work, or on its way back to sleep, when
        // the second one comes.
        for _ in 0..2 {
            value.post(|counted| {
                assert_eq!(counted.0.load(Ordering::Relaxed), 0, "used after its drop");
            });
        }
        drop(value);
        drop(ClientGuard::new());
        unexplored(|| drop(trustees.shutdown()));
        assert_eq!(drops.load(Ordering::Relaxed), 1);
    });
}

/// Raises a flag when it is dropped.
struct Signal(Flag);

impl Drop for Signal {
    fn drop(&mut self) {
        self.0.raise();
    }
}

#[test]
fn an_object_is_dropped_without_further_requests() {
    scene(|| {
        let gone = Flag::new();
        let (trustees, value) = unexplored(|| {
            let trustees = trustees();
            let value = trustees.entrust(Signal(gone.clone()));
            (trustees, value)
        });
        // The trustee may be going to sleep, or asleep.
        value.post(|_| ());
        drop(value);
        gone.wait();
        unexplored(|| {
            drop(ClientGuard::new());
            trustees.shutdown();
        });
    });
}

#[test]
fn an_object_is_freed_when_every_handle_is_done_with_it() {
    scene(|| {
        let drops = Arc::new(AtomicUsize::new(0));
        let (trustees, value) = unexplored(|| entrusted(&drops));
        let handle = value.clone();
        // Never a client: other threads learn of it only by its handle's end.
        let thread = thread::spawn(move || drop(handle));
        // The trustee may be awake when the last handle goes.
        value.post(|_| ());
        drop(value);
        thread.join().unwrap();
        unexplored(|| {
            drop(ClientGuard::new());
            trustees.shutdown();
        });
    });
}

#[test]
fn an_object_that_outlives_its_trustee_is_freed_by_its_last_handle() {
    scene(|| {
        let drops = Arc::new(AtomicUsize::new(0));
        let (trustees, value) = unexplored(|| entrusted(&drops));
        let thread = thread::spawn(move || drop(value));
        trustees.shutdown();
        assert_eq!(drops.load(Ordering::Relaxed), 1);
        thread.join().unwrap();
        unexplored(|| drop(ClientGuard::new()));
    });
}

#[test]
fn a_value_is_taken_back_after_all_that_was_accepted() {
    scene(|| {
        let (trustees, value) = unexplored(|| {
            let trustees = trustees();
            let value = trustees.entrust(0);
            (trustees, value)
        });
        let handle = value.clone();
        let thread = thread::spawn(move || drop(handle));
        value.post(|value| *value += 1);
        match Trust::into_inner(value) {
            Ok(value) => assert_eq!(value, 1),
            Err(IntoInnerError::Shared) => {} // the other handle was still there
            Err(other) => panic!("{other}"),
        }
        thread.join().unwrap();
        unexplored(|| {
            drop(ClientGuard::new());
            trustees.shutdown();
        });
    });
}

#[test]
fn a_value_taken_back_at_shutdown_comes_or_is_dropped() {
    scene(|| {
        let drops = Arc::new(AtomicUsize::new(0));
        let (trustees, value) = unexplored(|| entrusted(&drops));
        let thread = thread::spawn(move || match Trust::into_inner(value) {
            Ok(value) => {
                assert_eq!(value.0.load(Ordering::Relaxed), 0, "dropped, and used");
                drop(value);
            }
            Err(IntoInnerError::Closed) => assert_eq!(drops.load(Ordering::Relaxed), 1),
            Err(other) => panic!("{other}"),
        });
        trustees.shutdown();
        thread.join().unwrap();
        unexplored(|| drop(ClientGuard::new()));
    });
}

#[test]
fn a_weak_handle_is_upgraded_while_there_is_a_handle() {
    scene(|| {
        let drops = Arc::new(AtomicUsize::new(0));
        let (trustees, value) = unexplored(|| entrusted(&drops));
        let weak = Trust::downgrade(&value);
        let thread = thread::spawn(move || {
            // A handle, or a share in the memory, is the last to go.
            drop(weak.upgrade());
        });
        drop(value);
        thread.join().unwrap();
        unexplored(|| {
            drop(ClientGuard::new());
            trustees.shutdown();
        });
        assert_eq!(drops.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn a_mail_call_at_shutdown_is_answered_or_given_back() {
    scene(|| {
        let drops = Arc::new(AtomicUsize::new(0));
        let (trustees, value) = unexplored(|| entrusted(&drops));
        let thread = thread::spawn(move || {
            let mut ran = false;
            let borrowed = &mut ran;
            let answer = value.try_apply(move |_| {
                *borrowed = true;
                2
            });
            match answer {
                Ok(answer) => assert!(ran && answer == 2),
                Err(TryApplyError::Closed(_)) => {
                    assert!(!ran);
                    assert_eq!(drops.load(Ordering::Relaxed), 1, "closed too early");
                }
                Err(other) => panic!("{other}"),
            }
            drop(value);
            drop(ClientGuard::new());
        });
        trustees.shutdown();
        thread.join().unwrap();
        unexplored(|| drop(ClientGuard::new()));
    });
}

#[test]
fn a_post_at_shutdown_runs_or_is_given_back() {
    scene(|| {
        let drops = Arc::new(AtomicUsize::new(0));
        let ran = Arc::new(AtomicUsize::new(0));
        let (trustees, value) = unexplored(|| entrusted(&drops));
        let seen = ran.clone();
        let thread = thread::spawn(move || {
            let accepted = match value.try_post(move |_| {
                seen.fetch_add(1, Ordering::Relaxed);
            }) {
                Ok(()) => 1,
                Err(TryPostError::Closed(_)) => {
                    assert_eq!(drops.load(Ordering::Relaxed), 1, "closed too early");
                    0
                }
                Err(other) => panic!("{other}"),
            };
            drop(value);
            drop(ClientGuard::new());
            accepted
        });
        trustees.shutdown();
        let accepted = thread.join().unwrap();
        assert_eq!(ran.load(Ordering::Relaxed), accepted);
        unexplored(|| drop(ClientGuard::new()));
    });
}
