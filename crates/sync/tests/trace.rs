//! Recordings as a program uses them: several threads, one recording at a time.

#![cfg(not(any(corelay_loom, corelay_shuttle)))]

use corelay_sync::trace::ring::{Raw, Writer};
use corelay_sync::trace::{
    self, AlreadyRecording, Event, Limits, Mark, Recording, ThreadTrace, Trace,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

static OUTER: Mark = Mark::new("outer");
static INNER: Mark = Mark::new("inner").with_arg("n");
static TICK: Mark = Mark::new("tick").with_args("n", "twice");

/// A lock around each test: a process has one recording, and tests run side by side.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn few(events: usize) -> Limits {
    Limits {
        events,
        ..Limits::default()
    }
}

fn thread_named<'a>(trace: &'a Trace, name: &str) -> &'a ThreadTrace {
    let found = trace.threads.iter().find(|thread| thread.name == name);
    found.unwrap_or_else(|| panic!("no thread {name} in {trace:?}"))
}

fn numbers(events: &[Event]) -> Vec<u64> {
    events.iter().map(|event| event.args[0]).collect()
}

#[test]
fn spans_lie_in_each_other_and_instants_between_them() {
    let _turn = alone();
    let recording = Recording::start(Limits::default()).unwrap();
    {
        let _outer = trace::span(&OUTER);
        let mut inner = trace::span(&INNER).with(1);
        trace::instant(&TICK, (2, 4));
        inner.set(3);
    }
    trace::span(&INNER).discard();
    let trace = recording.stop();
    let [thread] = &trace.threads[..] else {
        panic!("one thread: {trace:?}")
    };
    assert_eq!((thread.recorded, thread.overwritten()), (3, 0));
    let [outer, inner, tick] = &thread.events[..] else {
        panic!("three events: {thread:?}")
    };
    let names = [outer, inner, tick].map(|event| event.mark.name());
    assert_eq!(names, ["outer", "inner", "tick"]);
    assert_eq!((inner.args, tick.args), ([3, 0], [2, 4]));
    let end = |event: &Event| event.begin_ns + event.duration_ns.unwrap_or(0);
    assert!(outer.begin_ns <= inner.begin_ns && inner.begin_ns <= tick.begin_ns);
    assert!(tick.duration_ns.is_none() && tick.begin_ns <= end(inner));
    assert!(end(inner) <= end(outer) && end(outer) <= trace.length_ns);
}

#[test]
fn without_a_recording_nothing_is_kept() {
    let _turn = alone();
    assert!(!trace::is_on());
    trace::instant(&TICK, (1, 1));
    let before = trace::span(&OUTER);
    let recording = Recording::start(Limits::default()).unwrap();
    assert!(trace::is_on());
    drop(before);
    let after = trace::span(&OUTER);
    let trace = recording.stop();
    assert!(!trace::is_on());
    assert_eq!(trace.threads.len(), 0, "{trace:?}");
    // The span ends in another recording than it began in.
    let recording = Recording::start(Limits::default()).unwrap();
    drop(after);
    let trace = recording.stop();
    assert_eq!(trace.threads[0].events[0].begin_ns, 0);
}

#[test]
fn the_last_events_are_kept_and_the_others_counted() {
    let _turn = alone();
    let recording = Recording::start(few(4)).unwrap(); // seven, in eight places
    (0..10).for_each(|n| trace::instant(&TICK, n));
    let trace = recording.stop();
    let thread = &trace.threads[0];
    assert_eq!((thread.recorded, thread.overwritten()), (10, 3));
    assert_eq!(numbers(&thread.events), [3, 4, 5, 6, 7, 8, 9]);
    // A recording of its own gets a ring of its own.
    let recording = Recording::start(few(2)).unwrap();
    trace::instant(&TICK, 11);
    let trace = recording.stop();
    assert_eq!(numbers(&trace.threads[0].events), [11]);
}

#[test]
fn threads_come_and_go_and_their_events_stay() {
    let _turn = alone();
    let recording = Recording::start(Limits::default()).unwrap();
    for n in 0..3 {
        let named = thread::Builder::new().name(format!("worker-{n}"));
        let worker = named.spawn(move || trace::instant(&TICK, n)).unwrap();
        worker.join().unwrap();
    }
    thread::spawn(|| trace::instant(&TICK, 3)).join().unwrap();
    thread::spawn(|| {
        trace::name_thread("called otherwise");
        trace::instant(&TICK, 4);
    })
    .join()
    .unwrap();
    let trace = recording.stop();
    for n in 0..3 {
        let thread = thread_named(&trace, &format!("worker-{n}"));
        assert_eq!(numbers(&thread.events), [n]);
    }
    assert_eq!(numbers(&thread_named(&trace, "thread 4").events), [3]);
    let renamed = thread_named(&trace, "called otherwise");
    assert_eq!((renamed.number, numbers(&renamed.events)), (5, vec![4]));
    assert_eq!(trace.refused.all(), 0);
}

