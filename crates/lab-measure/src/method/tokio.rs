//! An actor on Tokio: requests through `mpsc`, each answer through a `oneshot`, 64 client tasks.
//!
//! The runtime's workers are the counted threads, each pinned to its CPU; Tokio moves the tasks
//! among them as it likes. No answer channel is reused: programs usually make a `oneshot` per
//! call.
//!
//! Tuning: the actor takes all waiting requests at once (`recv_many`), and the queue is unbounded,
//! as the tasks bound it already. One runtime of many workers was three times as fast as a runtime
//! per thread with the actor on its own, where every wake-up goes through the kernel.
//!
//! On a schedule there is one generator task for each worker but the actor's. It reads the clock,
//! yields to the runtime between two reads (the runtime's own timer counts in milliseconds), and
//! spawns a task for each operation that is due, as a server does for a request. It waits while a
//! whole window of its tasks is in flight.

use crate::measure::tally::Tally;
use crate::method::{Contender, Kind, Method};
use crate::workload::latency::{Clock, Generator, Look, Tallies, WallClock};
use crate::workload::operation::{Aligned, Answer, AnswerOf, Operation, Workload};
use crate::workload::point::Point;
use crate::workload::random::Client;
use crate::workload::worker::Worker;
use corelay_sync::facade::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::future::Future;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// The method `tokio`. On a schedule, each generator has up to a window of operations in flight.
pub const fn method<W: Workload>() -> Method<W> {
    Method {
        window_on_schedule: Some(0),
        bytes_per_var: size_of::<Aligned<W::Object>>() as u64,
        ..Method::new("tokio", Kind::Direct, |workload, point, _| {
            Ok(Box::new(Tokio::start(workload, point)?))
        })
    }
}

/// The generator of this method's load: its generator tasks, which spawn nothing.
pub(super) const fn generator<W: Workload>() -> Method<W> {
    Method {
        name: "generator-tokio",
        build: |workload, point, _| {
            let tokio = Tokio::start(workload, point)?;
            let asks = false;
            Ok(Box::new(Tokio { asks, ..tokio }))
        },
        ..method()
    }
}

/// Number of client tasks.
pub(super) const TASKS: usize = 64;

enum Request<W: Workload> {
    Do(W::Operation, usize, oneshot::Sender<AnswerOf<W>>),
    Total(oneshot::Sender<Result<u64, String>>),
}

type Requests<W> = mpsc::UnboundedSender<Request<W>>;

struct Tokio<W: Workload> {
    workload: W,
    requests: Requests<W>,
    runtime: Runtime,
    /// Number of generator tasks, if operations arrive on a schedule.
    generators: usize,
    /// Operations in flight per generator.
    window: usize,
    /// Whether tasks send requests to the actor.
    asks: bool,
    /// Operations that were counted without a request, because `asks` is false.
    unasked: AtomicU64,
}

impl<W: Workload> Tokio<W> {
    fn start(workload: W, point: &Point) -> Result<Self, String> {
        let runtime = runtime(point, 0..point.threads)?;
        let (requests, inbox) = mpsc::unbounded_channel();
        runtime.spawn(serve(workload, inbox, point.vars_len()));
        Ok(Self {
            workload,
            requests,
            runtime,
            generators: (point.threads - 1).max(1),
            window: point.window,
            asks: true,
            unasked: AtomicU64::new(0),
        })
    }
}

/// A runtime whose workers stand for these threads of the point, each pinned to its CPU.
pub(super) fn runtime(point: &Point, threads: Range<usize>) -> Result<Runtime, String> {
    let (placement, next) = (
        Arc::clone(&point.placement),
        AtomicUsize::new(threads.start),
    );
    Builder::new_multi_thread()
        .worker_threads(threads.len())
        .thread_name("tokio-worker")
        .on_thread_start(move || {
            // Relaxed: the number only has to be unique.
            let worker = next.fetch_add(1, Ordering::Relaxed);
            // The crew's threads have the same CPUs and report a failure to pin.
            let cpu = placement.get(worker).copied().flatten();
            let _ = cpu.map(corelay_topology::pin_current_thread);
        })
        .build()
        .map_err(|error| format!("the Tokio runtime could not be started: {error}"))
}

