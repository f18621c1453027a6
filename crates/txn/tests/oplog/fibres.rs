//! Sessions of fibres, kept over switches, on one processor and on two, with fibres that stay and
//! fibres that migrate; and reads of fibres, with a session and without.

use super::{Nth, panic_of, stressed};
use crate::promise;
use corelay_clock::{Clock, Logical, Ordo, Skewed, SkewedBuilder};
use corelay_fibre::{Cluster, Semaphore, StackSize, yield_now};
use corelay_txn::oplog::{Add, OpLog};
use std::sync::Arc;

/// The count of all updates, and the last one of each fibre.
type State = (usize, Vec<usize>);

type Log<C> = OpLog<State, Nth, C>;

/// The shared state of a cluster's fibres.
struct Ring<C: Clock> {
    log: Log<C>,
    /// A fibre's turns.
    turns: [Semaphore; FIBRES],
}

impl<C: Clock> Ring<C> {
    /// Lets the next fibre go on and waits for the one before. A fibre that wakes up does so on any
    /// thread that has room.
    fn pass_on(&self, id: usize) {
        self.turns[(id + 1) % FIBRES].release();
        self.turns[id].acquire();
    }
}

const FIBRES: usize = 6;

/// Runs `work` on numbered fibres, on each kind of cluster; `end` checks the result.
fn on_each_cluster<C: Clock + 'static>(
    make: impl Fn() -> C,
    work: fn(&Ring<C>, usize),
    end: impl Fn(&State),
) {
    for (processors, migrating) in [(1, false), (1, true), (2, false), (2, true)] {
        let cluster = promise::cluster(processors);
        let state = (0, vec![0; FIBRES]);
        // Logs fill up now and then, and fibres merge the operations that others have left.
        let ring = Arc::new(Ring {
            log: Log::with_capacity(50, state, make()).unwrap(),
            turns: std::array::from_fn(|_| Semaphore::new(0)),
        });
        let fibres: Vec<_> = (0..FIBRES)
            .map(|id| {
                let ring = Arc::clone(&ring);
                let work = move || work(&ring, id);
                let fibre = cluster.fibre();
                match migrating {
                    // SAFETY: the work keeps nothing of its thread over a switch.
                    true => unsafe { fibre.migrating() }.spawn(work).unwrap(),
                    false => fibre.spawn(work).unwrap(),
                }
            })
            .collect();
        for fibre in fibres {
            fibre.join().unwrap();
        }
        ring.log.read(&end);
    }
}

/// Runs a test body on each clock.
fn everywhere(
    logical: fn(&Ring<Logical>, usize),
    skewed: fn(&Ring<Skewed>, usize),
    ordo: fn(&Ring<Ordo>, usize),
    end: impl Fn(&State),
) {
    on_each_cluster(Logical::new, logical, &end);
    // Wide: a fibre that goes on on a thread whose clock is behind meets its own updates there.
    let wide = SkewedBuilder {
        skew: 1_000,
        step: 5,
        boundary: 1_005,
        delay: 1,
    };
    on_each_cluster(|| wide.build(), skewed, &end);
    if let Ok(clock) = Ordo::shared() {
        let boundary = clock.boundary();
        on_each_cluster(|| Ordo::with_boundary(boundary), ordo, &end);
    }
}

/// Each fibre's updates are applied once and in its order, and it sees its own, on whichever thread
/// it runs.
#[test]
fn updates_of_fibres_work_as_those_of_threads() {
    fn work<C: Clock>(ring: &Ring<C>, id: usize) {
        let mut session = ring.log.session();
        for n in 1..=updates() {
            session.update(Nth { thread: id, n });
            if n.is_multiple_of(2) {
                ring.pass_on(id);
            }
            if n.is_multiple_of(40) {
                session.read(|(_, last)| assert_eq!(last[id], n));
            }
            if n.is_multiple_of(70) {
                // Another fibre's log, with its pending operations.
                drop(session);
                yield_now();
                session = ring.log.session();
            }
        }
    }
    everywhere(work, work, work, |(count, last)| {
        assert_eq!(*count, FIBRES * updates());
        assert!(last.iter().all(|&n| n == updates()));
    });
}

/// A fibre that only reads sees whole states that never go back; half of the fibres update
/// meanwhile.
#[test]
fn reads_of_fibres_work_as_those_of_threads() {
    fn work<C: Clock>(ring: &Ring<C>, id: usize) {
        let mut before = (0, vec![0; FIBRES]);
        let mut session = ring.log.session();
        for n in 1..=updates() {
            if id.is_multiple_of(2) {
                session.update(Nth { thread: id, n });
            } else {
                let look = |now: &State| {
                    assert_eq!(now.0, now.1.iter().sum::<usize>());
                    assert!(now.1.iter().zip(&before.1).all(|(now, then)| now >= then));
                    now.clone()
                };
                // Without a session, too.
                before = if n.is_multiple_of(2) {
                    session.read(look)
                } else {
                    ring.log.read(look)
                };
            }
            ring.pass_on(id);
        }
    }
    everywhere(work, work, work, |(count, _)| {
        assert_eq!(*count, FIBRES / 2 * updates());
    });
}

fn updates() -> usize {
    stressed(2_000)
}

/// A wait inside a read would block all other readers. It is refused, by name, and nobody is
/// blocked.
#[test]
fn a_fibre_may_not_be_suspended_in_a_read() {
    // A panic that is built with a sanitizer takes more than the usual.
    let room = StackSize::new(1 << 20).unwrap();
    let cluster = promise::start(Cluster::builder().stack_size(room)).unwrap();
    let fibre = cluster.spawn(|| {
        let log = OpLog::new(0, Logical::new());
        log.session().update(Add(1));
        let gate = Semaphore::new(0);
        let said = panic_of(|| log.read(|_| gate.acquire()));
        (said, log.read(|&n| n))
    });
    let (said, n) = fibre.join().unwrap();
    assert!(said.contains("an `OpLog` read"), "{said}");
    assert_eq!(n, 1);
}
