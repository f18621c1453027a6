//! Reports: their contents, and that nobody waits for them.

use crate::support::{
    Gate, hold_up, hold_up_from_elsewhere, panic_of, scaled, start, until, watchdog,
};
use corelay_delegate::report::{ClientReport, State, TrusteeReport};
use corelay_delegate::{Builder, ClientGuard, Reporter, Trust, Trustees, barrier, poll};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

fn observed() -> Builder {
    Trustees::dedicated(1).observe(true)
}

/// The report on the only trustee.
fn only(trustees: &Trustees) -> TrusteeReport {
    let mut report = trustees.report();
    assert_eq!(report.trustees.len(), 1);
    report.trustees.remove(0)
}

/// The calling thread's client, by its name.
#[track_caller]
fn client<'a>(trustee: &'a TrusteeReport, name: &str) -> &'a ClientReport {
    let has_name = |client: &&ClientReport| client.name.as_deref() == Some(name);
    let found = trustee.clients.iter().find(has_name);
    found.unwrap_or_else(|| panic!("no {name} in {:?}", trustee.clients))
}

/// Names and types of the objects that have names.
fn named(trustee: &TrusteeReport) -> Vec<(&str, &str)> {
    let objects = trustee.objects.iter();
    objects
        .map(|object| (&*object.name, &*object.type_name))
        .collect()
}

fn unnamed(trustee: &TrusteeReport) -> Vec<(&str, usize)> {
    let types = trustee.unnamed.iter();
    types
        .map(|of_type| (&*of_type.type_name, of_type.count))
        .collect()
}

#[test]
fn objects_are_listed_by_name_or_counted_by_type() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(2).name("owner"));
    assert!(
        trustees
            .report()
            .trustees
            .iter()
            .all(|t| t.objects_owned() == 0)
    );

    let hits = trustees.entrust_on(0, 0u64).named("hits");
    let misses = trustees.entrust_on(0, 0u64);
    let words = trustees.entrust_on(0, vec![String::new()]);
    let many = trustees.entrust_all((0..100).map(|i| i % 2 == 0));
    let report = trustees.report();
    let [first, second] = &report.trustees[..] else {
        panic!("two trustees, not {report:?}");
    };
    assert_eq!((&*first.name, &*second.name), ("owner-0", "owner-1"));
    assert_eq!(named(first), [("hits", "u64")]);
    let vec = "alloc::vec::Vec<alloc::string::String>";
    assert_eq!(unnamed(first), [(vec, 1), ("bool", 50), ("u64", 1)]);
    assert_eq!(first.objects_owned(), 53);
    assert_eq!(
        (unnamed(second), second.objects_owned()),
        (vec![("bool", 50)], 50)
    );
    let text = report.to_string();
    for part in [
        "owns 53 objects",
        "\"hits\", u64",
        "50 without a name, bool",
    ] {
        assert!(text.contains(part), "{part:?} in\n{text}");
    }

    // Named late, through any handle, from anywhere; and named again.
    misses.clone().set_name("misses");
    let inner = hits.clone();
    hits.apply(move |_| inner.set_name("touches"));
    let from_elsewhere = words.clone();
    thread::spawn(move || from_elsewhere.set_name("words"))
        .join()
        .unwrap();
    let report = trustees.report();
    let all = [("words", vec), ("misses", "u64"), ("touches", "u64")];
    assert_eq!(named(&report.trustees[0]), all);

    // Names go with their objects, not with handles.
    let kept = hits.clone();
    drop((hits, misses, many));
    let gone = |trustees: &Trustees| {
        kept.apply(|_| ());
        trustees.report().trustees[0].objects_owned() == 2
    };
    until(|| gone(&trustees));
    let report = trustees.report();
    assert_eq!(
        named(&report.trustees[0]),
        [("words", vec), ("touches", "u64")]
    );
    assert!(unnamed(&report.trustees[0]).is_empty());
    until(|| trustees.report().trustees[1].objects_owned() == 0);
}