/// The actor's task; ends when all senders are dropped.
async fn serve<W: Workload>(
    workload: W,
    mut inbox: mpsc::UnboundedReceiver<Request<W>>,
    vars: usize,
) {
    let mut variables: Vec<Aligned<W::Object>> =
        (0..vars).map(|_| Aligned(workload.object())).collect();
    let mut batch = Vec::with_capacity(TASKS);
    while inbox.recv_many(&mut batch, TASKS).await > 0 {
        for request in batch.drain(..) {
            // The task that sent the request waits for the answer, so the receiver exists.
            match request {
                Request::Do(operation, var, answer) => {
                    let _ = answer.send(operation.run(&mut variables[var].0));
                }
                Request::Total(answer) => {
                    let _ = answer.send(variables.iter().map(|v| workload.check(&v.0)).sum());
                }
            }
        }
    }
}

/// A client task in the closed loop, which awaits each answer of `ask`; returns the number of its
/// operations.
pub(super) async fn call<W: Workload, F: Future<Output = AnswerOf<W>>>(
    workload: W,
    mut client: Client,
    ask: impl Fn(usize, W::Operation) -> F,
) -> u64 {
    if let Some(worker) = workload.worker(&client) {
        return work(worker, ask).await;
    }
    let mut next = client.requests(workload);
    let (mut done, mut sum) = (0, 0u64);
    loop {
        let (var, operation) = next(client.choose());
        sum = sum.wrapping_add(ask(var, operation).await.number());
        done += 1;
        if client.stopped() {
            break;
        }
    }
    std::hint::black_box(sum);
    done
}

/// A client task that is a worker; returns the number of its requests. The same loop as
/// [`call_each`](crate::workload::worker::call_each), but it awaits each answer.
async fn work<O, A: Answer, F: Future<Output = A>>(
    mut worker: Box<dyn Worker<O>>,
    ask: impl Fn(usize, O) -> F,
) -> u64 {
    let mut asked = 0;
    loop {
        let request = worker.ask();
        let is_idle = request.is_none();
        if let Some(request) = request {
            let answer = ask(request.var, request.operation).await;
            asked += 1;
            worker.answered(answer.number());
        }
        if !worker.work() && is_idle {
            return asked;
        }
    }
}

/// Runs client tasks on a runtime until all have ended; returns the sum of their results.
pub(super) fn run_all<F>(runtime: &Runtime, tasks: impl Iterator<Item = F>) -> u64
where
    F: Future<Output = u64> + Send + 'static,
{
    let tasks: Vec<JoinHandle<u64>> = tasks.map(|task| runtime.spawn(task)).collect();
    runtime.block_on(async {
        let mut done = 0;
        for task in tasks {
            done += task.await.expect("a client task does not panic");
        }
        done
    })
}

/// The number of a generator's operations in flight, and the latencies of those answered.
struct Flights {
    operations: AtomicUsize,
    tally: Mutex<Tally>,
}

/// An operation in flight, until it is dropped. If its task panics the drop still counts, so the
/// generator does not wait for it for ever.
struct InFlight(Arc<Flights>);

impl InFlight {
    #[inline]
    fn new(flights: &Arc<Flights>) -> Self {
        // Relaxed: this thread spawns the operation afterwards.
        flights.operations.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(flights))
    }

    #[inline]
    fn answered(self, latency_ns: u64) {
        // No thread panics while it holds the lock.
        let mut tally = self.0.tally.lock().unwrap_or_else(PoisonError::into_inner);
        tally.answer(latency_ns);
    }
}

