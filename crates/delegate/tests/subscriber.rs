//! Events for subscribers of `tracing`, and subscribers that misbehave.
//!
//! A process has one subscriber. The tests share it, and know their events by the trustee's name.
#![cfg(not(any(corelay_loom, corelay_shuttle)))]

use corelay_delegate::{AsyncError, ClientGuard, Trust, Trustees, TryApplyError, barrier, name};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, Once, OnceLock, PoisonError, mpsc};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber, span};

#[path = "../../sync/tests/toy/mod.rs"]
mod toy;
mod watch;

use watch::watchdog;

/// A message to a subscriber: an event, or the begin or end of a span.
#[derive(Clone, Debug, Default)]
struct Told {
    target: &'static str,
    level: Option<Level>,
    fields: BTreeMap<&'static str, String>,
    /// The number of the span that begins, ends, or contains the event.
    span: Option<u64>,
    kind: Kind,
}

/// The kind of a message to a subscriber.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Event,
    SpanBegins,
    SpanEnds,
}

impl Told {
    fn get(&self, field: &str) -> &str {
        self.fields.get(field).map_or("", String::as_str)
    }
}

impl Visit for Told {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }
}

static TOLD: Mutex<Vec<Told>> = Mutex::new(Vec::new());
/// An act of a subscriber on an event, apart from noting it.
static MISBEHAVIOUR: Mutex<Option<fn(&Told)>> = Mutex::new(None);
/// One test at a time has a say in that.
static TURN: Mutex<()> = Mutex::new(());

thread_local! {
    /// Whether the subscriber runs on this thread already.
    static RUNS: Cell<bool> = const { Cell::new(false) };
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Notes;

impl Subscriber for Notes {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("corelay::")
    }

    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut told = Told {
            target: span.metadata().target(),
            level: Some(*span.metadata().level()),
            span: Some(id),
            kind: Kind::SpanBegins,
            ..Told::default()
        };
        span.record(&mut told);
        note(told);
        span::Id::from_u64(id)
    }

    fn try_close(&self, id: span::Id) -> bool {
        let span = Some(id.into_u64());
        note(Told {
            span,
            // There are no spans of another target.
            target: "corelay::wait_for_room",
            kind: Kind::SpanEnds,
            ..Told::default()
        });
        true
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut told = Told {
            target: event.metadata().target(),
            level: Some(*event.metadata().level()),
            ..Told::default()
        };
        event.record(&mut told);
        told.span = event.parent().map(span::Id::into_u64);
        note(told);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// Notes what a subscriber has been told, and misbehaves.
fn note(told: Told) {
    lock(&TOLD).push(told.clone());
    let misbehave = *lock(&MISBEHAVIOUR);
    if let Some(misbehave) = misbehave
        && !RUNS.replace(true)
    {
        let ended = catch_unwind(AssertUnwindSafe(|| misbehave(&told)));
        RUNS.set(false);
        if let Err(payload) = ended {
            std::panic::resume_unwind(payload);
        }
    }
}

/// Has the subscriber do `misbehave` on each event while a test runs.
fn subscribe(misbehave: Option<fn(&Told)>) -> MutexGuard<'static, ()> {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing::subscriber::set_global_default(Notes).expect("the first one"));
    let turn = lock(&TURN);
    *lock(&MISBEHAVIOUR) = misbehave;
    turn
}

/// The events with that target whose trustee's name begins like this.
fn told(target: &str, trustee: &str) -> Vec<Told> {
    let mut told = lock(&TOLD).clone();
    told.retain(|t| t.target == target && t.get("trustee").starts_with(trustee));
    told.retain(|t| t.kind == Kind::Event);
    told
}

