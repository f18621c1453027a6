//! An actor behind crossbeam channels: delegation as most programs have it today.
//!
//! One thread owns all variables and serves one channel; each client has a channel
//! of its own for the answers, made once. A request is a plain value (no box, no dynamic
//! call), so that the channel is measured and nothing else.
//!
//! * `channel`: one call at a time, as a function call would be.
//! * `channel-pipelined`: 64 calls outstanding.

use crate::method::{Contender, Kind, Method};
use crate::workload::fetch_add::{Counter, OBJECT_BYTES, Point};
use crate::workload::random::Client;
use corelay_sync::facade::hint;
use crossbeam_channel::{Receiver, RecvError, Sender, TryRecvError, bounded, unbounded};
use std::ops::Range;
use std::thread::JoinHandle;

pub(crate) const ONE: Method = method("channel", 1);
pub(crate) const PIPELINED: Method = method("channel-pipelined", OUTSTANDING);

/// Calls outstanding of a pipelined client.
const OUTSTANDING: usize = 64;

const fn method(name: &'static str, window: usize) -> Method {
    let build: super::Build = if window == 1 {
        |point, _| Ok(Box::new(Actor::start(point, 1)?))
    } else {
        |point, _| Ok(Box::new(Actor::start(point, OUTSTANDING)?))
    };
    Method {
        name,
        kind: Kind::Actor,
        window,
        bytes_per_var: OBJECT_BYTES as u64,
        build,
    }
}

/// What a client asks for.
enum Request {
    /// Add one to the variable and answer the client with the old value.
    Add { var: u32, client: u32 },
    /// Answer with the sum of all variables.
    Total(Sender<u64>),
}

struct Actor {
    threads: usize,
    outstanding: usize,
    requests: Option<Sender<Request>>,
    answers: Vec<Receiver<u64>>,
    thread: Option<JoinHandle<()>>,
}

impl Actor {
    /// The actor takes the first CPU of the placement and counts among the threads.
    fn start(point: &Point, outstanding: usize) -> Result<Self, String> {
        let clients = point.threads - 1;
        let (requests, inbox) = channel(clients, outstanding);
        let (senders, answers) = (0..clients).map(|_| channel(1, outstanding)).unzip();
        let (vars, cpu) = (point.vars_len(), point.placement.first().copied().flatten());
        let thread = std::thread::Builder::new()
            .name("channel-actor".to_owned())
            .spawn(move || {
                // The crew's first thread has the same CPU and reports a failure to pin.
                let _ = cpu.map(corelay_topology::pin_current_thread);
                serve(&inbox, senders, vars);
            })
            .map_err(|error| format!("the actor's thread could not be started: {error}"))?;
        let (requests, thread) = (Some(requests), Some(thread));
        Ok(Self {
            threads: point.threads,
            outstanding,
            requests,
            answers,
            thread,
        })
    }

    fn requests(&self) -> &Sender<Request> {
        self.requests
            .as_ref()
            .expect("the sender is taken only by drop")
    }
}

/// A channel for `senders` threads with so many messages outstanding each; nobody ever
/// waits to send.
///
/// Two flavours, for each the quicker one on the reference machine: single calls take 0.7
/// of the time over linked blocks, batches a third over an array.
fn channel<T>(senders: usize, outstanding: usize) -> (Sender<T>, Receiver<T>) {
    if outstanding == 1 {
        unbounded()
    } else {
        bounded(senders * outstanding)
    }
}

fn serve(inbox: &Receiver<Request>, clients: Vec<Sender<u64>>, vars: usize) {
    let mut variables: Vec<Counter> = (0..vars).map(|_| Counter::default()).collect();
    while let Ok(request) = receive(inbox) {
        match request {
            Request::Add { var, client } => {
                let old = variables[var as usize].add_one();
                // The client waits for this answer, so it is there.
                let _ = clients[client as usize].send(old);
            }
            Request::Total(answer) => {
                let _ = answer.send(variables.iter().map(|v| v.count).sum());
            }
        }
    }
}

/// Tries before a receiver may sleep: some microseconds, more than a round trip and less
/// than falling asleep and being woken.
const TRIES: u32 = 256;

/// Receives, spinning a little longer than the channel itself would before it sleeps.
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

impl Contender for Actor {
    fn clients(&self) -> Range<usize> {
        1..self.threads
    }

    fn client(&self, mut client: Client) -> u64 {
        let (requests, answers) = (self.requests(), &self.answers[client.index]);
        let number = client.index as u32;
        let ask = |var: usize| {
            let sent = requests.send(Request::Add {
                var: var as u32,
                client: number,
            });
            sent.expect("the actor serves until its contender is dropped");
        };
        let answer = || receive(answers).expect("the actor serves until its contender is dropped");
        if self.outstanding == 1 {
            return client.drive(|var| {
                ask(var);
                answer()
            });
        }
        // In batches: sending 64 and then receiving 64 takes a third of the time of keeping
        // 64 outstanding one by one (on the reference machine), for the two sides' lines
        // then move once per batch.
        let (mut done, mut sum) = (0u64, 0u64);
        loop {
            for _ in 0..self.outstanding {
                ask(client.choose());
            }
            for _ in 0..self.outstanding {
                sum = sum.wrapping_add(answer());
            }
            done += self.outstanding as u64;
            if client.stopped() {
                break;
            }
        }
        std::hint::black_box(sum);
        done
    }

    fn total(&self) -> u64 {
        let (send, answer) = bounded(1);
        let asked = self.requests().send(Request::Total(send));
        asked.ok().and_then(|()| answer.recv().ok()).unwrap_or(0)
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the actor has shown itself as a wrong result.
            let _ = thread.join();
        }
    }
}
