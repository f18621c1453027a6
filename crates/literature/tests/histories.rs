//! Every channel of the literature gives linearizable objects: counters and maps, recorded on
//! several threads and checked call by call.
//!
//! A call begins when it is issued and ends in its callback; if the client waits, these are the
//! beginning and the end of the call. With several request lines a client has many calls under way
//! and overtakes itself, which is no fault: each takes effect between its own two ends.
//!
//! An answer is compared as the word that the channel carries, so a wrong one shows.
//!
//! `CORELAY_STRESS=10 cargo test …` records ten times as many calls.

#![cfg(not(any(corelay_loom, corelay_shuttle)))]

mod support;

use corelay_history::model::{counter, map};
use corelay_history::{Failure, History, Model, Recorder, check};
use corelay_literature::{AsyncLines, Blocking, Client, Delegation, FfwdLines, PairLines};
use corelay_literature::{Protocol, RclLines, Server, Shape, ShapeError};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Barrier;
use std::sync::atomic::AtomicBool;
use std::thread;
use support::{Stop, stressed};

/// Makes a module with the tests for each channel: how clients, servers and objects become one.
macro_rules! channels {
    ($($name:ident: $clients:expr, $make:expr;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn counters() {
                $clients.iter().for_each(|&n| recorded(&Counting, Fault::None, n, $make).unwrap());
            }

            #[test]
            fn maps() {
                $clients.iter().for_each(|&n| recorded(&Mapping, Fault::None, n, $make).unwrap());
            }
        }
    )*};
}

// Numbers of clients at once: some exceed the number of CPUs, and that of clients that share
// response lines. The checker follows 128 calls of one object at once.
channels! {
    ffwd: [2, 4, 17], waiting::<FfwdLines, _>;
    rcl: [2, 4, 17], waiting::<RclLines, _>;
    one_line: [2, 4, 17], lines(Shape::queue(1, 2));
    one_line_directly: [2, 4, 17], lines(Shape::direct(1));
    four_lines: [2, 4, 8], lines(Shape::queue(4, 8));
    sixteen_lines: [2], lines(Shape::queue(16, 32));
    sixteen_lines_directly: [2, 4, 7], lines(Shape::direct(16));
}

/// A delegation and its servers.
type Made<P, T> = (Delegation<P, T>, Vec<Server<P, T>>);

/// A callback that any thread can make.
type Then = Box<dyn FnOnce(u64)>;

/// One object behind a protocol whose clients wait.
fn waiting<P: Blocking, T: Default>(clients: usize) -> Made<P, T> {
    Delegation::new(1, clients, 1, |_| T::default())
}

/// One object behind the thesis's lines in this shape.
fn lines<T: Default>(
    shape: Result<Shape, ShapeError>,
) -> impl Fn(usize) -> Made<PairLines<Then>, T> {
    let shape = shape.expect("within bounds");
    move |clients| AsyncLines::shaped(shape, 1, clients, 1, |_| T::default())
}

/// A client, whether it waits for its answers or not.
trait Asks<T> {
    /// Asks for `run` on the first object; `then` gets the answer.
    fn ask<O: FnOnce(&mut T) -> u64 + Send + 'static>(&mut self, run: O, then: Then);
}

macro_rules! waits {
    ($($lines:ty),*) => {$(
        impl<T> Asks<T> for Client<$lines, T> {
            fn ask<O: FnOnce(&mut T) -> u64 + Send + 'static>(&mut self, run: O, then: Then) {
                then(apply(self, run));
            }
        }
    )*};
}

waits!(FfwdLines, RclLines);

fn apply<P: Blocking, T>(client: &mut Client<P, T>, run: impl FnOnce(&mut T) -> u64 + Send) -> u64 {
    client.apply(0, run)
}

impl<T> Asks<T> for Client<PairLines<Then>, T> {
    fn ask<O: FnOnce(&mut T) -> u64 + Send + 'static>(&mut self, run: O, then: Then) {
        self.issue(0, run, then);
    }
}

/// A workload that is recorded: numbered operations on an object, whose answer is one word.
trait Load: Sync {
    type Object: Default + Send;
    type Operation: Clone + Send + 'static;
    type Output: Send + 'static;
    type Model: Model<Operation = Self::Operation, Output = Self::Output>;

    fn model(&self) -> Self::Model;

    fn operation(&self, n: u64) -> Self::Operation;

    /// Runs the operation, which must fit into a request.
    fn run(operation: Self::Operation, object: &mut Self::Object) -> u64;

    /// The meaning of an answer.
    fn output(answer: u64) -> Self::Output;
}

/// A workload that adds, and now and then looks.
struct Counting;

impl Load for Counting {
    type Object = i64;
    type Operation = counter::Operation;
    type Output = counter::Output;
    type Model = counter::Counter;

    fn model(&self) -> counter::Counter {
        counter::Counter::new(0)
    }

    fn operation(&self, n: u64) -> counter::Operation {
        match n % 4 {
            0 => counter::Operation::Read,
            _ => counter::Operation::AddFetch(1),
        }
    }

