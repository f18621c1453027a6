//! An actor on Tokio: requests through `mpsc`, each answer through a `oneshot`, 64 client
//! tasks.
//!
//! The runtime's workers are the threads that are counted, each pinned to its place; the
//! tasks wander among them as Tokio sees fit. There is no answer to reuse here: the
//! pattern that programs write makes a `oneshot` per call.
//!
//! Tuned: the actor takes what is there at once (`recv_many`), and the queue is unbounded,
//! for the tasks bound it already. One runtime of many workers was three times as quick as
//! a runtime per thread with the actor on its own, whose wake-ups go through the kernel.

use crate::method::{Contender, Kind, Method};
use crate::workload::fetch_add::{Counter, OBJECT_BYTES, Point};
use crate::workload::random::Client;
use corelay_sync::facade::atomic::{AtomicUsize, Ordering};
use std::ops::Range;
use std::sync::Arc;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, oneshot};

pub(crate) const METHOD: Method = Method {
    name: "tokio",
    kind: Kind::Direct,
    window: 1,
    bytes_per_var: OBJECT_BYTES as u64,
    build: |point, _| Ok(Box::new(Tokio::start(point)?)),
};

/// Client tasks.
const TASKS: usize = 64;

enum Request {
    Add(usize, oneshot::Sender<u64>),
    Total(oneshot::Sender<u64>),
}

struct Tokio {
    requests: mpsc::UnboundedSender<Request>,
    runtime: Runtime,
}

impl Tokio {
    fn start(point: &Point) -> Result<Self, String> {
        let (placement, next) = (Arc::clone(&point.placement), AtomicUsize::new(0));
        let runtime = Builder::new_multi_thread()
            .worker_threads(point.threads)
            .thread_name("tokio-worker")
            .on_thread_start(move || {
                // Relaxed: the number only has to be unique.
                let worker = next.fetch_add(1, Ordering::Relaxed);
                // The crew's threads have the same CPUs and report a failure to pin.
                let cpu = placement.get(worker).copied().flatten();
                let _ = cpu.map(corelay_topology::pin_current_thread);
            })
            .build()
            .map_err(|error| format!("the Tokio runtime could not be started: {error}"))?;
        let (requests, inbox) = mpsc::unbounded_channel();
        runtime.spawn(serve(inbox, point.vars_len()));
        Ok(Self { requests, runtime })
    }
}

async fn serve(mut inbox: mpsc::UnboundedReceiver<Request>, vars: usize) {
    let mut variables: Vec<Counter> = (0..vars).map(|_| Counter::default()).collect();
    let mut batch = Vec::with_capacity(TASKS);
    while inbox.recv_many(&mut batch, TASKS).await > 0 {
        for request in batch.drain(..) {
            // Whoever asked waits for the answer, so it is there.
            let _ = match request {
                Request::Add(var, answer) => answer.send(variables[var].add_one()),
                Request::Total(answer) => answer.send(variables.iter().map(|v| v.count).sum()),
            };
        }
    }
}

async fn call(mut client: Client, requests: mpsc::UnboundedSender<Request>) -> u64 {
    let (mut done, mut sum) = (0, 0u64);
    loop {
        let (send, answer) = oneshot::channel();
        let sent = requests.send(Request::Add(client.choose(), send));
        assert!(
            sent.is_ok(),
            "the actor serves until its contender is dropped"
        );
        sum = sum.wrapping_add(answer.await.expect("the actor answers every request"));
        done += 1;
        if client.stopped() {
            break;
        }
    }
    std::hint::black_box(sum);
    done
}

impl Contender for Tokio {
    /// One thread of the crew waits for the tasks; it sleeps meanwhile.
    fn clients(&self) -> Range<usize> {
        0..1
    }

    fn client(&self, client: Client) -> u64 {
        let tasks: Vec<_> = client
            .split(TASKS)
            .map(|client| self.runtime.spawn(call(client, self.requests.clone())))
            .collect();
        self.runtime.block_on(async {
            let mut done = 0;
            for task in tasks {
                done += task.await.expect("a client task does not panic");
            }
            done
        })
    }

    fn total(&self) -> u64 {
        let (send, answer) = oneshot::channel();
        let asked = self.requests.send(Request::Total(send));
        asked
            .ok()
            .and_then(|()| answer.blocking_recv().ok())
            .unwrap_or(0)
    }
}