/// For each span with that target whose trustee's name begins like this: the events in it, and whether
/// it has ended.
fn spans(target: &str, trustee: &str) -> Vec<(Vec<Told>, bool)> {
    let told = lock(&TOLD).clone();
    let is_begin = |t: &&Told| {
        t.kind == Kind::SpanBegins && t.target == target && t.get("trustee").starts_with(trustee)
    };
    let begins = told.iter().filter(is_begin);
    let of = |begin: &Told| {
        let own = || told.iter().filter(|t| t.span == begin.span);
        let events = own().filter(|t| t.kind == Kind::Event).cloned().collect();
        (events, own().any(|t| t.kind == Kind::SpanEnds))
    };
    begins.map(of).collect()
}

fn fail(n: &mut u64) -> u64 {
    *n += 1;
    panic!("out of order")
}

/// Each way in which a closure can panic on a trustee.
fn fail_in_each_way(t: &Trust<u64>) {
    let named = t.request(name!("fail"));
    assert!(catch_unwind(AssertUnwindSafe(|| named.apply(fail))).is_err());
    t.clear_poison();
    named.post(|n| _ = fail(n));
    named.apply_then(|n| *n, |_| unreachable!("poisoned"));
    assert_eq!(barrier().unwrap_err().count(), 2);
    t.clear_poison();
    drop(named.apply_async(fail));
    barrier().unwrap();
    t.clear_poison();
    assert!(t.apply(|n| *n) >= 3);
}

#[test]
fn a_poisoned_object_is_told_of_by_its_name() {
    let _watch = watchdog();
    let _turn = subscribe(None);
    let trustees = Trustees::dedicated(1).name("poison").start().unwrap();
    let t = trustees.entrust(0u64).named("stock");
    fail_in_each_way(&t);
    trustees.entrust(0u8).post(|_| panic!("unnamed"));
    assert!(barrier().is_err());
    let told = told("corelay::poisoned", "poison-0");
    assert_eq!(told.len(), 4, "{told:?}");
    for told in &told[..3] {
        assert_eq!(told.level, Some(Level::ERROR));
        assert_eq!(told.get("object"), "\"stock\" (u64)");
        assert_eq!(told.get("closure"), "fail");
        assert_eq!(told.get("panic"), "out of order");
    }
    assert_eq!(told[3].get("object"), "u8");
    assert!(
        told[3].get("closure").contains("a_poisoned_object"),
        "{told:?}"
    );
}

#[test]
fn a_members_own_object_is_told_of() {
    let _watch = watchdog();
    let _turn = subscribe(None);
    let team = Trustees::flat(1).name("own").start().unwrap();
    let t = team.entrust(0u64).named("mine");
    team.run(|_| fail_in_each_way(&t));
    let told = told("corelay::poisoned", "own-0");
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told.iter().all(|told| told.get("closure") == "fail"));
}

#[test]
fn a_launched_closure_that_panics_is_told_of() {
    let _watch = watchdog();
    let _turn = subscribe(None);
    let builder = Trustees::dedicated(1).name("launch");
    let trustees = builder.host(toy::host()).start().unwrap();
    let t = trustees.entrust(0u64);
    assert!(t.request(name!("fail")).launch(fail).join().is_err());
    let told = told("corelay::poisoned", "launch-0");
    assert_eq!((told.len(), told[0].get("closure")), (1, "fail"));
    assert_eq!(told[0].get("panic"), "out of order");
}

#[test]
fn a_slow_closure_is_told_of() {
    let _watch = watchdog();
    let _turn = subscribe(None);
    for alone in [true, false] {
        let slow = Duration::from_micros(200);
        let builder = Trustees::dedicated(1).name(if alone { "slow" } else { "ring" });
        let trustees = builder.observe(true).slow(slow).start().unwrap();
        let t = trustees.entrust(0u64);
        let told = loop {
            let crawl = t.request(name!("crawl"));
            if alone {
                crawl.apply(|_| std::thread::sleep(Duration::from_millis(1)));
            } else {
                crawl.post(|_| std::thread::sleep(Duration::from_millis(1)));
                barrier().unwrap();
            }
            t.request(name!("quick")).apply(|n| *n += 1);
            let mut told = told(
                "corelay::slow_closure",
                if alone { "slow-0" } else { "ring-0" },
            );
            told.retain(|told| told.get("closure") == "crawl");
            if let Some(told) = told.pop() {
                break told;
            }
        };
        assert_eq!(told.level, Some(Level::WARN));
        let took: u64 = told.get("took_ns").parse().unwrap();
        assert!((1_000_000..60_000_000_000).contains(&took), "{told:?}");
    }
}

