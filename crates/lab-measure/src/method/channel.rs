//! An actor behind crossbeam channels: delegation as most programs have it today.
//!
//! One thread owns all variables and serves one channel. Each client has a channel of its own for
//! the answers, made once. A request is a plain value (no box, no dynamic call), so that nothing
//! but the channel is measured.
//!
//! * `channel`: one call at a time, as a function call would be.
//! * `channel-pipelined`: 64 calls outstanding.

use crate::method::{Contender, Kind, Method};
use crate::workload::operation::{Aligned, Answer, AnswerOf, Operation, Workload};
use crate::workload::point::Point;
use crate::workload::random::Client;
use crate::workload::worker::{issue_each, keep};
use corelay_sync::facade::hint;
use crossbeam_channel::{Receiver, RecvError, Sender, TryRecvError, bounded, unbounded};
use std::ops::Range;
use std::thread::JoinHandle;

/// The method `channel`.
pub(crate) const fn one<W: Workload>() -> Method<W> {
    method("channel", 1)
}
/// The method `channel-pipelined`.
pub const fn pipelined<W: Workload>() -> Method<W> {
    method("channel-pipelined", OUTSTANDING)
}

/// Calls outstanding per pipelined client.
const OUTSTANDING: usize = 64;

const fn method<W: Workload>(name: &'static str, window: usize) -> Method<W> {
    let build: super::Build<W> = if window == 1 {
        |workload, point, _| Ok(Box::new(Actor::start(workload, point, 1)?))
    } else {
        |workload, point, _| Ok(Box::new(Actor::start(workload, point, OUTSTANDING)?))
    };
    Method {
        window,
        bytes_per_var: size_of::<Aligned<W::Object>>() as u64,
        ..Method::new(name, Kind::Actor, build)
    }
}

/// A request to the actor.
enum Request<O> {
    /// Run the operation on the variable and answer the client.
    Do { operation: O, var: u32, client: u32 },
    /// Answer with the number of operations that all variables have seen.
    Total(Sender<Result<u64, String>>),
}

/// The actor's thread and its channels.
struct Actor<W: Workload> {
    workload: W,
    threads: usize,
    outstanding: usize,
    requests: Option<Sender<Request<W::Operation>>>,
    answers: Vec<Receiver<AnswerOf<W>>>,
    thread: Option<JoinHandle<()>>,
}

impl<W: Workload> Actor<W> {
    /// Starts the actor on the first CPU of the placement; it counts as one of the threads.
    fn start(workload: W, point: &Point, outstanding: usize) -> Result<Self, String> {
        let clients = point.threads - 1;
        let (requests, inbox) = channel(clients, outstanding);
        let (senders, answers) = (0..clients).map(|_| channel(1, outstanding)).unzip();
        let (vars, cpu) = (point.vars_len(), point.placement.first().copied().flatten());
        let thread = std::thread::Builder::new()
            .name("channel-actor".to_owned())
            .spawn(move || {
                // The crew's first thread has the same CPU and reports a failure to pin.
                let _ = cpu.map(corelay_topology::pin_current_thread);
                serve(workload, &inbox, senders, vars);
            })
            .map_err(|error| format!("the actor's thread could not be started: {error}"))?;
        let (requests, thread) = (Some(requests), Some(thread));
        Ok(Self {
            workload,
            threads: point.threads,
            outstanding,
            requests,
            answers,
            thread,
        })
    }

    fn requests(&self) -> &Sender<Request<W::Operation>> {
        self.requests
            .as_ref()
            .expect("the sender is taken only by drop")
    }
}

/// A channel for `senders` threads, each with up to `outstanding` messages; a send never waits.
///
/// The quicker kind for each case on the reference machine: for single calls linked blocks take
/// 0.7 times an array's time, for batches an array takes a third of theirs.
fn channel<T>(senders: usize, outstanding: usize) -> (Sender<T>, Receiver<T>) {
    if outstanding == 1 {
        unbounded()
    } else {
        bounded(senders * outstanding)
    }
}

/// The loop of the actor's thread; ends when all senders are dropped.
fn serve<W: Workload>(
    workload: W,
    inbox: &Receiver<Request<W::Operation>>,
    clients: Vec<Sender<AnswerOf<W>>>,
    vars: usize,
) {
    let mut variables: Vec<Aligned<W::Object>> =
        (0..vars).map(|_| Aligned(workload.object())).collect();
    while let Ok(request) = receive(inbox) {
        match request {
            Request::Do {
                operation,
                var,
                client,
            } => {
                let answer = operation.run(&mut variables[var as usize].0);
                // The client waits for this answer, so the receiver exists.
                let _ = clients[client as usize].send(answer);
            }
            Request::Total(answer) => {
                let _ = answer.send(variables.iter().map(|v| workload.check(&v.0)).sum());
            }
        }
    }
}

/// Tries before a receiver may sleep. They take some microseconds: more than a round trip, less
/// than falling asleep and being woken.
const TRIES: u32 = 256;

/// Receives, after spinning a little longer than the channel itself would before it sleeps.
#[inline]
fn receive<T>(channel: &Receiver<T>) -> Result<T, RecvError> {
    for _ in 0..TRIES {
        match channel.try_recv() {
            Ok(value) => return Ok(value),
            Err(TryRecvError::Disconnected) => return Err(RecvError),
            Err(TryRecvError::Empty) => hint::spin_loop(),
        }
    }
    channel.recv()
}

impl<W: Workload> Contender for Actor<W> {
    fn clients(&self) -> Range<usize> {
        1..self.threads
    }

    fn client(&self, mut client: Client) -> u64 {
        let (requests, answers) = (self.requests(), &self.answers[client.index]);
        let number = client.index as u32;
        let ask = |var: usize, operation| {
            let sent = requests.send(Request::Do {
                operation,
                var: var as u32,
                client: number,
            });
            sent.expect("the actor serves until its contender is dropped");
        };
        let answer = || receive(answers).expect("the actor serves until its contender is dropped");
        if self.outstanding == 1 {
            return client.call_each(self.workload, |var, operation| {
                ask(var, operation);
                answer().number()
            });
        }
        if let Some(mut worker) = self.workload.worker(&client) {
            return issue_each(&mut *worker, |request| match request {
                Some(request) => ask(request.var, request.operation),
                None => answers.try_iter().for_each(|answer| keep(answer.number())),
            });
        }
        let mut next = client.requests(self.workload);
        // Sending 64 requests and then receiving 64 answers takes a third of the time that keeping
        // 64 outstanding one by one takes (on the reference machine), as the lines of both sides
        // then move once per batch.
        let (mut done, mut sum) = (0u64, 0u64);
        loop {
            for _ in 0..self.outstanding {
                let (var, operation) = next(client.choose());
                ask(var, operation);
            }
            for _ in 0..self.outstanding {
                sum = sum.wrapping_add(answer().number());
            }
            done += self.outstanding as u64;
            if client.stopped() {
                break;
            }
        }
        std::hint::black_box(sum);
        done
    }

    fn total(&self) -> Result<u64, String> {
        let (send, answer) = bounded(1);
        let asked = self.requests().send(Request::Total(send));
        let total = asked.ok().and_then(|()| answer.recv().ok());
        total.unwrap_or_else(|| Err("the actor has ended".to_owned()))
    }
}

impl<W: Workload> Drop for Actor<W> {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            // If the actor panicked, the result was wrong already.
            let _ = thread.join();
        }
    }
}