impl Drop for InFlight {
    #[inline]
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `generate`; at 0 the tally is complete.
        self.0.operations.fetch_sub(1, Ordering::Release);
    }
}

/// Spawns an operation whenever one is due; without `requests` it does nothing instead. Returns
/// the number of operations.
async fn generate<W: Workload>(
    workload: W,
    (mut generator, mut client): (Generator<WallClock>, Client),
    requests: Option<Requests<W>>,
    window: usize,
    tallies: Tallies,
) -> u64 {
    let mut next = client.requests(workload);
    let flights = Arc::new(Flights {
        operations: AtomicUsize::new(0),
        tally: Mutex::default(),
    });
    // Acquire: pairs with the Release in the drop of `InFlight`; carries the tally.
    let in_flight = |flights: &Flights| flights.operations.load(Ordering::Acquire);
    loop {
        if in_flight(&flights) >= window {
            tokio::task::yield_now().await;
            continue;
        }
        match generator.look() {
            Look::Due(due) => {
                let (var, operation) = next(client.choose());
                let Some(requests) = requests.clone() else {
                    std::hint::black_box((operation, var));
                    generator.answered(due);
                    continue;
                };
                let (clock, flight) = (generator.clock, InFlight::new(&flights));
                tokio::spawn(async move {
                    std::hint::black_box(ask::<W>(&requests, operation, var).await.number());
                    flight.answered(clock.now() - due);
                });
            }
            Look::Early(_) => tokio::task::yield_now().await,
            Look::Over => break,
        }
    }
    while in_flight(&flights) > 0 {
        tokio::task::yield_now().await;
    }
    let mut tally = flights.tally.lock().unwrap_or_else(PoisonError::into_inner);
    let answers = std::mem::take(&mut *tally);
    tallies.put(&generator.tally);
    tallies.put(&answers);
    generator.tally.issued
}

/// Sends a request to the actor; the future is its answer.
fn ask<W: Workload>(
    requests: &Requests<W>,
    operation: W::Operation,
    var: usize,
) -> impl Future<Output = AnswerOf<W>> + Send + 'static + use<W> {
    let (send, answer) = oneshot::channel();
    let sent = requests.send(Request::Do(operation, var, send));
    assert!(
        sent.is_ok(),
        "the actor serves until its contender is dropped"
    );
    async { answer.await.expect("the actor answers every request") }
}

impl<W: Workload> Tokio<W> {
    fn on_schedule(&self, client: Client) -> u64 {
        let requests = self.asks.then(|| self.requests.clone());
        let (generators, tallies) = client.into_generators(self.generators);
        let task = |client| {
            let (requests, tallies) = (requests.clone(), tallies.clone());
            generate(self.workload, client, requests, self.window, tallies)
        };
        let done = run_all(&self.runtime, generators.into_iter().map(task));
        if !self.asks {
            // Relaxed: read after the clients have been joined.
            self.unasked.fetch_add(done, Ordering::Relaxed);
        }
        done
    }
}

impl<W: Workload> Contender for Tokio<W> {
    /// One thread of the crew, which sleeps while it waits for the tasks.
    fn clients(&self) -> Range<usize> {
        0..1
    }

    fn client(&self, client: Client) -> u64 {
        if client.has_schedule() {
            return self.on_schedule(client);
        }
        let task = |client| {
            let requests = self.requests.clone();
            let ask = move |var, operation| ask::<W>(&requests, operation, var);
            call(self.workload, client, ask)
        };
        run_all(&self.runtime, client.split(TASKS).map(task))
    }

    fn total(&self) -> Result<u64, String> {
        let (send, answer) = oneshot::channel();
        let asked = self.requests.send(Request::Total(send));
        let total = asked.ok().and_then(|()| answer.blocking_recv().ok());
        let total = total.unwrap_or_else(|| Err("the actor has ended".to_owned()))?;
        // Relaxed: the clients have been joined.
        Ok(total + self.unasked.load(Ordering::Relaxed))
    }
}
