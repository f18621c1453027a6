//! Every way of sharing gives linearizable objects: counters and maps, recorded on several
//! threads and checked call by call.
//!
//! `CORELAY_STRESS=10 cargo test …` records ten times as many calls.

use crate::promise;
use corelay::locks::{
    Adaptive, CcSynch, Clh, DsmSynch, FlatCombining, Mcs, ParkingLot, StdMutex, Tas, Ticket, Ttas,
};
use corelay::{Policy, Session, Shared, Team, Trustees};
use corelay_history::model::{counter, map};
use corelay_history::{Failure, History, Recorder, check};
use std::collections::BTreeMap;
use std::sync::{Barrier, Mutex};

/// Makes a module with both tests for each way of sharing: its name, what it needs, and how it
/// shares a value.
macro_rules! ways {
    ($($name:ident: $needs:expr, |$at_hand:pat_param, $value:ident| $share:expr;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn counters() {
                let needs = $needs;
                let ($at_hand, $value) = (&needs, 0);
                let shared = $share;
                THREADS.iter().for_each(|&n| check_counter(&shared, &Threads(n)));
            }

            #[test]
            fn maps() {
                let needs = $needs;
                let ($at_hand, $value) = (&needs, BTreeMap::new());
                let shared = $share;
                THREADS.iter().for_each(|&n| check_map(&shared, &Threads(n)));
            }
        }
    )*};
}

ways! {
    std_mutex: (), |(), value| StdMutex::new(value);
    parking_lot: (), |(), value| ParkingLot::new(value);
    tas: (), |(), value| Tas::new(value);
    ttas: (), |(), value| Ttas::new(value);
    ticket: (), |(), value| Ticket::new(value);
    mcs: (), |(), value| Mcs::new(value);
    clh: (), |(), value| Clh::new(value);
    cc_synch: (), |(), value| CcSynch::new(value);
    dsm_synch: (), |(), value| DsmSynch::new(value);
    flat_combining: (), |(), value| FlatCombining::new(value);
    adaptive: (), |(), value| Adaptive::new(value);
    adaptive_guards: (), |(), value| Guards(Adaptive::new(value));
    dedicated: Trustees::dedicated(1).start().unwrap(), |trustees, value| trustees.entrust(value);
}

/// An adaptive lock whose callers use guards and closures in turn.
struct Guards<T>(Adaptive<T>);

struct GuardsSession<'a, T>(&'a Adaptive<T>, u32);

impl<T> Shared for Guards<T> {
    type Value = T;
    type Session<'a>
        = GuardsSession<'a, T>
    where
        T: 'a;

    fn session(&self) -> GuardsSession<'_, T> {
        GuardsSession(&self.0, 0)
    }
}

impl<T> Session for GuardsSession<'_, T> {
    type Value = T;

    fn apply<R: Send, F: FnOnce(&mut T) -> R + Send>(&mut self, f: F) -> R {
        self.1 += 1;
        if self.1.is_multiple_of(2) {
            self.0.apply(f)
        } else {
            f(&mut self.0.lock().expect("nobody panics"))
        }
    }
}

/// Members of flat teams make the calls, and serve them.
mod flat {
    use super::*;

    const POLICIES: [Policy; 6] = [
        Policy::Queue,
        Policy::Blocked,
        Policy::FastPath,
        Policy::Bound(16),
        Policy::Doorbell,
        Policy::Adaptive,
    ];

    fn each_team(check: impl Fn(&Team)) {
        for (policy, members) in POLICIES.iter().flat_map(|&p| THREADS.map(|n| (p, n))) {
            let team = Trustees::flat(members).policy(policy);
            check(&team.start().expect("threads"));
        }
    }

    #[test]
    fn counters() {
        each_team(|team| check_counter(&team.entrust(0), team));
    }

    #[test]
    fn maps() {
        each_team(|team| check_map(&team.entrust(BTreeMap::new()), team));
    }
}

