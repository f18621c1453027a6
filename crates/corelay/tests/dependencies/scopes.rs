//! Calls during which a thread-local has a special value.

use super::{Wait, interleaved};
use corelay::fibre::{channel, yield_now};
use scoped_tls::scoped_thread_local;
use std::sync::{Arc, Mutex};
use tokio::runtime::{Builder, Handle, Runtime, RuntimeFlavor};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber, info, subscriber};

scoped_thread_local!(static NUMBER: u32);

/// Each fibre finds the pointer that the other one has set, and one of the pointers stays for ever.
/// Here that does no harm, for they point to statics. Did they point into the fibres' frames, this
/// would be a use after free in code without `unsafe`.
#[test]
fn a_pointer_of_scoped_tls_is_left_behind_by_calls_that_wait() {
    static ONE: u32 = 1;
    static TWO: u32 = 2;
    let (first, second) = interleaved(
        |wait: Wait| {
            NUMBER.set(&ONE, || {
                wait(); // here the promise is broken
                NUMBER.with(|n| *n)
            })
        },
        |wait: Wait| {
            let before = NUMBER.set(&TWO, || {
                wait(); // and here
                NUMBER.is_set()
            });
            (before, NUMBER.is_set() && NUMBER.with(|n| *n) == ONE)
        },
    );
    assert_eq!(first.unwrap(), 2, "the other's");
    let (inside, afterwards) = second.unwrap();
    assert!(!inside, "the first has taken it away");
    assert!(
        afterwards,
        "both have returned, and the first one's pointer is still there"
    );
}

#[test]
fn calls_scoped_by_scoped_tls_that_do_not_wait_are_fine() {
    let sums = super::eight(|i| {
        let mut sum = 0;
        for k in 0..10 {
            let number = (i * 10 + k) as u32;
            sum += NUMBER.set(&number, || NUMBER.with(|n| *n));
            yield_now();
        }
        sum
    });
    assert_eq!(sums.iter().sum::<u32>(), 3_160);
}

fn runtime(builder: &mut Builder) -> Runtime {
    builder.build().expect("there are threads")
}

/// Sound, but of no use: the guard decides where `spawn` goes for all fibres of the thread, and
/// panics if it is not the last one dropped.
#[test]
fn enter_guards_of_tokio_that_overlap_panic() {
    let one = runtime(&mut Builder::new_current_thread());
    let two = runtime(Builder::new_multi_thread().worker_threads(1));
    let (a, b) = (one.handle().clone(), two.handle().clone());
    let (first, second) = interleaved(
        move |wait| {
            let guard = a.enter();
            let own = Handle::current().runtime_flavor();
            wait();
            let others = Handle::current().runtime_flavor();
            assert_eq!(
                (own, others),
                (RuntimeFlavor::CurrentThread, RuntimeFlavor::MultiThread)
            );
            drop(guard);
        },
        move |wait| {
            let _guard = b.enter();
            wait();
        },
    );
    let message = *first.unwrap_err().downcast::<&str>().unwrap();
    assert!(message.contains("dropped out of order"), "{message}");
    second.unwrap();
}

/// While a fibre waits inside `block_on`, the thread's pointers lead to its runtime: to wait there
/// breaks the promise. Here that does no harm, for the other fibre is refused before it follows
/// one.
#[test]
fn a_wait_inside_block_on_of_tokio_is_seen_by_other_fibres() {
    let (one, two) = (Builder::new_current_thread(), Builder::new_current_thread());
    let [one, two] = [one, two].map(|mut builder| runtime(&mut builder));
    let (first, second) = interleaved(
        move |wait| {
            one.block_on(async {
                wait(); // here the promise is broken
                1
            })
        },
        move |_| two.block_on(async { 2 }),
    );
    assert_eq!(first.unwrap(), 1);
    let message = *second.unwrap_err().downcast::<&str>().unwrap();
    assert!(
        message.contains("Cannot start a runtime from within a runtime"),
        "{message}"
    );
}

#[test]
fn fibres_hand_work_to_tokio_and_wait_for_it_by_a_channel() {
    let runtime = runtime(Builder::new_multi_thread().worker_threads(1));
    let handle = runtime.handle().clone();
    let fibre = super::cluster().spawn(move || {
        let doubled = (0..10u64).map(|i| {
            let (tell, told) = channel(1);
            handle.spawn(async move {
                tokio::task::yield_now().await;
                tell.try_send(2 * i).expect("there is a place");
            });
            told.recv().expect("it is told")
        });
        doubled.sum::<u64>()
    });
    assert_eq!(fibre.join().unwrap(), 90);
}

/// A subscriber that writes down the names of events.
#[derive(Clone, Default)]
struct Names(Arc<Mutex<Vec<&'static str>>>);

impl Names {
    fn take(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Subscriber for Names {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        self.0.lock().unwrap().push(event.metadata().target());
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Sound, but misleading: for the time of the call it is the subscriber of all fibres of the
/// thread.
#[test]
fn a_scoped_subscriber_of_tracing_gets_events_of_other_fibres() {
    let names = Names::default();
    let theirs = names.clone();
    let (first, second) = interleaved(
        move |wait| {
            subscriber::with_default(theirs, || {
                info!(target: "first", "before");
                wait();
                info!(target: "first", "after");
            });
        },
        |_| info!(target: "second", "of another fibre"),
    );
    first.and(second).unwrap();
    assert_eq!(names.take(), ["first", "second", "first"]);
}
