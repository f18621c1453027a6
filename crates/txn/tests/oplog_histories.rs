//! Histories of OpLogs on several threads, checked call by call: reads see every update that had
//! returned, and the order of updates does not contradict real time.
//!
//! Each structure is tested on each clock; on a clock that is wrong within its boundary, at every
//! delay between the draw of a time and its use; and on one that is wrong beyond it, which must be
//! found out.
//!
//! `CORELAY_STRESS=100 cargo test …` records a hundred times as many calls, ten million.

#![cfg(not(any(corelay_loom, corelay_shuttle)))]

use corelay_clock::{Clock, Logical, Ordo, Skewed, SkewedBuilder};
use corelay_history::{Failure, History, Model, Recorder, check};
use corelay_txn::oplog::{Add, Change, Multiset, OpLog, Operation, Remap, ReverseMap, Session};
use std::collections::BTreeSet;
use std::sync::Barrier;
use std::thread;

/// The recorded calls: updates, which answer nothing, and reads.
trait Load: Sync {
    type State: Default + Send;
    type Op: Operation<Self::State> + Clone + Send;
    type Model: Model<Operation = Call<Self::Op, Self::About>, Output = Option<Self::Seen>>
        + Default;
    type About: Clone + Send;
    type Seen: Send;

    /// The n-th call.
    fn call(n: u64) -> Call<Self::Op, Self::About>;

    fn look(state: &Self::State, about: &Self::About) -> Self::Seen;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call<Op, About> {
    Update(Op),
    Read(About),
}

/// Scrambles a number.
fn mixed(n: u64) -> u64 {
    let n = (n ^ n >> 31).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    n ^ n >> 29
}

/// A register: a read returns the last write, so the order of all updates shows.
#[derive(Default)]
struct Registers;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Write(u64);

impl Operation<u64> for Write {
    fn apply(self, register: &mut u64) {
        *register = self.0;
    }
}

impl Load for Registers {
    type State = u64;
    type Op = Write;
    type Model = Self;
    type About = ();
    type Seen = u64;

    fn call(n: u64) -> Call<Write, ()> {
        match mixed(n) % 3 {
            0 => Call::Read(()),
            // A few values only: the checker keeps all that may have been written.
            _ => Call::Update(Write(1 + n % 7)),
        }
    }

    fn look(register: &u64, (): &()) -> u64 {
        *register
    }
}

impl Model for Registers {
    type Operation = Call<Write, ()>;
    type Output = Option<u64>;
    type State = u64;
    type Key = ();

    fn initial(&self) -> u64 {
        0
    }

    fn step(&self, register: &mut u64, call: &Self::Operation) -> Option<u64> {
        match *call {
            Call::Update(Write(n)) => {
                *register = n;
                None
            }
            Call::Read(()) => Some(*register),
        }
    }

    fn key(&self, _call: &Self::Operation) {}

    fn observes(&self, call: &Self::Operation, _output: &Option<u64>) -> bool {
        matches!(call, Call::Read(()))
    }
}

/// A reverse map of few pages and mappings, with each page checked by itself.
#[derive(Default)]
struct Maps;

impl Load for Maps {
    type State = ReverseMap<u8, u8>;
    type Op = Remap<u8, u8>;
    type Model = Self;
    type About = u8;
    type Seen = BTreeSet<u8>;

    fn call(n: u64) -> Call<Remap<u8, u8>, u8> {
        let random = mixed(n);
        let (page, mapping) = ((random >> 8) as u8 % 3, (random >> 16) as u8 % 3);
        match random % 5 {
            0 => Call::Read(page),
            1 | 2 => Call::Update(Remap::Add(page, mapping)),
            _ => Call::Update(Remap::Remove(page, mapping)),
        }
    }

    fn look(rmap: &ReverseMap<u8, u8>, page: &u8) -> BTreeSet<u8> {
        rmap.mappings(page).copied().collect()
    }
}

impl Model for Maps {
    type Operation = Call<Remap<u8, u8>, u8>;
    type Output = Option<BTreeSet<u8>>;
    type State = BTreeSet<u8>;
    type Key = u8;

    fn initial(&self) -> BTreeSet<u8> {
        BTreeSet::new()
    }

    fn step(&self, mappings: &mut BTreeSet<u8>, call: &Self::Operation) -> Option<BTreeSet<u8>> {
        match *call {
            Call::Update(Remap::Add(_, mapping)) => _ = mappings.insert(mapping),
            Call::Update(Remap::Remove(_, mapping)) => _ = mappings.remove(&mapping),
            Call::Read(_) => return Some(mappings.clone()),
        }
        None
    }

    fn key(&self, call: &Self::Operation) -> u8 {
        match *call {
            Call::Update(Remap::Add(page, _) | Remap::Remove(page, _)) | Call::Read(page) => page,
        }
    }

    fn observes(&self, call: &Self::Operation, _output: &Self::Output) -> bool {
        matches!(call, Call::Read(_))
    }
}

/// A multiset of few values, each checked by itself.
#[derive(Default)]
struct Counts;

impl Load for Counts {
    type State = Multiset<u8>;
    type Op = Change<u8>;
    type Model = Self;
    type About = u8;
    type Seen = i64;

    fn call(n: u64) -> Call<Change<u8>, u8> {
        let random = mixed(n);
        let value = (random >> 8) as u8 % 3;
        match random % 5 {
            0 => Call::Read(value),
            1 | 2 => Call::Update(Change::add(value)),
            _ => Call::Update(Change::remove(value)),
        }
    }

    fn look(multiset: &Multiset<u8>, value: &u8) -> i64 {
        multiset.count(value)
    }
}

impl Model for Counts {
    type Operation = Call<Change<u8>, u8>;
    type Output = Option<i64>;
    type State = i64;
    type Key = u8;