/// Fibres make the calls: many on each processor, whose calls are under way together.
mod fibres {
    use super::*;
    use corelay::{Trust, Trustees};
    use counter::{Operation as Add, Output};
    use map::Operation::{self, Get, Insert, Remove};

    /// Numbers of processors and of fibres.
    const CREWS: [(usize, u64); 3] = [(1, 8), (2, 2), (2, 8)];

    /// Each fibre records its calls of `call`, which gets numbers that differ among all fibres.
    fn record<T: 'static, O: Send + 'static, R: Send + 'static>(
        shared: &Trust<T>,
        (processors, fibres): (usize, u64),
        call: fn(&Trust<T>, &mut Recorder<O, R>, u64),
    ) -> History<O, R> {
        let cluster = promise::cluster(processors);
        let fibre = |number: u64| {
            let shared = shared.clone();
            cluster.spawn(move || {
                let mut recorder = Recorder::with_capacity(calls() as usize);
                (0..calls()).for_each(|n| call(&shared, &mut recorder, n * fibres + number));
                recorder
            })
        };
        let fibres: Vec<_> = (0..fibres).map(fibre).collect();
        let recorders = fibres.into_iter().map(|fibre| fibre.join());
        recorders.map(|r| r.expect("nobody panics")).collect()
    }

    #[test]
    fn counters() {
        for crew in CREWS {
            let trustees = Trustees::dedicated(1).start().expect("threads");
            let history = record(&trustees.entrust(0i64), crew, |count, recorder, n| {
                if n % 4 == 0 {
                    recorder.record(Add::Read, |_| Output::Value(count.apply(|count| *count)));
                } else {
                    recorder.record(Add::AddFetch(1), |_| {
                        Output::Value(count.apply(|count| {
                            *count += 1;
                            *count
                        }))
                    });
                }
            });
            assert_eq!(history.len() as u64, crew.1 * calls());
            check(&counter::Counter::new(0), &history).unwrap();
        }
    }

    #[test]
    fn maps() {
        for crew in CREWS {
            let trustees = Trustees::dedicated(1).start().expect("threads");
            let shared = trustees.entrust(BTreeMap::<u64, u64>::new());
            let history = record(&shared, crew, |shared, recorder, n| {
                let key = n % 3;
                let operation = match n / 3 % 3 {
                    0 => Insert(key, n),
                    1 => Get(key),
                    _ => Remove(key),
                };
                recorder.record(operation, |operation: &Operation<u64, u64>| {
                    shared.apply(|map| match operation {
                        Get(key) => map.get(key).copied(),
                        Insert(key, value) => map.insert(*key, *value),
                        Remove(key) => map.remove(key),
                    })
                });
            });
            assert_eq!(history.len() as u64, crew.1 * calls());
            check(&map::Map::new(), &history).unwrap();
        }
    }
}

/// Launched closures that wait, among other requests of several clients to the same objects.
mod launches {
    use super::*;
    use corelay::TryApplyAsyncError::Full;
    use corelay::fibre::{self, yield_now};
    use corelay::{ApplyFuture, ClientGuard, LaunchHandle, Trust, Trustees, barrier};
    use corelay_history::Invocation;
    use counter::Operation::{Add, AddFetch, Read};
    use counter::{Counter, Operation, Output};
    use std::cell::RefCell;
    use std::future::Future;
    use std::pin::pin;
    use std::rc::Rc;
    use std::task::{Context, Poll, Waker};

    const OBJECTS: usize = 3;
    const CLIENTS: usize = 3;

    /// A counter that knows how many requests of each client it has run.
    #[derive(Default)]
    struct Value {
        count: i64,
        seen: [u64; CLIENTS],
    }

    impl Value {
        fn add(&mut self) -> i64 {
            self.count += 1;
            self.count
        }
    }

    type Notes = Recorder<Operation, Output>;
    /// The result of a closure: its count, and its records by other objects.
    type Result = (i64, Vec<(usize, Notes)>);