#[test]
fn clients_are_listed_while_they_are_there() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(1));
    let t = trustees.entrust(());
    let (stay, come) = (Gate::new(), Gate::new());
    let visitor = {
        let (t, stay, come) = (t.clone(), stay.clone(), come.clone());
        let visitor = thread::Builder::new().name("visitor".into());
        visitor.spawn(move || {
            t.apply(|()| ());
            come.open();
            stay.wait();
        })
    };
    come.wait();
    let trustee = only(&trustees);
    let own = thread::current().name().expect("of a test").to_owned();
    assert_eq!(client(&trustee, &own).queued, 0);
    assert_eq!(client(&trustee, "visitor").queued, 0);
    assert_eq!((trustee.clients.len(), trustee.gone), (2, 0));

    stay.open();
    visitor.unwrap().join().unwrap();
    let trustee = only(&trustees);
    assert_eq!((trustee.clients.len(), trustee.gone), (1, 1));

    // A name of one's own, for clients that are there and those to come.
    let other = start(Trustees::dedicated(1));
    drop(ClientGuard::named("renamed")); // ends the thread's clients, not its name
    t.apply(|()| ());
    let _client = ClientGuard::named("renamed again");
    other.entrust(());
    for trustees in [&trustees, &other] {
        let trustee = only(trustees);
        let names: Vec<_> = trustee.clients.iter().map(|c| c.name.as_deref()).collect();
        assert_eq!(names, [Some("renamed again")]);
    }

    let nameless = thread::spawn(move || {
        t.apply(|()| ());
        only(&trustees).clients.iter().any(|c| c.name.is_none())
    });
    assert!(nameless.join().unwrap());
}

/// A report on a trustee that stands in a closure comes at once, and counts the requests that wait.
#[test]
fn the_queue_of_a_blocked_trustee_is_reported() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(1).window(64));
    let _client = ClientGuard::named("busy");
    let t = trustees.entrust(0u64);
    let held = hold_up(&t);
    for n in 1..=20 {
        t.post(|n| *n += 1);
        assert_eq!(client(&only(&trustees), "busy").queued, n + 1);
    }
    // A mail call that waits.
    let caller = {
        let t = t.clone();
        thread::spawn(move || {
            let _client = ClientGuard::named("waiting");
            t.apply(|n| *n)
        })
    };
    until(|| {
        let trustee = only(&trustees);
        let mut clients = trustee.clients.iter();
        clients.any(|c| c.name.as_deref() == Some("waiting") && c.queued == 1)
    });
    assert_eq!(only(&trustees).state, State::Awake);
    assert!(trustees.report().to_string().contains("21 queued"));
    drop(held);
    barrier().unwrap();
    caller.join().unwrap();
    assert_eq!(client(&only(&trustees), "busy").queued, 0);
}

#[test]
fn polls_pops_and_failed_pushes_are_counted() {
    let _watch = watchdog();
    let trustees = start(observed().window(4));
    let _client = ClientGuard::named("client");
    let t = trustees.entrust(0u64);
    let counted = || {
        client(&only(&trustees), "client")
            .observed
            .expect("observed")
    };
    let before = counted();
    assert_eq!((before.polls, before.failed_pushes), (0, 0));
    assert_eq!(before.ready_rate(), None);

    let held = hold_up(&t);
    (0..3).for_each(|_| t.apply_then(|n| *n += 1, |()| ()));
    let asked = counted();
    assert_eq!(asked.failed_pushes, 0, "the window takes four");
    for _ in 0..5 {
        assert!(t.try_apply_then(|n| *n += 1, |()| ()).is_err());
    }
    assert!(t.try_post(|n| *n += 1).is_err());
    let full = counted();
    assert_eq!(full.failed_pushes, 6);
    let polled = counted().polls;
    (0..7).for_each(|_| poll());
    let stuck = counted();
    assert_eq!(stuck.polls, polled + 7);
    assert_eq!((stuck.ready, stuck.ready_rate()), (0, Some(0.0)));
    // A full window takes nothing from the queue.
    assert_eq!(stuck.pops, full.pops);
    assert_eq!(
        stuck.latencies, 0,
        "the first request is timed until it is answered"
    );

    drop(held);
    barrier().unwrap();
    let done = counted();
    assert!(done.ready > 0 && done.ready <= done.polls, "{done:?}");
    assert_eq!((done.failed_pushes, done.latencies), (6, 1));
    // The last poll has found the answer that was there by then.
    t.apply_then(|n| *n, |n| assert_eq!(n, 3));
    until(|| client(&only(&trustees), "client").queued == 0);
    poll();
    let last = counted();
    assert_eq!((last.polls, last.ready), (done.polls + 1, done.ready + 1));

    // Room for which there is no work.
    (0..7).for_each(|_| poll());
    let idle = counted();
    assert_eq!(idle.failed_pops - last.failed_pops, idle.pops - last.pops);
    assert!(idle.failed_pops >= last.failed_pops + 7, "{idle:?}");

    let text = trustees.report().to_string();
    assert!(text.contains(" failed pops, 6 failed pushes"), "{text}");
}

