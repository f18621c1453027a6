//! The shipped slots and pools under loom, without a trustee: a thread stands for it. Every
//! stale read that the memory model permits, and every interleaving with at most two
//! preemptions.
//!
//! In the models a chunk has two slots.

use corelay_delegate::checked::{Owner, Request};
use corelay_delegate::{ApplyFuture, Side};
use corelay_sync::facade::atomic::{AtomicUsize, Ordering};
use corelay_sync::facade::cell::UnsafeCell;
use corelay_sync::facade::thread;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

fn model(f: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(2);
    builder.check(f);
}

/// Counts how often it is woken. A thread that has been woken sees everything done before.
struct Counting(AtomicUsize);

impl Counting {
    fn new() -> (Arc<Self>, Waker) {
        let counting = Arc::new(Self(AtomicUsize::new(0)));
        (Arc::clone(&counting), Waker::from(counting))
    }
    fn woken(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}

impl Wake for Counting {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Release);
    }
}

/// A result whose making and taking loom checks, and whose drops are counted.
struct Checked {
    value: Box<UnsafeCell<u64>>,
    drops: Arc<AtomicUsize>,
}

impl Checked {
    fn new(value: u64, drops: &Arc<AtomicUsize>) -> Self {
        let checked = Self {
            value: Box::new(UnsafeCell::new(0)),
            drops: Arc::clone(drops),
        };
        // SAFETY: the value has just been made, and only this thread knows it.
        checked.value.with_mut(|v| unsafe { *v = value });
        checked
    }
}

// SAFETY: one thread hands it to the next; loom checks that.
unsafe impl Send for Checked {}

impl Drop for Checked {
    fn drop(&mut self) {
        // SAFETY: this thread alone has the value; loom checks that.
        self.value.with_mut(|v| unsafe { *v += 1 });
        self.drops.fetch_add(1, Ordering::Relaxed);
    }
}

fn poll<R>(future: &mut ApplyFuture<R>, waker: &Waker) -> Option<R> {
    match Pin::new(future).poll(&mut Context::from_waker(waker)) {
        Poll::Ready(result) => Some(result.unwrap()),
        Poll::Pending => None,
    }
}

fn trustee<R: Send + 'static>(
    request: Request<R>,
    result: impl FnOnce() -> R + Send + 'static,
) -> thread::JoinHandle<()> {
    thread::spawn(move || request.complete(result()))
}

#[test]
fn a_claimed_closure_goes_to_one_side() {
    model(|| {
        let drops = Arc::new(AtomicUsize::new(0));
        let (mine, theirs) = Side::both(Checked::new(3, &drops));
        let thread = thread::spawn(move || theirs.take().is_some());
        let is_mine = mine.take().is_some();
        assert!(is_mine != thread.join().unwrap());
        assert_eq!(drops.load(Ordering::Relaxed), 1);
        // Nobody takes it.
        drop(Side::both(Checked::new(3, &drops)));
        assert_eq!(drops.load(Ordering::Relaxed), 2);
    });
}

