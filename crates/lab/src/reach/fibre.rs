//! The targets of fibres: five benchmarks against Tokio, and the costs of fibres that do nothing.
//!
//! The targets hold for fibres that migrate, because Tokio's tasks migrate too. Fibres that stay on
//! their threads, which is what safe code gets, have a target only for `yield`; for the other
//! benchmarks their ratio is printed without one.

use super::Bound::{AtLeast, AtMost};
use super::Term::{Mops, Ns, NsOfBoth};
use super::{Area, Judgement, Target, judge};
use corelay::fibre::{Cluster, Semaphore, SpawnError, StartError, processor, spawn, yield_now};
use corelay_lab_bench::fibres::method::Method;
use corelay_lab_bench::fibres::spec::{Bench, Flavour, Length, RING, Spec};
use corelay_lab_measure::measure::cpu::process_cpu_s;
use corelay_lab_measure::measure::memory::resident_bytes;
use corelay_lab_measure::method::{fibres, lock, trust};
use corelay_lab_measure::schema::Run;
use corelay_sync::facade::atomic::{AtomicBool, AtomicU64, Ordering};
use std::hint::spin_loop;
use std::sync::Arc;
use std::time::{Duration, Instant};

const STAYING: &str = "corelay";
const MIGRATING: &str = "corelay-migrating";
const TOKIO: &str = "tokio";

/// Returns the area of fibres that call: 64 fibres of one thread call `apply` on one trustee. Its
/// targets bound a call's cost beyond its yield and its request, and its gain over a mutex that two
/// threads share.
pub(super) fn calls() -> Area {
    Area {
        methods: vec![
            fibres::method(),
            fibres::YIELDS,
            trust::then(),
            lock::mutex(),
        ],
        targets: vec![
            Target {
                what: "apply on 64 fibres / (yield + apply_then), time",
                top: Ns("trust-fibre"),
                bottom: NsOfBoth(&["yield-fibre", "trust-then"]),
                near: AtMost(1.25),
                far: AtMost(1.25),
            },
            Target {
                what: "apply on 64 fibres / mutex on 2 threads",
                top: Mops("trust-fibre"),
                bottom: Mops("mutex"),
                near: AtLeast(1.5),
                far: AtLeast(0.9),
            },
        ],
        threads: 2,
        vars: 1,
        window: 64,
    }
}

/// A benchmark at one size, on one number of processors.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    /// The size in the output: `hi`, `lo`, `share` or `no share`.
    pub size: &'static str,
    /// The benchmark and its parameters.
    pub spec: Spec,
}

/// Returns the runtimes whose fibres are measured.
///
/// # Errors
/// Never, because their names are known.
pub(crate) fn methods() -> Result<Vec<Method>, String> {
    let names = [STAYING, MIGRATING, TOKIO];
    names.into_iter().map(Method::named).collect()
}

/// Returns the benchmarks that have a target, on one processor and, if there are two CPUs, on two.
pub(crate) fn points(cpus: usize, slice: Duration) -> Vec<Point> {
    let mut points = Vec::new();
    for p in [1, 2].into_iter().filter(|&p| p <= cpus) {
        let locality = |share| Bench::Locality {
            spots: 100 * p - p,
            words: 64,
            touches: 64,
            share,
        };
        let benches = [
            ("hi", 100 * p, Bench::Cycle { ring: RING }),
            ("lo", p, Bench::Cycle { ring: RING }),
            ("hi", 100 * p, Bench::Yield),
            ("lo", p, Bench::Yield),
            ("hi", 100 * p, Bench::Churn { spots: 50 * p }),
            ("lo", 2 * p, Bench::Churn { spots: p }),
            ("share", 100 * p, locality(true)),
            ("no share", 100 * p, locality(false)),
        ];
        points.extend(benches.map(|(size, fibres, bench)| Point {
            size,
            spec: Spec {
                bench,
                processors: p,
                fibres,
                length: Length::Time(slice),
                seed: 1,
                chains: false,
            },
        }));
    }
    points
}

impl Point {
    /// Returns the point's heading in the output.
    pub(crate) fn name(&self) -> String {
        format!(
            "{} {}, p = {}",
            self.spec.bench, self.size, self.spec.processors
        )
    }

    /// Judges the samples of this point. Returns the targets, then the ratios without a target.
    pub(crate) fn judge(&self, runs: &[Run], blocks: usize) -> (Vec<Judgement>, Vec<Judgement>) {
        let most = match self.spec.bench {
            Bench::Locality { .. } => 0.75,
            _ => 0.6,
        };
        let target = |what, method| Target {
            what,
            top: Ns(method),
            bottom: Ns(TOKIO),
            near: AtMost(most),
            far: AtMost(most),
        };
        let migrating = target("migrating / tokio", MIGRATING);
        let staying = target("staying / tokio", STAYING);
        match self.spec.bench {
            Bench::Yield => (judge(&[migrating, staying], runs, blocks), vec![]),
            _ => (
                judge(&[migrating], runs, blocks),
                judge(&[staying], runs, blocks),
            ),
        }
    }
}