/// The same for a single request, which travels in the mail line.
#[test]
fn polls_for_a_single_request_are_counted() {
    let _watch = watchdog();
    let trustees = start(observed());
    let _client = ClientGuard::named("client");
    let t = trustees.entrust(0u64);
    let counted = || {
        client(&only(&trustees), "client")
            .observed
            .expect("observed")
    };
    let held = hold_up_from_elsewhere(&t);
    t.apply_then(|n| *n, |n| assert_eq!(n, 0));
    assert_eq!(client(&only(&trustees), "client").queued, 1);
    (0..5).for_each(|_| poll());
    assert_eq!((counted().polls, counted().ready), (5, 0));
    drop(held);
    until(|| client(&only(&trustees), "client").queued == 0);
    poll();
    assert_eq!((counted().polls, counted().ready), (6, 1));
    assert_eq!(counted().latencies, 1, "the first one is timed");
    poll();
    assert_eq!(counted().polls, 6, "nothing is waited for");
}

/// Single requests and streams; the sampled ones took at least as long as they were held up.
#[test]
fn latencies_are_sampled() {
    let _watch = watchdog();
    let held_up = Duration::from_millis(2);
    for window in [1, 256] {
        let trustees = start(observed().window(window));
        let _client = ClientGuard::named("client");
        let t = trustees.entrust(0u64);
        let held = hold_up(&t);
        // The first one is timed, whatever way it goes; with a window of one it waits.
        let opener = thread::spawn(move || {
            thread::sleep(held_up);
            let opened = Instant::now();
            drop(held);
            opened
        });
        t.apply_then(|n| *n += 1, |()| ());
        let asked = Instant::now();
        for _ in 1..1000 {
            t.apply_then(|n| *n += 1, |()| ());
        }
        barrier().unwrap();
        let opened = opener.join().unwrap();
        let counted = || {
            let observed = client(&only(&trustees), "client").observed;
            observed.expect("observed")
        };
        // How many of these leave the fast path, and so may be timed, depends on the client's pace.
        while counted().latencies < 2 {
            t.apply_then(|n| *n += 1, |()| ());
            barrier().unwrap();
        }
        let counted = counted();
        let mean = counted.latency_mean().expect("some are timed");
        assert!(mean <= counted.latency_longest && counted.latency_longest > Duration::ZERO);
        if window == 256 {
            // The client may have asked a while after the opener began to sleep.
            let held_up = opened.saturating_duration_since(asked);
            assert!(counted.latency_longest >= held_up, "{counted:?}");
        }
        assert!(counted.waits > 0, "{counted:?}");
    }
}

fn slow(_: &mut u64) {
    thread::sleep(Duration::from_millis(1));
}

fn quick(n: &mut u64) {
    *n += 1;
}