#[test]
fn a_result_arrives_or_wakes() {
    model(|| {
        let (owner, drops) = (Owner::default(), Arc::new(AtomicUsize::new(0)));
        let (mut future, request) = owner.request();
        let note = Arc::clone(&drops);
        let trustee = trustee(request, move || Checked::new(3, &note));
        let (counting, waker) = Counting::new();
        if let Some(result) = poll(&mut future, &waker) {
            // SAFETY: this thread alone has the result; loom checks that.
            assert_eq!(result.value.with(|v| unsafe { *v }), 3);
            trustee.join().unwrap();
            assert_eq!(counting.woken(), 0);
        } else {
            trustee.join().unwrap();
            // Once, and then it is ready.
            assert_eq!(counting.woken(), 1);
            assert!(poll(&mut future, &waker).is_some());
        }
        assert_eq!(drops.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn a_slot_is_used_again_when_its_waker_has_been_read() {
    model(|| {
        let owner = Owner::default();
        let (first_counting, first) = Counting::new();
        let (mut future, request) = owner.request::<u64>();
        let trustee_of_first = trustee(request, || 1);
        let pending = poll(&mut future, &first).is_none();
        // Polled like this, without being woken, the future may find the trustee reading the waker.
        if pending && poll(&mut future, &first).is_none() {
            trustee_of_first.join().unwrap();
            assert_eq!(first_counting.woken(), 1);
            return;
        }
        // The slot that has just come back is taken first.
        let (second_counting, second) = Counting::new();
        let (mut future, request) = owner.request::<u64>();
        assert!(poll(&mut future, &second).is_none());
        request.complete(2);
        assert_eq!(poll(&mut future, &second), Some(2));
        trustee_of_first.join().unwrap();
        assert_eq!(second_counting.woken(), 1);
        assert_eq!(first_counting.woken(), usize::from(pending));
    });
}

#[test]
fn the_last_waker_is_woken() {
    model(|| {
        let owner = Owner::default();
        let (mut future, request) = owner.request::<u64>();
        let trustee = trustee(request, || 1);
        let (first_counting, first) = Counting::new();
        let (last_counting, last) = Counting::new();
        let pending = poll(&mut future, &first).is_none() && poll(&mut future, &last).is_none();
        trustee.join().unwrap();
        if pending {
            assert_eq!(last_counting.woken(), 1);
            assert_eq!(first_counting.woken(), 0);
            assert_eq!(poll(&mut future, &last), Some(1));
        }
        drop((first, last));
        // The slot keeps no waker.
        assert_eq!(Arc::strong_count(&first_counting), 1);
        assert_eq!(Arc::strong_count(&last_counting), 1);
    });
}

#[test]
fn a_dropped_future_leaves_nothing() {
    model(|| {
        let (owner, drops) = (Owner::default(), Arc::new(AtomicUsize::new(0)));
        let (mut future, request) = owner.request();
        let note = Arc::clone(&drops);
        let trustee = trustee(request, move || Checked::new(3, &note));
        let (counting, waker) = Counting::new();
        drop(poll(&mut future, &waker));
        drop(future);
        // The slot is the owner's again, or the trustee's still.
        let (again, request) = owner.request::<u64>();
        request.complete(1);
        drop(again);
        trustee.join().unwrap();
        assert_eq!(drops.load(Ordering::Relaxed), 1);
        drop(waker);
        assert_eq!(Arc::strong_count(&counting), 1);
    });
}

#[test]
fn an_abandoned_slot_is_used_again_when_its_waker_is_gone() {
    model(|| {
        let owner = Owner::default();
        let (mut future, request) = owner.request::<u64>();
        // Neither of the two is the owner.
        let task = thread::spawn(move || {
            let _ = poll(&mut future, Waker::noop());
        });
        let trustee = trustee(request, || 1);
        // The second slot of the chunk, and then the first, or one of another chunk.
        let asked = [owner.request::<u64>(), owner.request::<u64>()];
        for (mut future, request) in asked {
            assert!(poll(&mut future, Waker::noop()).is_none());
            request.complete(2);
        }
        task.join().unwrap();
        trustee.join().unwrap();
    });
}

#[test]
fn slots_come_back_from_other_threads() {
    model(|| {
        let owner = Owner::default();
        let futures: Vec<_> = (0..2).map(|_| owner.request::<u64>()).collect();
        let threads: Vec<_> = futures
            .into_iter()
            .map(|(future, request)| {
                thread::spawn(move || {
                    request.complete(5);
                    drop(future);
                })
            })
            .collect();
        // Both of the chunk are out: one that has come back, or a second chunk's.
        for _ in 0..2 {
            let (mut future, request) = owner.request::<u64>();
            request.complete(6);
            assert_eq!(poll(&mut future, Waker::noop()), Some(6));
        }
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

/// Loom finds a pool that is not freed.
#[test]
fn the_last_slot_of_a_thread_that_has_ended_frees_all() {
    model(|| {
        let owner = Owner::default();
        let (first, request) = owner.request::<u64>();
        let threads = [
            thread::spawn(move || {
                request.complete(5);
                drop(first);
            }),
            {
                let (second, request) = owner.request::<u64>();
                request.complete(5);
                thread::spawn(move || drop(second))
            },
        ];
        drop(owner);
        for thread in threads {
            thread.join().unwrap();
        }
    });
}