    /// A client, with its notes of each object.
    struct Client {
        number: usize,
        objects: Vec<Trust<Value>>,
        notes: Rc<Vec<RefCell<Notes>>>,
        sent: [u64; OBJECTS],
        /// The records that finished closures have made, by object.
        others: Vec<(usize, Notes)>,
        posts: Vec<(usize, Invocation)>,
        asked: Vec<(usize, Invocation, ApplyFuture<i64>)>,
        launched: Vec<(usize, Invocation, LaunchHandle<Result>)>,
    }

    fn block_on<F: Future>(future: F) -> F::Output {
        let mut future = pin!(future);
        loop {
            let polled = future
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()));
            if let Poll::Ready(output) = polled {
                return output;
            }
            std::thread::yield_now();
        }
    }

    impl Client {
        fn invoke(&self, at: usize, operation: Operation) -> Invocation {
            self.notes[at].borrow_mut().invoke(operation)
        }

        fn respond(&self, at: usize, invocation: Invocation, count: i64) {
            let answer = Output::Value(count);
            self.notes[at].borrow_mut().respond(invocation, answer);
        }

        /// A request that checks its turn: what the client has asked of the object before has run.
        fn step(&mut self, at: usize) -> impl FnOnce(&mut Value) -> i64 + Send + 'static {
            let (client, turn) = (self.number, self.sent[at]);
            self.sent[at] += 1;
            move |value| {
                assert_eq!(value.seen[client], turn, "overtaken");
                value.seen[client] += 1;
                value.add()
            }
        }

        /// A closure that holds its object, and calls objects with larger numbers: so there is no
        /// ring.
        fn launch(&mut self, at: usize) {
            let step = self.step(at);
            let invocation = self.invoke(at, AddFetch(1));
            let larger: Vec<_> = (at + 1..OBJECTS)
                .map(|to| (to, self.objects[to].clone()))
                .collect();
            let handle = self.objects[at].launch(move |value| {
                let before = value.count;
                let mut notes = Vec::new();
                for (to, other) in larger {
                    yield_now();
                    let mut recorder = Recorder::with_capacity(1);
                    recorder.record(AddFetch(1), |_| Output::Value(other.apply(Value::add)));
                    notes.push((to, recorder));
                }
                assert_eq!(value.count, before, "it is held");
                (step(value), notes)
            });
            self.launched.push((at, invocation, handle));
        }

        fn call(&mut self, n: usize) {
            let at = n * 7 % OBJECTS;
            let object = self.objects[at].clone();
            match (n + self.number) % 8 {
                0 | 1 => self.launch(at),
                2 => {
                    let (step, invocation) = (self.step(at), self.invoke(at, Add(1)));
                    object.post(|value| {
                        step(value);
                    });
                    self.posts.push((at, invocation));
                }
                3 | 4 => {
                    let (step, invocation) = (self.step(at), self.invoke(at, AddFetch(1)));
                    let notes = Rc::clone(&self.notes);
                    object.apply_then(step, move |count| {
                        let answer = Output::Value(count);
                        notes[at].borrow_mut().respond(invocation, answer);
                    });
                }
                5 => {
                    let (step, invocation) = (self.step(at), self.invoke(at, AddFetch(1)));
                    // In a full window the request of a future would wait, and be overtaken.
                    match object.try_apply_async(step) {
                        Ok(future) => self.asked.push((at, invocation, future)),
                        Err(Full(step)) => {
                            let count = object.apply(step);
                            self.respond(at, invocation, count);
                        }
                        Err(other) => panic!("{other}"),
                    }
                }
                6 => {
                    let invocation = self.invoke(at, Read);
                    let count = object.apply(|value| value.count);
                    self.respond(at, invocation, count);
                }
                _ => {
                    let (step, invocation) = (self.step(at), self.invoke(at, AddFetch(1)));
                    let count = object.apply(step);
                    self.respond(at, invocation, count);
                }
            }
            if n % 8 == 7 {
                self.settle();
            }
        }

        /// Waits for everything that is on its way.
        fn settle(&mut self) {
            for (at, invocation, future) in std::mem::take(&mut self.asked) {
                let count = block_on(future).expect("nobody panics");
                self.respond(at, invocation, count);
            }
            for (at, invocation, handle) in std::mem::take(&mut self.launched) {
                let (count, notes) = handle.join().expect("nobody panics");
                self.respond(at, invocation, count);
                self.others.extend(notes);
            }
            barrier().expect("nobody panics");
            for (at, invocation) in std::mem::take(&mut self.posts) {
                self.notes[at]
                    .borrow_mut()
                    .respond(invocation, Output::Added);
            }
        }

        fn into_notes(self) -> Vec<(usize, Notes)> {
            let notes = Rc::into_inner(self.notes).expect("no callback is left");
            let mine = notes.into_iter().map(RefCell::into_inner).enumerate();
            mine.chain(self.others).collect()
        }
    }

    fn check_all(trustees: usize, window: usize) {
        // SAFETY: nothing here waits inside a thread-local's initialiser, destructor or scope.
        let host = unsafe { fibre::host() };
        let builder = Trustees::dedicated(trustees).host(host);
        let all = builder.window(window).start().expect("threads");
        let objects: Vec<_> = (0..OBJECTS)
            .map(|i| all.entrust_on(i % trustees, Value::default()))
            .collect();
        let begin = Barrier::new(CLIENTS);
        let notes: Vec<_> = std::thread::scope(|s| {
            let client = |number| {
                let (objects, begin) = (objects.clone(), &begin);
                s.spawn(move || {
                    let _guard = ClientGuard::new();
                    let notes = (0..OBJECTS).map(|_| RefCell::default()).collect();
                    let mut client = Client {
                        number,
                        objects,
                        notes: Rc::new(notes),
                        sent: [0; OBJECTS],
                        others: Vec::new(),
                        posts: Vec::new(),
                        asked: Vec::new(),
                        launched: Vec::new(),
                    };
                    begin.wait();
                    (0..calls() as usize / 4).for_each(|n| client.call(n));
                    client.settle();
                    client.into_notes()
                })
            };
            let clients: Vec<_> = (0..CLIENTS).map(client).collect();
            let notes = clients.into_iter().map(|client| client.join());
            notes
                .flat_map(|notes| notes.expect("nobody panics"))
                .collect()
        });
        let mut of_each: [Vec<Notes>; OBJECTS] = Default::default();
        for (at, notes) in notes {
            of_each[at].push(notes);
        }
        for (object, notes) in objects.iter().zip(of_each) {
            let history: History<_, _> = notes.into_iter().collect();
            assert!(history.len() > 10, "each object is used");
            check(&Counter::new(0), &history).unwrap();
            let adds = history
                .calls()
                .filter(|(_, call)| *call.operation() != Read);
            assert_eq!(object.apply(|value| value.count), adds.count() as i64);
        }
    }

    #[test]
    fn counters() {
        for (trustees, window) in [(1, 256), (1, 4), (2, 256), (2, 4)] {
            check_all(trustees, window);
        }
    }
}