/// A slow closure is found whichever way it comes, among many quick ones.
#[test]
fn slow_closures_are_named() {
    let _watch = watchdog();
    for alone in [true, false] {
        let trustees = start(observed());
        let t = trustees.entrust(0u64);
        let slowness = || {
            let trustee = only(&trustees);
            let observed = trustee.observed.expect("observed");
            let slowest = observed.slowest;
            assert!(slowest.is_sorted_by_key(|c| std::cmp::Reverse(c.mean())));
            slowest.into_iter().find(|c| c.name.ends_with("::slow"))
        };
        let found = loop {
            for _ in 0..20 {
                if alone {
                    t.apply(slow);
                    t.apply(quick);
                } else {
                    t.post(slow);
                    t.post(quick);
                }
            }
            barrier().unwrap();
            // A batch may have twenty of them; of batches that take so long each is timed.
            match slowness() {
                Some(found) if found.samples >= 50 => break found,
                _ => {}
            }
        };
        assert!(found.mean() >= Duration::from_millis(1), "{found:?}");
        assert!(found.longest >= found.mean() && found.samples > 0);
        let text = trustees.report().to_string();
        assert!(text.contains(&*found.name), "{text}");
    }
}

/// Requests run in their order and with their results while some of them are timed, including those
/// that panic, that make requests, and that come in growing rings.
#[test]
fn being_observed_changes_nothing() {
    let _watch = watchdog();
    for batch in [1, 7, 128] {
        let trustees = start(observed().batch(batch).origin(u32::MAX - 40, u32::MAX - 40));
        let (t, echo) = (trustees.entrust(Vec::new()), trustees.entrust(0u64));
        let rounds = scaled(2_000);
        let mut failed = 0;
        for i in 0..rounds {
            t.apply_then(move |log| log.push(i), |()| ());
            t.post(move |log| assert_eq!(log.pop(), Some(i)));
            let inner = echo.clone();
            t.post(move |_| inner.post(|n| *n += 1));
            if i % 97 == 0 {
                let doomed = trustees.entrust(());
                doomed.post(|()| panic!("on purpose"));
                doomed.post(|()| unreachable!("poisoned"));
                failed += 2;
            }
        }
        assert_eq!(barrier().unwrap_err().count(), failed);
        assert_eq!(t.apply(|log| log.len()), 0);
        assert_eq!(echo.apply(|n| *n), rounds);
        assert!(only(&trustees).observed.expect("observed").samples > 0);
    }
}

#[test]
fn figures_that_are_not_observed_are_absent() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(1));
    let t = trustees.entrust(0u64);
    (0..1000).for_each(|_| t.apply_then(|n| *n += 1, |()| ()));
    barrier().unwrap();
    let trustee = only(&trustees);
    assert_eq!(trustee.observed, None);
    assert!(
        trustee
            .clients
            .iter()
            .all(|c| c.observed.is_none() && c.places.is_none())
    );
    let text = trustees.report().to_string();
    assert!(text.contains("not observed (Builder::observe)"), "{text}");
    let json: Value = serde_json::from_str(&trustees.report().to_json()).expect("JSON");
    assert_eq!(json["trustees"][0]["observed"], Value::Null);
}

/// Counters come also from a trustee that has not idled since.
#[test]
fn a_busy_trustee_publishes_its_counters() {
    let _watch = watchdog();
    // One request per pass.
    let trustees = start(Trustees::dedicated(1).batch(1));
    let t = trustees.entrust(0u64);
    let first = hold_up(&t);
    let (reached, go_on) = (Gate::new(), Gate::new());
    for i in 0..200 {
        let (reached, go_on) = (reached.clone(), go_on.clone());
        t.post(move |n| {
            *n += 1;
            if i == 150 {
                reached.open();
                go_on.wait();
            }
        });
    }
    poll(); // publishes them all
    assert!(only(&trustees).metrics.requests < 10);
    drop(first);
    reached.wait();
    let trustee = only(&trustees);
    go_on.open();
    assert!(trustee.metrics.requests >= 60, "{:?}", trustee.metrics);
    let saturation = trustee.saturation().expect("passes");
    assert!(saturation > 0.0 && saturation <= 1.0);
    // About one: a batch with nothing but ring growth has none.
    let per_batch = trustee.requests_per_batch().expect("batches");
    assert!(per_batch > 0.5 && per_batch <= 2.0, "{per_batch}");
    barrier().unwrap();
}

