//! The events of trustees and clients in a recording.

#![cfg(not(any(corelay_loom, corelay_shuttle)))]

use corelay_delegate::{Builder, ClientGuard, Trust, Trustees, barrier};
use corelay_sync::trace::{Event, Limits, Recording, ThreadTrace, Trace};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Keeps other tests from recording: there is one recording in a process, and tests run side by
/// side.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn record(run: impl FnOnce()) -> Trace {
    let limits = Limits {
        events: 200_000,
        ..Limits::default()
    };
    let recording = Recording::start(limits).expect("one at a time");
    run();
    recording.stop()
}

/// Records a thread "asker" that makes requests to one trustee, from the trustee's beginning to its
/// end.
fn record_asker(trustees: Builder, ask: impl FnOnce(&Trust<u64>, &Trustees) + Send) -> Trace {
    record(|| {
        let trustees = trustees.start().unwrap();
        let hits = trustees.entrust(0u64);
        std::thread::scope(|s| {
            s.spawn(|| {
                let _client = ClientGuard::named("asker");
                ask(&hits, &trustees);
            });
        });
        drop(hits);
        trustees.shutdown();
    })
}

#[track_caller]
fn thread<'a>(trace: &'a Trace, name: &str) -> &'a ThreadTrace {
    let mut found = trace.threads.iter().filter(|thread| thread.name == name);
    let thread = found.next().unwrap_or_else(|| panic!("no thread {name}"));
    assert!(found.next().is_none(), "two threads {name}");
    assert_eq!(thread.overwritten(), 0, "{name}");
    thread
}

fn all<'a>(thread: &'a ThreadTrace, name: &str) -> Vec<&'a Event> {
    let events = thread.events.iter();
    events.filter(|event| event.mark.name() == name).collect()
}

/// The first numbers of all events of a name, together.
fn sum(thread: &ThreadTrace, name: &str) -> u64 {
    all(thread, name).iter().map(|event| event.args[0]).sum()
}

#[test]
fn passes_and_batches_have_all_requests_once() {
    let _turn = alone();
    const REQUESTS: u64 = 10_000;
    let builder = Trustees::dedicated(1).name("owner");
    let trace = record_asker(builder, |hits, _| {
        for _ in 0..REQUESTS {
            hits.apply_then(|h| *h += 1, |()| ());
        }
        barrier().unwrap();
    });
    let owner = thread(&trace, "owner-0");
    // One more request has given it the value.
    assert_eq!(sum(owner, "pass"), REQUESTS + 1);
    let asker = thread(&trace, "asker");
    // Single requests among them; the requests still in flight when the barrier comes count too.
    assert_eq!(sum(asker, "batch"), REQUESTS);
    assert_eq!(all(asker, "barrier").len(), 1);
    for (thread, begins, ends) in [
        (owner, "trustee begins", "trustee ends"),
        (asker, "client begins", "client ends"),
    ] {
        let (begin, end) = (all(thread, begins), all(thread, ends));
        assert_eq!((begin.len(), end.len()), (1, 1), "{begins}");
        assert!(begin[0].begin_ns <= end[0].begin_ns);
    }
    assert_eq!(
        all(owner, "trustee begins")[0].args,
        all(asker, "client begins")[0].args
    );
    assert_eq!(sum(owner, "trustee ends"), REQUESTS + 1);
}

#[test]
fn a_wait_for_an_answer_does_not_end_before_its_pass_begins() {
    let _turn = alone();
    let builder = Trustees::dedicated(1).name("owner");
    let trace = record_asker(builder, |hits, _| {
        hits.apply(|h| *h += 1);
        hits.apply(|_| std::thread::sleep(Duration::from_millis(10)));
    });
    let asker = thread(&trace, "asker");
    let waits = all(asker, "apply");
    assert_eq!(waits.len(), 2);
    assert!(waits.iter().all(|wait| wait.args[0] == 1), "one in flight");
    let passes = all(thread(&trace, "owner-0"), "pass");
    let slow = passes
        .iter()
        .find(|pass| pass.duration_ns >= Some(10_000_000));
    let slow = slow.expect("a pass with the slow closure");
    let end = |event: &Event| event.begin_ns + event.duration_ns.unwrap_or(0);
    assert!(slow.begin_ns <= end(waits[1]), "an answer before its pass");
}

#[test]
fn a_full_window_is_waited_for() {
    let _turn = alone();
    let builder = Trustees::dedicated(1).window(4);
    let trace = record_asker(builder, |hits, _| {
        (0..20).for_each(|_| hits.post(|_| std::thread::sleep(Duration::from_millis(2))));
        barrier().unwrap();
    });
    let waits = all(thread(&trace, "asker"), "wait for room").len();
    assert!(waits > 0);
}

#[test]
fn an_idle_trustee_sleeps_and_is_woken() {
    let _turn = alone();
    let builder = Trustees::dedicated(1).spin(Duration::ZERO);
    let trace = record_asker(builder, |hits, trustees| {
        for round in 1..=3 {
            hits.apply(|h| *h += 1);
            while trustees.metrics()[0].sleeps < round {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        hits.apply(|h| *h += 1);
    });
    let trustee = thread(&trace, "trustee-0");
    assert!(!all(trustee, "sleep").is_empty());
    assert!(!all(thread(&trace, "asker"), "wake one").is_empty());
}

#[test]
fn members_of_a_flat_team_serve_inside_their_functions() {
    let _turn = alone();
    let trace = record(|| {
        let team = Trustees::flat(2).start().unwrap();
        let counts = team.entrust_all([0u64; 2]);
        team.run(|_| {
            for _ in 0..100 {
                counts.iter().for_each(|count| count.apply(|n| *n += 1));
            }
        });
        drop(counts);
        drop(team);
    });
    for member in ["member-0", "member-1"] {
        let member = thread(&trace, member);
        let functions = all(member, "function");
        assert_eq!(functions.len(), 1);
        // A hundred requests of the other member; its own run at once.
        assert!(sum(member, "pass") >= 100);
        assert!(!all(member, "apply").is_empty());
    }
}