#[test]
fn a_wait_for_room_is_told_of_with_its_time() {
    let _watch = watchdog();
    let _turn = subscribe(None);
    let trustees = Trustees::dedicated(1)
        .name("full")
        .window(4)
        .start()
        .unwrap();
    let t = trustees.entrust(0u64);
    assert!(told("corelay::wait_for_room", "full-0").is_empty());
    t.post(|_| std::thread::sleep(Duration::from_millis(20)));
    let begun = Instant::now();
    (0..8).for_each(|_| t.post(|n| *n += 1));
    let all = begun.elapsed();
    let told = told("corelay::wait_for_room", "full-0");
    assert_eq!(
        (told[0].level, told[0].get("window")),
        (Some(Level::DEBUG), "4")
    );
    let waited: Vec<u64> = told
        .iter()
        .map(|t| t.get("waited_ns").parse().unwrap())
        .collect();
    assert!(u128::from(waited.iter().sum::<u64>()) <= all.as_nanos());
    assert!(waited.iter().max() > Some(&1_000_000), "{waited:?}");
    barrier().unwrap();
    let spans = spans("corelay::wait_for_room", "full-0");
    assert_eq!(spans.len(), waited.len());
    for (events, ended) in spans {
        assert!(ended && events.len() == 1, "{events:?}");
    }
}

fn poll<F: Future>(future: &mut Pin<Box<F>>) -> Poll<F::Output> {
    future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
}

/// The span lasts from the poll that finds no room to the one that sends, or to the drop.
#[test]
fn a_tasks_wait_for_room_is_a_span() {
    let _watch = watchdog();
    let _turn = subscribe(None);
    let builder = Trustees::dedicated(1).name("task").window(1);
    let trustees = builder.start().unwrap();
    let t = trustees.entrust(0u64);
    let (open, gate) = mpsc::channel::<()>();
    t.post(move |_| _ = gate.recv());
    let mut sent = Box::pin(t.apply_async(|n| *n));
    let mut dropped = Box::pin(t.post_async(|n| *n += 1));
    assert!(poll(&mut sent).is_pending() && poll(&mut dropped).is_pending());
    assert!(poll(&mut sent).is_pending());
    let before = spans("corelay::wait_for_room", "task-0");
    assert_eq!(before.len(), 2, "{before:?}");
    assert!(
        before
            .iter()
            .all(|(events, ended)| events.is_empty() && !ended)
    );
    drop(dropped);
    open.send(()).unwrap();
    while poll(&mut sent).is_pending() {
        std::thread::yield_now();
    }
    let after = spans("corelay::wait_for_room", "task-0");
    let [(sent, true), (dropped, true)] = &after[..] else {
        panic!("{after:?}")
    };
    assert!(sent.len() == 1 && dropped.is_empty(), "{after:?}");
    assert!(sent[0].get("waited_ns").parse::<u64>().unwrap() > 0);
}