#[test]
fn a_report_after_shutdown_is_complete() {
    let _watch = watchdog();
    let trustees = start(observed().name("late"));
    let reporter = trustees.reporter();
    assert_eq!(format!("{reporter:?}"), r#"Reporter(["late-0"])"#);
    let t = trustees.entrust(0u64).named("n");
    (0..10).for_each(|_| t.post(|n| *n += 1));
    let counted = trustees.shutdown();
    t.set_name("too late");
    let report = reporter.report();
    let late = &report.trustees[0];
    assert_eq!(late.state, State::ShutDown);
    assert_eq!(late.metrics, counted[0]);
    assert_eq!(late.objects_owned(), 0, "its values have been dropped");
    assert!(report.to_string().contains("late-0: shut down"), "{report}");
    // This thread lets go of its channel when it next makes a request.
    let other = start(Trustees::dedicated(1));
    other.entrust(());
    let report = reporter.report();
    assert_eq!(
        (report.trustees[0].clients.len(), report.trustees[0].gone),
        (0, 1)
    );
}

#[test]
fn a_report_sleeps_with_the_trustee() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(1).spin(Duration::ZERO));
    // The trustee counts the sleep when it sleeps already.
    until(|| only(&trustees).state == State::Asleep && only(&trustees).metrics.sleeps > 0);
    let sleeps = only(&trustees).metrics.sleeps;
    (0..100).for_each(|_| _ = trustees.report());
    assert_eq!(
        only(&trustees).metrics.sleeps,
        sleeps,
        "reports wake nobody"
    );
}

#[test]
fn a_report_inside_a_closure_is_refused() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(1));
    let t = trustees.entrust(());
    let text = panic_of(|| t.apply(|()| _ = trustees.report()));
    assert!(
        text.contains("Trustees::report") && text.contains("report.rs"),
        "{text}"
    );
    t.clear_poison();
    let reporter = trustees.reporter();
    let text = panic_of(|| t.apply(|()| _ = reporter.report()));
    assert!(text.contains("Reporter::report"), "{text}");
}

#[test]
fn to_json_is_valid_json() {
    let _watch = watchdog();
    let trustees = start(observed().name("a \"quoted\" \\ name\twith \u{1b}[1m ü"));
    let name = "line\nbreak \u{0} and \"quotes\"";
    let t = trustees.entrust(0u64).named(name);
    let _other = trustees.entrust(false);
    let _client = ClientGuard::named("c\\d");
    (0..100).for_each(|_| t.apply_then(|n| *n += 1, |()| ()));
    barrier().unwrap();
    until(|| only(&trustees).metrics.requests >= 100);

    let report = trustees.report();
    let json: Value = serde_json::from_str(&report.to_json()).expect("JSON");
    let trustee = &json["trustees"][0];
    assert_eq!(trustee["name"], "a \"quoted\" \\ name\twith \u{1b}[1m ü-0");
    assert_eq!(trustee["objects"][0]["name"], name);
    assert_eq!(trustee["objects"][0]["type_name"], "u64");
    assert_eq!(trustee["unnamed"][0]["count"], 1);
    assert_eq!(trustee["clients"][0]["name"], "c\\d");
    assert_eq!(trustee["clients"][0]["queued"], 0);
    let (metrics, made) = (&trustee["metrics"], &report.trustees[0].metrics);
    assert_eq!(metrics["requests"], made.requests);
    assert_eq!(metrics["passes_with_work"], made.passes_with_work);
    assert_eq!(metrics["rings"], made.rings);
    assert_near(&trustee["saturation"], report.trustees[0].saturation());
    let observed = report.trustees[0].clients[0].observed.expect("observed");
    let counts = &trustee["clients"][0]["observed"];
    assert_near(&counts["ready_rate"], observed.ready_rate());
    let longest = observed.latency_longest.as_nanos() as u64;
    assert_eq!(counts["latency_longest_ns"], longest);
    let slowest = &trustee["observed"]["slowest"][0];
    assert!(slowest["mean_ns"].is_u64() && slowest["samples"].is_u64());
    assert!(trustee["observed"]["samples"].as_u64() > Some(0));
    assert_eq!(json["nodes"].as_u64(), report.nodes.map(|n| n as u64));
}

