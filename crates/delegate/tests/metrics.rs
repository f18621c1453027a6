//! Reports as figures of the crate `metrics`.
#![cfg(not(any(corelay_loom, corelay_shuttle)))]

use corelay_delegate::{Trustees, barrier, name, report};
use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, Key, KeyName, Metadata, Recorder, SharedString,
    Unit, with_local_recorder,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[path = "watch/mod.rs"]
mod watch;

use watch::watchdog;

/// A recorder that keeps the figures by name and labels.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Figures>>);

#[derive(Default)]
struct Figures {
    values: BTreeMap<String, f64>,
    described: BTreeMap<String, (Option<Unit>, String)>,
}

struct Entry {
    kept: Kept,
    key: String,
}

impl Entry {
    fn of(kept: &Kept, key: &Key) -> Arc<Self> {
        let labels = key
            .labels()
            .map(|label| format!("{}={}", label.key(), label.value()));
        let key = format!("{} {}", key.name(), labels.collect::<Vec<_>>().join(" "));
        Arc::new(Self {
            kept: kept.clone(),
            key,
        })
    }

    fn set(&self, value: f64) {
        let mut figures = self.kept.0.lock().unwrap();
        figures.values.insert(self.key.clone(), value);
    }
}

impl CounterFn for Entry {
    fn increment(&self, _: u64) {
        unreachable!("totals are absolute")
    }

    fn absolute(&self, value: u64) {
        self.set(value as f64);
    }
}

impl GaugeFn for Entry {
    fn increment(&self, _: f64) {
        unreachable!("states are set")
    }

    fn decrement(&self, _: f64) {
        unreachable!("states are set")
    }

    fn set(&self, value: f64) {
        Self::set(self, value);
    }
}

impl Kept {
    fn describe(&self, name: &KeyName, unit: Option<Unit>, meaning: &str) {
        let described = (unit, meaning.to_owned());
        let mut figures = self.0.lock().unwrap();
        let earlier = figures
            .described
            .insert(name.as_str().to_owned(), described);
        assert!(earlier.is_none(), "{name:?} twice");
    }

    fn get(&self, key: &str) -> Option<f64> {
        self.0.lock().unwrap().values.get(key).copied()
    }
}

impl Recorder for Kept {
    fn describe_counter(&self, key: KeyName, unit: Option<Unit>, meaning: SharedString) {
        assert!(key.as_str().ends_with("_total"), "{key:?}");
        self.describe(&key, unit, &meaning);
    }