/// The requests of a subscriber that wait for room themselves are not told of.
#[test]
fn a_subscriber_that_fills_the_window_ends() {
    static LOG: OnceLock<Trust<u64>> = OnceLock::new();
    let _watch = watchdog();
    let trustees = Trustees::dedicated(1).name("flood").window(2);
    let trustees = trustees.start().unwrap();
    let log = LOG.get_or_init(|| trustees.entrust(0u64));
    let _turn = subscribe(Some(|told| {
        RUNS.set(false);
        if told.get("trustee").starts_with("flood") {
            (0..5).for_each(|_| LOG.get().unwrap().post(|n| *n += 1));
        }
    }));
    (0..20).for_each(|_| log.post(|n| *n += 100));
    barrier().unwrap();
    let n = log.apply(|n| *n);
    assert!(n / 100 >= 20 && n.is_multiple_of(5), "{n}");
}

/// A request and a join that would wait in a ring.
#[test]
fn each_circular_wait_is_told_of() {
    let _watch = watchdog();
    let _turn = subscribe(None);
    let host = toy::host();
    let trustees = Trustees::dedicated(1)
        .name("ring")
        .host(host)
        .start()
        .unwrap();
    let (a, b) = (
        trustees.entrust(0u64).named("ring a"),
        trustees.entrust(0u8).named("ring b"),
    );
    let to_a = a.clone();
    let told = || {
        let mut told = lock(&TOLD).clone();
        told.retain(|t| t.target == "corelay::circular_wait" && t.get("objects").contains("ring "));
        told
    };
    // A closure that waits for its own object.
    let own = a.launch(move |_| matches!(to_a.try_apply(|_| ()), Err(TryApplyError::Circular(_))));
    assert!(own.join().unwrap());
    assert_eq!(told().len(), 1, "{:?}", told());
    assert_eq!(told()[0].get("objects"), "\"ring a\" (u64)");
    assert_eq!(told()[0].level, Some(Level::ERROR));
    // A join of a closure that waits for the joiner's object already.
    let (to_a, other) = (a.clone(), trustees.entrust(()));
    let first = a.launch(move |_| {
        let second = b.launch(move |_| to_a.try_apply(|_| ()).is_ok());
        // Lets the other closure run, and its request be deferred.
        (0..100).for_each(|_| other.apply(|()| ()));
        matches!(second.join(), Err(AsyncError::Circular(_)))
    });
    assert!(first.join().unwrap());
    assert_eq!(told().len(), 2, "{:?}", told());
    assert!(
        told()[1].get("objects").contains("\"ring b\" (u8)"),
        "{:?}",
        told()
    );
}

/// A subscriber that panics harms nobody, wherever it is called.
#[test]
fn a_subscriber_that_panics_is_contained() {
    let _watch = watchdog();
    let _turn = subscribe(Some(|_| panic!("a subscriber's own")));
    let trustees = Trustees::dedicated(1)
        .name("panic")
        .window(4)
        .observe(true)
        .slow(Duration::ZERO)
        .start()
        .unwrap();
    let t = trustees.entrust(0u64);
    fail_in_each_way(&t);
    let before = t.apply(|n| *n);
    t.post(|_| std::thread::sleep(Duration::from_millis(5)));
    (0..100).for_each(|_| t.post(|n| *n += 1));
    barrier().unwrap();
    assert_eq!(t.apply(|n| *n), before + 100);
    assert!(!told("corelay::poisoned", "panic-0").is_empty());
    assert!(!told("corelay::wait_for_room", "panic-0").is_empty());
    assert!(!told("corelay::slow_closure", "panic-0").is_empty());
    let builder = Trustees::flat(1).name("team").observe(true);
    let team = builder.slow(Duration::ZERO).start().unwrap();
    let t = team.entrust(0u64);
    team.run(|_| fail_in_each_way(&t));
    while told("corelay::slow_closure", "team-0").is_empty() {
        t.post(|n| *n += 1);
        team.run(|me| _ = me.serve());
        barrier().unwrap();
    }
}

static GATE: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());

