//! A round: one history of one object, made by all clients together.
//!
//! The clients start at once. Each makes its operations, with some pauses among them; the last one
//! to have its replies then reads what is left in the structure. So the end of each history is
//! sequential, and shows the updates that were lost.

use super::action::{Action, Reply, Request};
use super::kind::{Kind, Rest};
use crate::workload::random::Random;
use corelay_history::{History, Recorder};
use corelay_sync::Backoff;
use corelay_sync::facade::atomic::{AtomicUsize, Ordering};
use corelay_sync::facade::{hint, thread};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The most calls that a client has in flight, if its method's answers come later.
pub(super) const MOST_IN_FLIGHT: usize = 4;

/// Calls in flight of all clients together: as many as methods whose calls wait have with as many
/// threads. The checker's work doubles with each.
const IN_FLIGHT_OF_ALL: usize = 8;

/// A history in the making.
#[derive(Debug)]
pub(super) struct Round {
    /// The number of the object among those of the contender.
    pub(super) var: usize,
    kind: Kind,
    /// The most calls that a client has in flight.
    in_flight: usize,
    clients: Vec<Mutex<Client>>,
    /// Clients that have not come to the start.
    missing: AtomicUsize,
    /// Clients that have not finished their operations.
    busy: AtomicUsize,
    /// The notes of each worker, with the number of its client.
    notes: Mutex<Vec<(usize, Recorder<Action, Reply>)>>,
}

/// A client of a round. Its workers, if it is divided among fibres or tasks, have all of it in
/// common.
#[derive(Debug)]
struct Client {
    random: Random,
    has_started: bool,
    /// Operations still to be made.
    left: usize,
    in_flight: usize,
    /// The number of the client's next value; no two of a round are equal.
    next_value: u64,
    /// The actions of the end, if the client is the last one.
    rest: Rest,
    is_done: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic of a client is reported by its own thread.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Round {
    /// A round in which each of `clients` clients makes `operations` operations that follow from
    /// `seed`.
    pub(super) fn new(
        var: usize,
        kind: Kind,
        clients: usize,
        operations: usize,
        seed: u64,
    ) -> Self {
        let mut seeds = Random::new(seed);
        let client = |number| {
            Mutex::new(Client {
                random: Random::new(seeds.next()),
                has_started: false,
                left: operations,
                in_flight: 0,
                next_value: number as u64,
                rest: Rest::Nothing,
                is_done: false,
            })
        };
        Self {
            var,
            kind,
            in_flight: (IN_FLIGHT_OF_ALL / clients).clamp(1, MOST_IN_FLIGHT),
            clients: (0..clients).map(client).collect(),
            missing: AtomicUsize::new(clients),
            busy: AtomicUsize::new(clients),
            notes: Mutex::default(),
        }
    }

    /// The next request of a client, for the first place; `None` if it has none before a reply, or
    /// none at all.
    pub(super) fn next(&self, number: usize) -> Option<Request> {
        let client = &mut *lock(&self.clients[number]);
        if !client.has_started {
            client.has_started = true;
            self.start();
        }
        if client.in_flight == self.in_flight {
            return None;
        }
        let (action, lingers) = if client.left > 0 {
            client.left -= 1;
            pause(&mut client.random);
            let value = client.next_value;
            client.next_value += self.clients.len() as u64;
            let action = self.kind.action(&mut client.random, value);
            (action, client.random.below(8) == 0)
        } else {
            if client.in_flight == 0 && !client.is_done {
                client.is_done = true;
                // AcqRel: the last client comes after the calls of all others.
                if self.busy.fetch_sub(1, Ordering::AcqRel) == 1 {
                    client.rest = self.kind.rest();
                }
            }
            (client.rest.next()?, false)
        };
        client.in_flight += 1;
        Some(Request {
            action,
            lingers,
            place: 0,
        })
    }

    /// Notes that a call of a client has returned.
    pub(super) fn replied(&self, number: usize, reply: Reply) {
        let mut client = lock(&self.clients[number]);
        client.in_flight -= 1;
        if reply.is_none() && matches!(client.rest, Rest::Pops) {
            client.rest = Rest::Nothing;
        }
    }

    /// Waits until all clients have come.
    fn start(&self) {
        // Relaxed: only the number counts; the round was made before any client began.
        self.missing.fetch_sub(1, Ordering::Relaxed);
        let mut backoff = Backoff::new();
        // Relaxed: likewise.
        while self.missing.load(Ordering::Relaxed) > 0 {
            backoff.wait();
        }
    }

    /// Keeps the notes of a worker that has ended.
    pub(super) fn keep(&self, number: usize, notes: Recorder<Action, Reply>) {
        lock(&self.notes).push((number, notes));
    }

    /// The history, after all clients have ended.
    ///
    /// # Errors
    /// A sentence, if calls are missing or have no answer. No explanation is asked for then: a call
    /// without an answer may be explained in too many ways.
    pub(super) fn history(&self, operations: usize) -> Result<History<Action, Reply>, String> {
        let mut notes = std::mem::take(&mut *lock(&self.notes));
        // The workers of a client in the order in which they ended.
        notes.sort_by_key(|(number, _)| *number);
        let history: History<_, _> = notes.into_iter().map(|(_, notes)| notes).collect();
        let answered = history.calls().filter(|(_, call)| call.output().is_some());
        let (answered, made) = (answered.count(), history.len());
        let least = self.clients.len() * operations;
        match answered == made && made >= least {
            true => Ok(history),
            false => Err(format!(
                "{made} calls were made instead of {least} or more, and {answered} were answered"
            )),
        }
    }
}

/// Pauses now and then, for random times, so that calls meet in many ways.
fn pause(random: &mut Random) {
    match random.below(8) {
        0 => thread::yield_now(),
        1..3 => (0..random.below(100)).for_each(|_| hint::spin_loop()),
        _ => {}
    }
}