/// The makers of the calls.
trait Crew {
    fn size(&self) -> usize;

    /// Runs `work` on each of them, with its number.
    fn work(&self, work: &(dyn Fn(usize) + Sync));
}

/// This number of threads.
struct Threads(usize);

impl Crew for Threads {
    fn size(&self) -> usize {
        self.0
    }

    fn work(&self, work: &(dyn Fn(usize) + Sync)) {
        std::thread::scope(|s| {
            for number in 0..self.0 {
                s.spawn(move || work(number));
            }
        });
    }
}

impl Crew for Team {
    fn size(&self) -> usize {
        self.len()
    }

    fn work(&self, work: &(dyn Fn(usize) + Sync)) {
        self.run(|me| work(me.number()));
    }
}

/// Numbers of threads at once. Some exceed the number of CPUs, so threads are interrupted in their
/// calls.
const THREADS: [usize; 2] = [2, 4];

/// Calls of each thread.
fn calls() -> u64 {
    let factor = std::env::var("CORELAY_STRESS").map_or(1.0, |text| {
        text.parse::<f64>().expect("CORELAY_STRESS is a number")
    });
    ((500.0 * factor) as u64).max(1)
}

fn check_counter(shared: &impl Counters, crew: &impl Crew) {
    let before = shared.session().apply(|count| *count);
    let history = record_counter(shared, crew);
    check(&counter::Counter::new(before), &history).unwrap();
}