    fn describe_gauge(&self, key: KeyName, unit: Option<Unit>, meaning: SharedString) {
        self.describe(&key, unit, &meaning);
    }

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {
        unreachable!("there is none")
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(Entry::of(self, key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(Entry::of(self, key))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        unreachable!("there is none")
    }
}

/// Each figure of an observed trustee agrees with the report that it was read from.
#[test]
fn figures_are_those_of_the_report() {
    let _watch = watchdog();
    let builder = Trustees::dedicated(1).name("owner").window(4).observe(true);
    let trustees = builder.start().unwrap();
    let t = trustees.entrust(0u64).named("stock");
    let _other = trustees.entrust(0u8);
    t.post(|_| std::thread::sleep(Duration::from_millis(1)));
    (0..100).for_each(|_| t.apply_then(|n| *n += 1, |()| ()));
    std::thread::spawn({
        let t = t.clone();
        move || (0..100).for_each(|_| t.apply_then(|n| *n += 1, |()| ()))
    })
    .join()
    .unwrap();
    t.post(|_| panic!("on purpose"));
    assert!(barrier().is_err());
    t.clear_poison();
    let report = loop {
        t.request(name!("checkout")).apply(|n| *n += 1);
        let report = trustees.report();
        let observed = report.trustees[0].observed.as_ref().unwrap();
        // Published after the client that has ended.
        if observed
            .slowest
            .iter()
            .any(|closure| closure.name == "checkout")
            && report.trustees[0].gone == 1
            && report.trustees[0].metrics.panics == 1
        {
            break report;
        }
    };
    let kept = Kept::default();
    with_local_recorder(&kept, || report.record());
    let trustee = &report.trustees[0];
    let of = |name: &str| kept.get(&format!("corelay_{name} trustee=owner-0"));
    let (counted, observed) = (trustee.metrics, trustee.observed.as_ref().unwrap());
    let mut clients = observed.gone;
    let own = trustee.clients[0].observed.unwrap();
    clients.polls += own.polls;
    clients.ready += own.ready;
    clients.pops += own.pops;
    clients.failed_pops += own.failed_pops;
    clients.failed_pushes += own.failed_pushes;
    clients.waits += own.waits;
    clients.latencies += own.latencies;
    clients.latency_total += own.latency_total;
    for (name, total) in [
        ("requests_total", counted.requests),
        ("batches_total", counted.batches),
        ("passes_total", counted.passes),
        ("passes_with_work_total", counted.passes_with_work),
        ("sleeps_total", counted.sleeps),
        ("rings_total", 0),
        ("panics_total", 1),
        ("clients_gone_total", 1),
        ("samples_total", observed.samples),
        ("polls_total", clients.polls),
        ("polls_ready_total", clients.ready),
        ("pops_total", clients.pops),
        ("pops_failed_total", clients.failed_pops),
        ("without_room_total", clients.failed_pushes),
        ("waits_total", clients.waits),
        ("latencies_total", clients.latencies),
        (
            "latency_nanoseconds_total",
            clients.latency_total.as_nanos() as u64,
        ),
        ("objects", 2),
        ("objects_held", 0),
        ("clients", 1),
        ("queued", 0),
        ("asleep", 0),
    ] {
        if name == "asleep" {
            assert!(matches!(of(name), Some(0.0 | 1.0)));
        } else {
            assert_eq!(of(name), Some(total as f64), "{name}");
        }
    }
    assert!(
        clients.failed_pushes > 0
            && clients.pops > 0
            && clients.latencies > 0
            && counted.requests > 200
    );
    assert_eq!(of("busy_ratio"), trustee.saturation());
    let longest = observed.gone.latency_longest.max(own.latency_longest);
    assert_eq!(
        of("latency_longest_nanoseconds"),
        Some(longest.as_nanos() as f64)
    );
    for closure in &observed.slowest {
        let labels = format!("trustee=owner-0 closure={}", closure.name);
        let of = |name: &str| kept.get(&format!("corelay_closure_{name} {labels}"));
        assert_eq!(of("samples_total"), Some(closure.samples as f64));
        assert_eq!(
            of("nanoseconds_total"),
            Some(closure.total.as_nanos() as f64)
        );
        assert_eq!(
            of("longest_nanoseconds"),
            Some(closure.longest.as_nanos() as f64)
        );
    }
}

/// Figures that a report has not are not recorded as zeros.
#[test]
fn figures_that_are_not_there_are_left_out() {
    let _watch = watchdog();
    let trustees = Trustees::dedicated(1).name("silent").start().unwrap();
    let reporter = trustees.reporter();
    trustees.shutdown();
    let kept = Kept::default();
    with_local_recorder(&kept, || reporter.report().record());
    let of = |name: &str| kept.get(&format!("corelay_{name} trustee=silent-0"));
    assert_eq!((of("waits_total"), of("samples_total")), (None, None));
    assert_eq!((of("panics_total"), of("asleep")), (Some(0.0), Some(0.0)));
}

/// The guide lists each figure with its kind and unit.
#[test]
fn the_guide_lists_all_figures() {
    let kept = Kept::default();
    with_local_recorder(&kept, report::describe_metrics);
    let guide = include_str!("../../../docs/guide/watching.md");
    let figures = kept.0.lock().unwrap();
    assert_eq!(figures.described.len(), 27);
    for (name, (unit, meaning)) in &figures.described {
        let unit = match unit {
            Some(Unit::Count) => "count",
            Some(Unit::Nanoseconds) => "ns",
            other => panic!("{other:?}"),
        };
        let start = format!("| `{name}` | {unit} | ");
        assert!(
            guide.contains(&start),
            "the guide has no row that begins with {start}"
        );
        assert!(!meaning.is_empty() && !meaning.ends_with('.'));
    }
}
