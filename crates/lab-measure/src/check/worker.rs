//! The workload whose clients record what they do.

use super::action::{Action, Replied, Reply, Request};
use super::methods;
use super::round::{MOST_IN_FLIGHT, Round};
use super::structure::{Make, Plain, Structure};
use crate::method::Entry;
use crate::workload::operation::Workload;
use crate::workload::random::{Client, Random};
use crate::workload::worker::{AnyWorker, Ask, Worker};
use corelay_history::{Invocation, Recorder};
use std::sync::{Arc, Mutex, PoisonError};

/// The workload: clients that record histories of a structure.
#[derive(Clone, Copy, Debug)]
pub struct Recorded {
    pub(super) structure: &'static Structure,
    pub(super) board: &'static Board,
}

/// The place where clients find the round that they are to make.
#[derive(Debug, Default)]
pub(super) struct Board(Mutex<Option<Arc<Round>>>);

impl Board {
    pub(super) fn put(&self, round: Option<Arc<Round>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = round;
    }

    fn round(&self) -> Arc<Round> {
        let round = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        round.clone().expect("clients run in a round only")
    }
}

impl Workload for Recorded {
    type Object = Plain;
    type Operation = Request;

    fn name(self) -> &'static str {
        "check"
    }

    fn object(self) -> Plain {
        match self.structure.make {
            Make::Plain(make) => make(),
            Make::Concurrent(make) => Box::new(make()),
        }
    }

    fn operations(self, _: Random) -> impl FnMut() -> Request + Send + 'static {
        || unreachable!("a client that records is a worker")
    }

    fn worker(self, client: &Client) -> AnyWorker<Request> {
        Some(Box::new(Recording {
            round: self.board.round(),
            client: client.index,
            notes: Recorder::new(),
            begun: [const { None }; MOST_IN_FLIGHT],
            has_asked: false,
        }))
    }

    fn check(self, _: &Plain) -> Result<u64, String> {
        Ok(0)
    }

    fn methods() -> Vec<Entry<Self>> {
        methods()
    }

    fn counts(self) -> bool {
        false
    }
}

/// A worker that notes when each of its calls begins, when it ends, and what it answers.
struct Recording {
    round: Arc<Round>,
    /// The number of the client. Fibres and tasks of one client have the same.
    client: usize,
    notes: Recorder<Action, Reply>,
    /// The calls in flight, by their places.
    begun: [Option<Invocation>; MOST_IN_FLIGHT],
    has_asked: bool,
}

impl Worker<Request> for Recording {
    fn ask(&mut self) -> Option<Ask<Request>> {
        let mut request = self.round.next(self.client)?;
        let place = self.begun.iter().position(Option::is_none);
        let place = place.expect("a round bounds the calls in flight");
        self.has_asked = true;
        self.begun[place] = Some(self.notes.invoke(request.action));
        request.place = place as u8;
        Some(Ask {
            var: self.round.var,
            operation: request,
            needs_answer: true,
        })
    }

    fn answered(&mut self, answer: u64) {
        let Replied { reply, place } = answer.into();
        let begun = self
            .begun
            .get_mut(usize::from(place))
            .and_then(Option::take);
        let begun = begun.expect("an answer belongs to a call in flight");
        self.notes.respond(begun, reply);
        self.round.replied(self.client, reply);
    }

    fn work(&mut self) -> bool {
        false
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // Most of many fibres find nothing to do.
        if self.has_asked {
            let notes = std::mem::take(&mut self.notes);
            self.round.keep(self.client, notes);
        }
    }
}