#[test]
fn events_of_too_many_threads_are_counted() {
    let _turn = alone();
    let limits = Limits {
        threads: 2,
        ..Limits::default()
    };
    let recording = Recording::start(limits).unwrap();
    for n in 0..5 {
        let come = move || (0..=n).for_each(|n| trace::instant(&TICK, n));
        thread::spawn(come).join().unwrap();
    }
    let trace = recording.stop();
    assert_eq!(trace.threads.len(), 2);
    // The third, fourth and fifth thread recorded 3, 4 and 5 events.
    assert_eq!((trace.refused.beyond_limit, trace.refused.ending), (12, 0));
}

/// Records while the thread-locals of its thread are destroyed, its ring among them. The system
/// chooses their order, so the event may be kept or refused, but it is counted.
#[test]
fn an_event_at_the_very_end_of_a_thread_is_kept_or_counted() {
    struct Last;
    impl Drop for Last {
        fn drop(&mut self) {
            trace::instant(&TICK, 2);
        }
    }
    thread_local!(static LAST: Last = const { Last });
    let _turn = alone();
    for last_first in [false, true] {
        let recording = Recording::start(Limits::default()).unwrap();
        thread::spawn(move || {
            if last_first {
                LAST.with(|_| ());
            }
            trace::instant(&TICK, 1);
            LAST.with(|_| ());
        })
        .join()
        .unwrap();
        let trace = recording.stop();
        let kept = trace.threads[0].recorded;
        assert_eq!(kept + trace.refused.ending, 2, "{trace:?}");
    }
}

#[test]
fn there_is_one_recording_at_a_time() {
    let _turn = alone();
    let first = Recording::start(Limits::default()).unwrap();
    assert_eq!(
        Recording::start(Limits::default()).unwrap_err(),
        AlreadyRecording
    );
    assert!(AlreadyRecording.to_string().contains("one at a time"));
    drop(first);
    let second = Recording::start(Limits::default()).unwrap();
    trace::instant(&TICK, 1);
    assert_eq!(second.stop().threads.len(), 1);
}

#[test]
fn a_span_ends_with_a_panic() {
    let _turn = alone();
    let recording = Recording::start(Limits::default()).unwrap();
    let caught = std::panic::catch_unwind(|| {
        let _span = trace::span(&OUTER);
        std::panic::resume_unwind(Box::new("by design"));
    });
    assert!(caught.is_err());
    assert_eq!(recording.stop().threads[0].recorded, 1);
}

/// Recordings begin and end while threads record, start and end: every trace is in order, whole,
/// and complete.
#[test]
fn recordings_come_and_go_beside_threads() {
    let _turn = alone();
    let rounds = scaled(30);
    let over = AtomicBool::new(false);
    thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(|| {
                // Relaxed: a request to stop.
                while !over.load(Ordering::Relaxed) {
                    thread::scope(|inner| {
                        inner.spawn(|| {
                            for n in 0..500 {
                                let _span = trace::span(&INNER).with(n);
                                trace::instant(&TICK, (n, 2 * n));
                            }
                        });
                    });
                }
            });
        }
        let mut seen = 0;
        for round in 0.. {
            if round >= rounds && seen >= rounds {
                break;
            }
            let recording = Recording::start(few(1 + round % 7)).unwrap();
            thread::yield_now();
            let trace = recording.stop();
            seen += trace.threads.len();
            for thread in &trace.threads {
                assert!(thread.events.len() <= 7);
                for event in &thread.events {
                    match event.duration_ns {
                        Some(_) => assert_eq!(event.mark.name(), "inner"),
                        None => assert_eq!(event.args[1], 2 * event.args[0], "torn"),
                    }
                }
            }
        }
        over.store(true, Ordering::Relaxed);
    });
}

/// A reader reads while the writer wraps around many times: no event is torn.
#[test]
fn a_ring_is_read_while_it_is_written() {
    let rounds = scaled(200_000) as u64;
    let mut writer = Writer::new(63);
    let ring = writer.ring().clone();
    let over = AtomicBool::new(false);
    thread::scope(|s| {
        s.spawn(|| {
            for n in 0..rounds {
                writer.record(Raw {
                    mark: if n.is_multiple_of(2) { &OUTER } else { &INNER },
                    begin: n,
                    end: n,
                    args: [n, n],
                });
            }
            // Relaxed: a request to stop.
            over.store(true, Ordering::Relaxed);
        });
        loop {
            let last = over.load(Ordering::Relaxed);
            let found = ring.read();
            let first = found.recorded - found.events.len() as u64;
            for (n, event) in (first..).zip(&found.events) {
                let words = [event.begin, event.end, event.args[0], event.args[1]];
                assert_eq!(words, [n; 4], "torn");
                let name = if n.is_multiple_of(2) {
                    "outer"
                } else {
                    "inner"
                };
                assert_eq!(event.mark.name(), name, "torn");
            }
            if last {
                break;
            }
        }
    });
    assert_eq!(ring.read().events.len(), 63);
}

/// `n` times the factor in `CORELAY_STRESS` (1 unless set).
fn scaled(n: usize) -> usize {
    let factor = std::env::var("CORELAY_STRESS").map_or(1.0, |text| {
        text.parse::<f64>().expect("CORELAY_STRESS is a number")
    });
    ((n as f64 * factor) as usize).max(1)
}