/// Asserts that they are equal, to the parser's precision.
#[track_caller]
fn assert_near(json: &Value, figure: Option<f64>) {
    let (read, figure) = (json.as_f64().expect("a number"), figure.expect("a figure"));
    assert!((read - figure).abs() < 1e-9, "{read} and {figure}");
}

/// On a machine with one node the kernel is not asked, and the report says that there is one.
#[test]
fn one_node_is_called_one_node() {
    let _watch = watchdog();
    let trustees = start(observed());
    let _t = trustees.entrust(0u64).named("n");
    let report = trustees.report();
    assert_eq!(report.nodes, corelay_topology::memory_nodes());
    let trustee = &report.trustees[0];
    let said = report.to_string();
    match report.nodes {
        Some(1) => assert!(said.ends_with("memory: one node\n"), "{said}"),
        Some(n) => assert!(said.ends_with(&format!("memory: {n} nodes\n")), "{said}"),
        None => assert!(said.contains("does not say"), "{said}"),
    }
    if report.nodes.is_none_or(|nodes| nodes == 1) {
        assert_eq!(trustee.objects[0].node, None);
        assert!(
            trustee
                .clients
                .iter()
                .all(|c| c.node.is_none() && c.places.is_none())
        );
    }
}

/// Clients and objects come and go while reports are made: nobody waits, nothing is lost.
#[test]
fn reports_hold_nobody_up() {
    let _watch = watchdog();
    let trustees = start(Trustees::dedicated(2).observe(true));
    let total = trustees.entrust(0u64).named("total");
    let (rounds, visitors) = (scaled(50), 3);
    let over = AtomicBool::new(false);
    thread::scope(|s| {
        let watcher = s.spawn(|| watch(trustees.reporter(), &over));
        let visitors: Vec<_> = (0..visitors)
            .map(|_| s.spawn(|| (0..rounds).for_each(|i| visit(&trustees, &total, i))))
            .collect();
        for visitor in visitors {
            visitor.join().expect("no panic");
        }
        over.store(true, Ordering::Relaxed);
        assert!(watcher.join().expect("no panic") > 0);
    });
    assert_eq!(total.apply(|n| *n), rounds * visitors * 20);
    until(|| {
        let report = trustees.report();
        let owned = report.trustees.iter().map(|t| t.objects_owned());
        owned.sum::<usize>() == 1
    });
    let report = trustees.report();
    let gone: u64 = report.trustees.iter().map(|t| t.gone).sum();
    assert_eq!(
        gone,
        rounds * visitors * 2,
        "a client per thread and trustee"
    );
    let polls = |t: &TrusteeReport| t.observed.as_ref().expect("observed").gone.polls;
    assert!(report.trustees.iter().map(polls).sum::<u64>() > 0);
}

fn visit(trustees: &Trustees, total: &Trust<u64>, i: u64) {
    thread::scope(|s| {
        s.spawn(|| {
            let _client = ClientGuard::named(&format!("visitor {i}"));
            let own = [
                trustees.entrust_on(0, i).named("own"),
                trustees.entrust_on(1, i),
            ];
            for t in &own {
                (0..10).for_each(|_| {
                    t.apply_then(|n| *n, |_| ());
                    total.post(|n| *n += 1);
                });
            }
            barrier().expect("no panic");
        });
    });
}

/// Makes reports until it is over. Returns their number.
fn watch(reporter: Reporter, over: &AtomicBool) -> u64 {
    let mut reports = 0;
    while !over.load(Ordering::Relaxed) {
        let report = reporter.report();
        for trustee in &report.trustees {
            assert!(
                trustee
                    .clients
                    .iter()
                    .all(|c| c.queued <= trustee.window + 1)
            );
        }
        let json = report.to_json();
        serde_json::from_str::<Value>(&json).expect("JSON");
        reports += 1;
    }
    reports
}