fn check_map<S: Shared<Value = BTreeMap<u64, u64>> + Sync>(shared: &S, crew: &impl Crew) {
    use map::Operation::{self, Get, Insert, Remove};
    shared.session().apply(BTreeMap::clear);
    let history = record(shared, crew, |session, recorder, n| {
        let key = n % 3;
        let operation = match n / 3 % 3 {
            0 => Insert(key, n),
            1 => Get(key),
            _ => Remove(key),
        };
        recorder.record(operation, |operation: &Operation<u64, u64>| {
            session.apply(|map| match operation {
                Get(key) => map.get(key).copied(),
                Insert(key, value) => map.insert(*key, *value),
                Remove(key) => map.remove(key),
            })
        });
    });
    check(&map::Map::new(), &history).unwrap();
}

/// A shared counter.
trait Counters: Shared<Value = i64> + Sync {}
impl<S: Shared<Value = i64> + Sync> Counters for S {}

fn record_counter(
    shared: &impl Counters,
    crew: &impl Crew,
) -> History<counter::Operation, counter::Output> {
    use counter::{Operation, Output};
    record(shared, crew, |session, recorder, n| {
        if n % 4 == 0 {
            recorder.record(Operation::Read, |_| {
                Output::Value(session.apply(|count| *count))
            });
        } else {
            recorder.record(Operation::AddFetch(1), |_| {
                Output::Value(session.apply(|count| {
                    *count += 1;
                    *count
                }))
            });
        }
    })
}

/// Each thread opens a session and records its calls of `call`, which gets numbers that differ
/// among all threads.
fn record<S: Shared + Sync, O: Send, R: Send>(
    shared: &S,
    crew: &impl Crew,
    call: impl Fn(&mut S::Session<'_>, &mut Recorder<O, R>, u64) + Sync,
) -> History<O, R> {
    let threads = crew.size();
    let recorders: Vec<_> = (0..threads)
        .map(|_| Mutex::new(Recorder::with_capacity(calls() as usize)))
        .collect();
    let all = Barrier::new(threads);
    crew.work(&|thread| {
        let mut recorder = recorders[thread].lock().expect("its own");
        let mut session = shared.session();
        all.wait();
        for n in 0..calls() {
            call(
                &mut session,
                &mut recorder,
                n * threads as u64 + thread as u64,
            );
        }
    });
    let recorders = recorders.into_iter().map(Mutex::into_inner);
    let history: History<_, _> = recorders.map(|r| r.expect("nobody panics")).collect();
    assert_eq!(history.len() as u64, threads as u64 * calls());
    history
}

/// A way of not sharing: each session has a value of its own. The tests above have to find it out.
#[test]
fn replicas_that_nobody_synchronises_are_found_out() {
    struct Replicas(i64);
    struct Replica(i64);

    impl Shared for Replicas {
        type Value = i64;
        type Session<'a> = Replica;

        fn session(&self) -> Replica {
            Replica(self.0)
        }
    }

    impl Session for Replica {
        type Value = i64;

        fn apply<R: Send, F: FnOnce(&mut i64) -> R + Send>(&mut self, f: F) -> R {
            f(&mut self.0)
        }
    }

    let history = record_counter(&Replicas(0), &Threads(2));
    let failure = check(&counter::Counter::new(0), &history).unwrap_err();
    assert!(matches!(failure, Failure::NotLinearizable(_)), "{failure}");
}