/// A subscriber that blocks holds up the trustee that tells it, and that trustee alone.
#[test]
fn a_subscriber_that_blocks_holds_up_its_trustee() {
    let _watch = watchdog();
    let _turn = subscribe(Some(|_| {
        let open = lock(&GATE.0);
        drop(GATE.1.wait_while(open, |open| !*open));
    }));
    let trustees = Trustees::dedicated(2).name("block").start().unwrap();
    let (held_up, free) = (trustees.entrust_on(0, 0u64), trustees.entrust_on(1, 0u64));
    held_up.post(|n| _ = fail(n));
    while told("corelay::poisoned", "block-0").is_empty() {
        std::thread::yield_now();
    }
    assert_eq!(free.apply(|n| *n), 0);
    let other = held_up.clone();
    let waits = std::thread::spawn(move || other.try_apply(|n| *n).is_ok());
    std::thread::sleep(Duration::from_millis(20));
    assert!(!waits.is_finished());
    *lock(&GATE.0) = true;
    GATE.1.notify_all();
    assert!(!waits.join().unwrap());
    assert!(barrier().is_err());
}

static LOG: Mutex<Option<Trust<Vec<String>>>> = Mutex::new(None);

/// A subscriber that calls corelay: what it posts arrives, and on a trustee its waits are refused,
/// so that nothing hangs.
#[test]
fn a_subscriber_may_post_and_not_wait() {
    let _watch = watchdog();
    let logger = Trustees::dedicated(1).name("log").start().unwrap();
    *lock(&LOG) = Some(logger.entrust(Vec::new()));
    let _turn = subscribe(Some(|told| {
        let log = lock(&LOG).clone().expect("set before");
        let target = told.target;
        log.post(move |log| log.push(target.to_owned()));
        if told.target != "corelay::wait_for_room" {
            let waited = log.try_apply(|_| ());
            let said = match waited {
                Err(TryApplyError::Nested(_)) => "refused",
                _ => "waited",
            };
            log.post(move |log| log.push(said.to_owned()));
        }
        // A client is retired only when nothing uses it.
        drop(ClientGuard::new());
    }));
    let trustees = Trustees::dedicated(1)
        .name("calls")
        .window(4)
        .observe(true)
        .slow(Duration::from_millis(1))
        .start()
        .unwrap();
    let t = trustees.entrust(0u64);
    fail_in_each_way(&t);
    t.post(|_| std::thread::sleep(Duration::from_millis(5)));
    (0..100).for_each(|_| t.post(|n| *n += 1));
    barrier().unwrap();
    // The last event of a trustee that gets no other request: its post is sent nevertheless.
    let slow = || told("corelay::slow_closure", "calls-0").len();
    let before = slow();
    while slow() == before {
        t.post(|_| std::thread::sleep(Duration::from_millis(2)));
        barrier().unwrap();
    }
    let logged = |log: &mut Vec<String>| {
        let slow = log.iter().filter(|line| *line == "corelay::slow_closure");
        slow.count()
    };
    while lock(&LOG).clone().expect("set above").apply(logged) < slow() {
        std::thread::yield_now();
    }
    trustees.shutdown();
    let team = Trustees::flat(2).name("calls").start().unwrap();
    let objects = [team.entrust_on(0, 0u64), team.entrust_on(1, 0u64)];
    team.run(|me| {
        fail_in_each_way(&objects[me.number()]);
    });
    let is_done = AtomicBool::new(false);
    team.run(|me| {
        if me.number() == 0 {
            fail_in_each_way(&objects[1]);
            is_done.store(true, Ordering::Release);
        }
        while !is_done.load(Ordering::Acquire) {
            me.serve();
        }
    });
    drop(team);
    let log = lock(&LOG).take().expect("set above");
    let noted = log.apply(std::mem::take);
    let count = |of: &str| noted.iter().filter(|line| *line == of).count();
    assert!(count("corelay::poisoned") >= 6, "{noted:?}");
    assert!(count("corelay::wait_for_room") >= 1, "{noted:?}");
    assert!(count("refused") >= 6 && count("waited") == 0, "{noted:?}");
}