    fn run(operation: counter::Operation, count: &mut i64) -> u64 {
        if let counter::Operation::AddFetch(n) = operation {
            *count += n;
        }
        count.cast_unsigned()
    }

    fn output(answer: u64) -> counter::Output {
        counter::Output::Value(answer.cast_signed())
    }
}

/// A workload that inserts, looks and removes, with few keys.
struct Mapping;

impl Load for Mapping {
    type Object = BTreeMap<u64, u64>;
    type Operation = map::Operation<u64, u64>;
    type Output = Option<u64>;
    type Model = map::Map<u64, u64>;

    fn model(&self) -> map::Map<u64, u64> {
        map::Map::new()
    }

    fn operation(&self, n: u64) -> map::Operation<u64, u64> {
        let key = n % 5;
        match n / 5 % 3 {
            0 => map::Operation::Insert(key, n),
            1 => map::Operation::Get(key),
            _ => map::Operation::Remove(key),
        }
    }

    fn run(operation: map::Operation<u64, u64>, map: &mut BTreeMap<u64, u64>) -> u64 {
        let before = match operation {
            map::Operation::Get(key) => map.get(&key).copied(),
            map::Operation::Insert(key, value) => map.insert(key, value),
            map::Operation::Remove(key) => map.remove(&key),
        };
        before.map_or(0, |value| value + 1)
    }

    fn output(answer: u64) -> Option<u64> {
        answer.checked_sub(1)
    }
}

/// The faults of a channel that the check must find.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// The channel runs every operation twice.
    Twice,
    /// The channel answers and does not run the operation.
    Unrun,
    /// The channel gives each client the answer of its previous call.
    Stale,
}

impl Fault {
    fn run<L: Load>(self, operation: L::Operation, object: &mut L::Object) -> u64 {
        match self {
            Self::Unrun => return L::run(operation, &mut L::Object::default()),
            Self::Twice => _ = L::run(operation.clone(), object),
            Self::None | Self::Stale => {}
        }
        L::run(operation, object)
    }
}

#[test]
fn channels_with_a_fault_are_found_out() {
    for fault in [Fault::Twice, Fault::Unrun, Fault::Stale] {
        let found = |ended: Result<(), Failure<_, _>>| {
            assert!(matches!(ended, Err(Failure::NotLinearizable(_))));
        };
        found(recorded(&Counting, fault, 2, waiting::<FfwdLines, _>));
        found(recorded(&Counting, fault, 2, waiting::<RclLines, _>));
        found(recorded(&Counting, fault, 2, lines(Shape::queue(4, 8))));
        let ended = recorded(&Mapping, fault, 2, lines(Shape::direct(1)));
        assert!(matches!(ended, Err(Failure::NotLinearizable(_))));
    }
}

/// Has clients on threads of their own ask a server for the workload, and checks the history.
fn recorded<L: Load, P: Protocol>(
    load: &L,
    fault: Fault,
    clients: usize,
    make: impl Fn(usize) -> Made<P, L::Object>,
) -> Result<(), Failure<L::Operation, L::Output>>
where
    Client<P, L::Object>: Asks<L::Object>,
{
    let (delegation, servers) = make(clients);
    // The calls of all clients together, shared out.
    let each = stressed(2_000) as u64 / clients as u64;
    let (stop, all) = (AtomicBool::new(false), Barrier::new(clients));
    let history: History<_, _> = thread::scope(|s| {
        for mut server in servers {
            let stop = &stop;
            s.spawn(move || server.run(stop));
        }
        let record = |index: usize| {
            let (delegation, all) = (&delegation, &all);
            s.spawn(move || {
                let recorder = Rc::new(RefCell::new(Recorder::with_capacity(each as usize)));
                let last = Rc::new(Cell::new(0));
                let mut client = delegation.client(index).unwrap();
                all.wait();
                for n in 0..each {
                    let operation = load.operation(n * clients as u64 + index as u64);
                    let noted = Rc::clone(&recorder);
                    let run = operation.clone();
                    let invocation = recorder.borrow_mut().invoke(operation);
                    let last = Rc::clone(&last);
                    let then = Box::new(move |answer| {
                        let before = last.replace(answer);
                        let told = if fault == Fault::Stale {
                            before
                        } else {
                            answer
                        };
                        noted.borrow_mut().respond(invocation, L::output(told));
                    });
                    client.ask(move |object| fault.run::<L>(run, object), then);
                }
                // The calls that are under way come to their end.
                drop(client);
                Rc::into_inner(recorder)
                    .expect("all callbacks have run")
                    .into_inner()
            })
        };
        let _stop = Stop(&stop);
        let recording: Vec<_> = (0..clients).map(record).collect();
        let recorders = recording.into_iter().map(|thread| thread.join().unwrap());
        recorders.collect()
    });
    assert_eq!(history.len() as u64, each * clients as u64);
    assert!(history.calls().all(|(_, call)| call.output().is_some()));
    check(&load.model(), &history)
}