    fn initial(&self) -> i64 {
        0
    }

    fn step(&self, count: &mut i64, call: &Self::Operation) -> Option<i64> {
        match call {
            Call::Update(change) => *count += change.by(),
            Call::Read(_) => return Some(*count),
        }
        None
    }

    fn key(&self, call: &Self::Operation) -> u8 {
        match call {
            Call::Update(change) => *change.value(),
            Call::Read(value) => *value,
        }
    }

    fn observes(&self, call: &Self::Operation, _output: &Option<i64>) -> bool {
        matches!(call, Call::Read(_))
    }
}

/// A counter.
#[derive(Default)]
struct Sums;

impl Load for Sums {
    type State = i64;
    type Op = Add;
    type Model = Self;
    type About = ();
    type Seen = i64;

    fn call(n: u64) -> Call<Add, ()> {
        match mixed(n) % 4 {
            0 => Call::Read(()),
            m => Call::Update(Add(m as i64 - 2)),
        }
    }

    fn look(sum: &i64, (): &()) -> i64 {
        *sum
    }
}

impl Model for Sums {
    type Operation = Call<Add, ()>;
    type Output = Option<i64>;
    type State = i64;
    type Key = ();

    fn initial(&self) -> i64 {
        0
    }

    fn step(&self, sum: &mut i64, call: &Self::Operation) -> Option<i64> {
        match *call {
            Call::Update(Add(n)) => *sum += n,
            Call::Read(()) => return Some(*sum),
        }
        None
    }

    fn key(&self, _call: &Self::Operation) {}

    fn observes(&self, call: &Self::Operation, _output: &Option<i64>) -> bool {
        matches!(call, Call::Read(()))
    }
}

/// The calls of all threads together.
const CALLS: u64 = 12_500;

type CheckFailure<L> =
    Failure<Call<<L as Load>::Op, <L as Load>::About>, Option<<L as Load>::Seen>>;

/// Threads share a log and record their calls, and the history is checked.
fn recorded<L: Load, C: Clock>(threads: u64, calls: u64, clock: C) -> Result<(), CheckFailure<L>> {
    // Small logs, so that they are full now and then.
    let log = OpLog::<L::State, L::Op, C>::with_capacity(16, L::State::default(), clock).unwrap();
    let all = Barrier::new(threads as usize);
    let history: History<_, _> = thread::scope(|s| {
        let record = |thread: u64| {
            let (log, all) = (&log, &all);
            s.spawn(move || {
                let mut recorder = Recorder::with_capacity((calls / threads) as usize);
                let mut session = log.session();
                all.wait();
                for n in 0..calls / threads {
                    if n % 64 == 63 {
                        // Another session takes over the log.
                        drop(session);
                        session = log.session();
                    }
                    let call = L::call(n * threads + thread);
                    recorder.record(call, |call| run::<L, C>(&mut session, call));
                }
                recorder
            })
        };
        let recording: Vec<_> = (0..threads).map(record).collect();
        let recorders = recording.into_iter().map(|thread| thread.join().unwrap());
        recorders.collect()
    });
    check(&L::Model::default(), &history)
}

fn run<L: Load, C: Clock>(
    session: &mut Session<'_, L::State, L::Op, C>,
    call: &Call<L::Op, L::About>,
) -> Option<L::Seen> {
    match call {
        Call::Update(op) => {
            session.update(op.clone());
            None
        }
        Call::Read(about) => Some(session.read(|state| L::look(state, about))),
    }
}

/// A clock that is wrong within its boundary: threads are ahead by nothing, by all of the skew, by
/// a half and by a quarter of it.
fn skewed(skew: u64, boundary: u64, delay: u64) -> Skewed {
    SkewedBuilder {
        skew,
        step: 2,
        boundary,
        delay,
    }
    .build()
}

/// Runs a test on every clock that is right.
fn is_linearizable<L: Load>()
where
    CheckFailure<L>: std::fmt::Debug,
{
    let calls = stressed(CALLS);
    // More threads than there may be CPUs, too.
    for threads in [2, 5] {
        recorded::<L, _>(threads, calls, Logical::new()).unwrap();
        if corelay_sync::counter::usable() {
            // 100 ns and more: of the order of the boundaries of machines with one socket.
            recorded::<L, _>(threads, calls, Ordo::with_boundary(500)).unwrap();
        }
        for delay in [0, 1, 40] {
            recorded::<L, _>(threads, calls, skewed(31, 33, delay)).unwrap();
        }
    }
}

#[test]
fn registers() {
    is_linearizable::<Registers>();
}

#[test]
fn reverse_maps() {
    is_linearizable::<Maps>();
}

#[test]
fn multisets() {
    is_linearizable::<Counts>();
}

#[test]
fn counters() {
    is_linearizable::<Sums>();
}

/// Skew beyond the boundary is detected; otherwise these tests would test nothing.
#[test]
fn skew_beyond_the_boundary_is_found_out() {
    let found = (0..50).any(|_| {
        let ended = recorded::<Registers, _>(4, CALLS, skewed(10_000, 1, 0));
        matches!(ended, Err(Failure::NotLinearizable(_)))
    });
    assert!(found, "threads' clocks are far apart, and nothing was seen");
}

/// `n` times the factor in `CORELAY_STRESS` (1 unless set).
fn stressed(n: u64) -> u64 {
    let factor = std::env::var("CORELAY_STRESS").map_or(1.0, |text| {
        text.parse::<f64>().expect("CORELAY_STRESS is a number")
    });
    (n as f64 * factor) as u64
}
