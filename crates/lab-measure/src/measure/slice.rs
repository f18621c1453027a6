//! One slice: the clients of a contender start together, run for a while, stop, and are counted.

use crate::measure::cpu::process_cpu_s;
use crate::measure::crew::Crew;
use crate::measure::tally::Tally;
use crate::method::Contender;
use crate::workload::latency::Arrivals;
use crate::workload::random::{Client, Distribution};
use corelay_sync::Backoff;
use corelay_sync::facade::atomic::{AtomicBool, AtomicUsize, Ordering};
use corelay_sync::trace::{self, Mark};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The trace mark of a slice, from the moment at which its clients may start.
static SAMPLE: Mark = Mark::new("sample").with_args("clients", "stream");

/// The result of one slice.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Slice {
    /// Operations by each client.
    pub(crate) per_thread: Vec<u64>,
    /// Time from the first client's start to the last one's end, in seconds.
    pub(crate) wall_s: f64,
    /// CPU time of the whole process meanwhile, in seconds; 0 if the system does not say.
    pub(crate) cpu_s: f64,
    /// The tally over all clients, if operations arrived on a schedule or were timed.
    pub(crate) tally: Option<Tally>,
}

impl Slice {
    /// Operations by all clients together.
    pub(crate) fn ops(&self) -> u64 {
        self.per_thread.iter().sum()
    }

    /// Throughput in Mops.
    pub(crate) fn mops(&self) -> f64 {
        self.ops() as f64 / self.wall_s / 1e6
    }
}

/// The barrier at which clients wait for the start of a slice, and their stop flag.
#[derive(Default)]
struct Gate {
    ready: AtomicUsize,
    open: AtomicBool,
    stop: Arc<AtomicBool>,
}

impl Gate {
    /// Reports a client as ready and waits until the gate opens.
    fn wait(&self) {
        // Release: pairs with the Acquire in `release`; carries the end of the client's set-up.
        self.ready.fetch_add(1, Ordering::Release);
        // Acquire: pairs with the Release in `release`.
        wait_until(|| self.open.load(Ordering::Acquire));
    }

    /// Opens the gate when all clients are ready; returns the CPU time used so far.
    fn release(&self, clients: usize) -> Option<f64> {
        // Acquire: pairs with the Release in `wait`.
        wait_until(|| self.ready.load(Ordering::Acquire) == clients);
        let cpu = process_cpu_s();
        // Release: pairs with the Acquire in `wait`; all clients are ready.
        self.open.store(true, Ordering::Release);
        cpu
    }
}

fn wait_until(done: impl Fn() -> bool) {
    let mut backoff = Backoff::new();
    while !done() {
        backoff.wait();
    }
}

/// Runs all clients of `contender` for `time`, or until `interrupted`; without a time, until they
/// end by themselves. With a `load` (operations
/// per second of all clients together), operations arrive on a schedule.
///
/// `stream` numbers the clients' random streams: each slice has its own.
///
/// # Errors
/// The message of a panic in a client.
pub(crate) fn run(
    crew: &Crew,
    contender: &Arc<dyn Contender>,
    draw: &Distribution,
    load: Option<u64>,
    stream: u64,
    time: Option<Duration>,
    interrupted: &AtomicBool,
) -> Result<Slice, String> {
    let members = contender.clients();
    let (clients, first) = (members.len(), members.start);
    let gate = Arc::new(Gate::default());
    let tallies: Arc<Mutex<Tally>> = Arc::default();
    let running = {
        let (load, tallies) = (
            load.map(|all| all as f64 / clients as f64),
            Arc::clone(&tallies),
        );
        let (gate, contender, draw) = (Arc::clone(&gate), Arc::clone(contender), draw.clone());
        crew.start(members, move |member| {
            let index = member - first;
            let arrivals = load.map(|load| Arrivals {
                schedule: draw.schedule(index, stream, load),
                tallies: Arc::clone(&tallies),
            });
            let client = Client::new(index, draw.stream(index, stream), Arc::clone(&gate.stop))
                .with_tallies(Arc::clone(&tallies))
                .with_arrivals(arrivals);
            gate.wait();
            let start = Instant::now();
            let ops = contender.client(client);
            (ops, start, Instant::now())
        })
    };
    let _span = trace::span(&SAMPLE).with((clients as u64, stream));
    let cpu_before = gate.release(clients);
    // Relaxed: the flag carries no data; results travel by the join.
    let stop = || gate.stop.store(true, Ordering::Relaxed);
    let ended = match time {
        Some(time) => {
            sleep(time, interrupted);
            stop();
            running.join()
        }
        None => running.join_with(NAP, || {
            // Relaxed: the flag carries no data.
            if interrupted.load(Ordering::Relaxed) {
                stop();
            }
        }),
    };
    let ended = ended.into_iter().collect::<Result<Vec<_>, _>>()?;
    let cpu_s = cpu_before
        .zip(process_cpu_s())
        .map_or(0.0, |(before, after)| after - before);
    let start = ended.iter().map(|e| e.1).min();
    let end = ended.iter().map(|e| e.2).max();
    let wall = start
        .zip(end)
        .map_or(Duration::ZERO, |(start, end)| end - start);
    let per_thread = ended.iter().map(|e| e.0).collect();
    // A client's panic was reported above, so a poisoned lock adds nothing.
    let tally = std::mem::take(&mut *tallies.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(Slice {
        per_thread,
        wall_s: wall.as_secs_f64().max(1e-9),
        cpu_s,
        tally: Some(tally).filter(|tally| load.is_some() || tally.answered() > 0),
    })
}

/// Longest wait before the interrupt flag is read again.
const NAP: Duration = Duration::from_millis(50);

/// Sleeps for `time`, or until `interrupted`.
fn sleep(time: Duration, interrupted: &AtomicBool) {
    let end = Instant::now() + time;
    // Relaxed: the flag carries no data.
    while !interrupted.load(Ordering::Relaxed) {
        let rest = end.saturating_duration_since(Instant::now());
        if rest.is_zero() {
            return;
        }
        std::thread::sleep(rest.min(NAP));
    }
}