/// Runs `transfer` in both flavours with fibres that migrate, on two processors. Returns whether each
/// completes.
///
/// # Errors
/// A sentence that says what went wrong.
pub(crate) fn transfers() -> Result<Vec<(Flavour, bool)>, String> {
    let method = Method::named(MIGRATING)?;
    let flavours = [Flavour::Park, Flavour::Yield];
    let run = |flavour| {
        let spec = Spec {
            bench: Bench::Transfer { flavour },
            processors: 2,
            fibres: 200,
            length: Length::Iterations(500),
            seed: 1,
            chains: false,
        };
        let outcome = method.run(&spec, &AtomicBool::new(false));
        let outcome = outcome.map_err(|why| format!("transfer: {why:?}"))?;
        Ok((flavour, outcome.completed))
    };
    flavours.into_iter().map(run).collect()
}

/// Starts a cluster of `processors` processors.
#[allow(unsafe_code, reason = "a cluster is started with a promise")]
fn start(processors: usize) -> Result<Cluster, StartError> {
    // SAFETY: fibres run the closures of this file, which use no thread-locals of their own and
    // wait in semaphores and yields, none of them inside a thread-local's initialiser, destructor
    // or scope.
    unsafe { Cluster::builder().processors(processors).start() }
}

/// Measures the memory of a waiting fibre, in bytes: the mean over `fibres`, with guard pages and page
/// tables. Returns `None` if the system does not report memory, or no cluster can start.
///
/// # Errors
/// If there is no memory for so many fibres.
pub(crate) fn bytes_of_blocked(fibres: usize) -> Result<Option<f64>, SpawnError> {
    let Ok(cluster) = start(1) else {
        return Ok(None);
    };
    let door = Arc::new(Semaphore::new(0));
    let mut handles = Vec::with_capacity(fibres);
    let Some(before) = resident_bytes() else {
        return Ok(None);
    };
    for _ in 0..fibres {
        let door = Arc::clone(&door);
        handles.push(cluster.fibre().spawn(move || door.acquire())?);
    }
    // After as many switches as fibres, the last fibre waits too.
    let ready = |_: &_| cluster.counters().switches < fibres as u64;
    while ready(&()) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let after = resident_bytes();
    door.release_many(fibres as u32);
    for handle in handles {
        let _ = handle.join();
    }
    Ok(after.map(|after| after.saturating_sub(before) as f64 / fibres as f64))
}

/// Measures the CPU time of an idle cluster over `time`, as a share of wall time. Returns `None` if
/// the system does not report CPU time, or no cluster can start.
pub(crate) fn idle(time: Duration) -> Option<f64> {
    let cluster = start(2).ok()?;
    let _ = cluster.spawn(yield_now).join();
    // Its processors first look for work, then sleep.
    std::thread::sleep(Duration::from_millis(50));
    let (cpu, wall) = (process_cpu_s()?, Instant::now());
    std::thread::sleep(time);
    Some((process_cpu_s()? - cpu) / wall.elapsed().as_secs_f64())
}

/// Measures the milliseconds until a fibre first runs whose parent never yields, while the other
/// processor runs a fibre in slices of a millisecond. Returns the longest of `tries`, or `None` on
/// one CPU.
pub(crate) fn starved(tries: u32) -> Option<f64> {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return None;
    }
    let cluster = start(2).ok()?;
    let stop = Arc::new(AtomicBool::new(false));
    let busy = Arc::clone(&stop);
    let sliced = cluster.spawn(move || {
        // Relaxed: only a flag.
        while !busy.load(Ordering::Relaxed) {
            let until = Instant::now() + Duration::from_millis(1);
            while Instant::now() < until {
                spin_loop();
            }
            yield_now();
        }
    });
    let mut longest = 0.0_f64;
    for _ in 0..tries {
        let home = cluster.spawn(move || {
            let made = Instant::now();
            let ran_ns = Arc::new(AtomicU64::new(0));
            let told = Arc::clone(&ran_ns);
            let starved = spawn(move || {
                told.store(made.elapsed().as_nanos() as u64, Ordering::Relaxed);
                processor()
            });
            // Relaxed: only a flag.
            while ran_ns.load(Ordering::Relaxed) == 0 {
                spin_loop();
            }
            drop(starved);
            ran_ns.load(Ordering::Relaxed)
        });
        longest = longest.max(home.join().ok()? as f64 / 1e6);
    }
    stop.store(true, Ordering::Relaxed);
    let _ = sliced.join();
    Some(longest)
}
