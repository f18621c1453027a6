//! `rlu-list` and `rlu-hash`: sorted linked lists of keys; a single list, or one for each bucket
//! (O5).
//!
//! | method | module | reads | updates |
//! |---|---|---|---|
//! | `mutex` | `shared` | in the lock of the list | likewise |
//! | `trust` | `shared` | on the trustee | likewise |
//! | `rcu` | `rcu` | pinned in an epoch, without a lock | in the lock of the list; a removed node is freed when no reader can see it |
//! | `rlu-logical`, `rlu-ordo` | `rlu` | under a snapshot | lock and copy the nodes that they change |
//! | `rlu-logical-w10`, `rlu-ordo-w10` | `rlu` | likewise | likewise, made visible to others ten at a time |
//! | `rlu-logical-timed`, `rlu-ordo-timed` | `rlu` | likewise | as without `timed`, and the time of their parts is taken |
//!
//! A list begins with every other possible key, inserted in random order, so that its nodes do not
//! lie next to each other. Half of the updates insert a random key and half remove one, so that the
//! list keeps about its length.
//!
//! At the end the keys of each list must ascend. All lists together must have the keys of the
//! beginning and those that clients report as inserted, without those reported as removed; their
//! number and the sum of their fingerprints are compared.

mod list;
mod rcu;
mod rlu;
mod shared;

use super::clocks;
use super::ledger::Ledger;
use super::method::Build;
use super::served::clients;
use super::spec::{Bench, Spec};
use corelay_clock::{Clock, Logical, Timed};
use corelay_lab_measure::method::Contender;
use corelay_lab_measure::schema::{ConflictCounts, TimeOfParts, Trustee};
use corelay_lab_measure::workload::point::Point;
use corelay_lab_measure::workload::random::{Client, Random};
use corelay_sync::counter;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(super) const MUTEX: Build = |spec, point, _| contender(spec, point, shared::locked);
pub(super) const TRUST: Build = |spec, point, _| contender(spec, point, shared::delegated);
pub(super) const RCU: Build =
    |spec, point, _| contender(spec, point, |_, shape| Ok(rcu::Rcu::new(shape)));

pub(super) const RLU_LOGICAL: Build = |spec, point, _| rlu(spec, point, Logical::new(), 1);
pub(super) const RLU_LOGICAL_10: Build = |spec, point, _| rlu(spec, point, Logical::new(), 10);
pub(super) const RLU_ORDO: Build = |spec, point, _| rlu(spec, point, clocks::ordo(spec.scale)?, 1);
pub(super) const RLU_ORDO_10: Build =
    |spec, point, _| rlu(spec, point, clocks::ordo(spec.scale)?, 10);

pub(super) const RLU_LOGICAL_TIMED: Build =
    |spec, point, _| rlu(spec, point, timed(Logical::new())?, 1);
pub(super) const RLU_ORDO_TIMED: Build =
    |spec, point, _| rlu(spec, point, timed(clocks::ordo(spec.scale)?)?, 1);

/// A clock on which read-log-update takes the time of its parts.
fn timed<C: Clock>(clock: C) -> Result<Timed<C>, String> {
    Timed::new(clock).ok_or_else(|| {
        let source = corelay_sync::ticks_source();
        format!("the CPUs' counter cannot take the time of parts here: {source}")
    })
}

/// Sets up a contender with an RLU list, or with a table if there are several lists.
fn rlu<C: Clock + 'static>(
    spec: Spec,
    point: &Point,
    clock: C,
    deferral: usize,
) -> Result<Box<dyn Contender>, String> {
    match spec.bench {
        Bench::List { .. } => contender(spec, point, |_, _| Ok(rlu::List::new(clock, deferral))),
        _ => contender(spec, point, |_, shape| {
            Ok(rlu::Table::new(clock, deferral, shape))
        }),
    }
}

/// Lists of keys that threads share.
trait Set: Send + Sync + 'static {
    /// A thread's session with the lists.
    type Session<'a>: SetSession
    where
        Self: 'a;

    /// Opens a session for the calling thread.
    fn session(&self) -> Self::Session<'_>;

    /// The keys of each list, in the order of the links. Called while no thread changes them.
    fn keys(&self) -> Vec<Vec<u64>>;

    /// Aborted operations by reason, since the lists were made, if they count them.
    fn counts(&self) -> ConflictCounts {
        ConflictCounts::default()
    }

    /// Whether the counts have the time of the operations' parts.
    fn is_timed(&self) -> bool {
        false
    }

    /// Ends the trustees, if there are any; returns their counts. Nothing is called afterwards.
    fn end(&mut self) -> Vec<Trustee> {
        Vec::new()
    }
}

/// The operations of a thread on the lists.
trait SetSession {
    /// Whether the list has the key.
    fn contains(&mut self, bucket: usize, key: u64) -> bool;

    /// Inserts the key. Returns false if the list had it.
    fn insert(&mut self, bucket: usize, key: u64) -> bool;

    /// Removes the key. Returns false if the list did not have it.
    fn remove(&mut self, bucket: usize, key: u64) -> bool;
}

/// The sizes and update rate of a workload.
#[derive(Clone, Copy, Debug)]
struct Shape {
    buckets: usize,
    /// Keys of each list at the beginning.
    size: usize,
    updates: u32,
}

impl Shape {
    fn of(bench: Bench) -> Option<Self> {
        match bench {
            Bench::List { size, updates } => Some(Self {
                buckets: 1,
                size,
                updates,
            }),
            Bench::Hash {
                buckets,
                size,
                updates,
            } => Some(Self {
                buckets,
                size,
                updates,
            }),
            _ => None,
        }
    }

    /// Number of possible keys of a list.
    fn range(self) -> u64 {
        2 * self.size as u64
    }
}

/// The number of keys, and the sum of their fingerprints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Census {
    keys: u64,
    fingerprints: u64,
}

impl Census {
    fn add(&mut self, bucket: usize, key: u64) {
        self.keys = self.keys.wrapping_add(1);
        self.fingerprints = self.fingerprints.wrapping_add(fingerprint(bucket, key));
    }

    fn remove(&mut self, bucket: usize, key: u64) {
        self.keys = self.keys.wrapping_sub(1);
        self.fingerprints = self.fingerprints.wrapping_sub(fingerprint(bucket, key));
    }

    fn merge(&mut self, other: Self) {
        self.keys = self.keys.wrapping_add(other.keys);
        self.fingerprints = self.fingerprints.wrapping_add(other.fingerprints);
    }
}

/// A random-looking number for each key of each list.
fn fingerprint(bucket: usize, key: u64) -> u64 {
    Random::new((bucket as u64) << 32 ^ key).next()
}

/// A contender of `rlu-list` or `rlu-hash`.
struct SetContender<S> {
    set: S,
    shape: Shape,
    clients: Range<usize>,
    ledger: Ledger,
    /// The keys that the lists must have, by the clients' reports.
    census: Mutex<Census>,
}

/// Sets up a contender with the lists that `make` makes, filled with their first keys.
fn contender<S: Set>(
    spec: Spec,
    point: &Point,
    make: impl FnOnce(&Point, Shape) -> Result<S, String>,
) -> Result<Box<dyn Contender>, String> {
    let shape = Shape::of(spec.bench).expect("a workload of lists");
    let set = make(point, shape)?;
    let census = fill(&set, shape, point.seed);
    Ok(Box::new(SetContender {
        set,
        shape,
        clients: clients(point),
        ledger: Ledger::default(),
        census: Mutex::new(census),
    }))
}

/// Inserts every other key of each list, in random order; returns their census.
fn fill(set: &impl Set, shape: Shape, seed: u64) -> Census {
    let _client = corelay::ClientGuard::new();
    let mut random = Random::new(seed);
    let mut census = Census::default();
    let mut places: Vec<(usize, u64)> = (0..shape.buckets)
        .flat_map(|bucket| (0..shape.size as u64).map(move |nth| (bucket, 2 * nth)))
        .collect();
    let mut session = set.session();
    for last in (0..places.len()).rev() {
        let (bucket, key) = places.swap_remove(random.below(last as u64 + 1) as usize);
        assert!(session.insert(bucket, key), "an empty list has no keys");
        census.add(bucket, key);
    }
    census
}

impl<S> SetContender<S> {
    fn census(&self) -> MutexGuard<'_, Census> {
        self.census.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Set> Contender for SetContender<S> {
    fn clients(&self) -> Range<usize> {
        self.clients.clone()
    }

    fn client(&self, client: Client) -> u64 {
        let Shape {
            buckets, updates, ..
        } = self.shape;
        let range = self.shape.range();
        let begun = self.set.is_timed().then(counter::read_between);
        let mut session = self.set.session();
        let mut change = Census::default();
        // Out of 200, so that inserts and removals are exactly half of the updates each.
        let (inserts, changes) = (u64::from(updates), 2 * u64::from(updates));
        let done = client.among(usize::MAX).drive(|seed| {
            let mut random = Random::new(seed as u64);
            let key = random.below(range);
            let bucket = match buckets {
                1 => 0,
                buckets => random.below(buckets as u64) as usize,
            };
            // The seed is random, too: its high half chooses the operation.
            let coin = ((seed as u64 >> 32) * 200) >> 32;
            let found = if coin >= changes {
                session.contains(bucket, key)
            } else if coin < inserts {
                let inserted = session.insert(bucket, key);
                if inserted {
                    change.add(bucket, key);
                }
                inserted
            } else {
                let removed = session.remove(bucket, key);
                if removed {
                    change.remove(bucket, key);
                }
                removed
            };
            u64::from(found)
        });
        drop(session);
        if let Some(begun) = begun {
            let whole = counter::read_between().saturating_sub(begun);
            self.ledger.add(ConflictCounts {
                parts: TimeOfParts {
                    whole,
                    ..TimeOfParts::default()
                },
                ..ConflictCounts::default()
            });
        }
        self.census().merge(change);
        done
    }

    fn total(&self) -> Result<u64, String> {
        let (mut census, range) = (Census::default(), self.shape.range());
        for (bucket, keys) in self.set.keys().iter().enumerate() {
            if !keys.is_sorted_by(|a, b| a < b) {
                return Err(format!("the keys of list {bucket} do not ascend"));
            }
            if let Some(key) = keys.iter().find(|&&key| key >= range) {
                return Err(format!("no client has inserted {key} into list {bucket}"));
            }
            keys.iter().for_each(|&key| census.add(bucket, key));
        }
        let expected = *self.census();
        if census.keys != expected.keys {
            return Err(format!(
                "the lists have {} keys instead of {}",
                census.keys, expected.keys
            ));
        }
        if census != expected {
            return Err("the lists have other keys than were inserted".to_owned());
        }
        Ok(0)
    }

    fn counts(&self) -> Option<ConflictCounts> {
        Some(self.ledger.take(self.set.counts()))
    }

    fn end(&mut self) -> Vec<Trustee> {
        self.set.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ordered::tests::{assert_caught, measure};
    use corelay_lab_measure::method::{Kind, Method};
    use rcu::{Rcu, RcuSession};

    /// Ways in which a list can be wrong.
    #[derive(Clone, Copy)]
    enum Fault {
        LosesInsertion,
        LosesRemoval,
        OtherKey,
    }

    struct Broken {
        fault: Fault,
        inner: Rcu,
    }

    struct Careless<'a> {
        fault: Fault,
        inner: RcuSession<'a>,
        changes: u64,
    }

    impl Set for Broken {
        type Session<'a> = Careless<'a>;

        fn session(&self) -> Careless<'_> {
            Careless {
                fault: self.fault,
                inner: self.inner.session(),
                changes: 0,
            }
        }

        fn keys(&self) -> Vec<Vec<u64>> {
            self.inner.keys()
        }
    }

    impl SetSession for Careless<'_> {
        fn contains(&mut self, bucket: usize, key: u64) -> bool {
            self.inner.contains(bucket, key)
        }

        fn insert(&mut self, bucket: usize, key: u64) -> bool {
            let there = self.contains(bucket, key);
            self.changes += 1;
            match self.fault {
                Fault::LosesInsertion if self.changes == 100 && !there => true,
                Fault::OtherKey if self.changes >= 100 && key == 3 => {
                    self.inner.insert(bucket, 5) || self.inner.insert(bucket, key)
                }
                _ => self.inner.insert(bucket, key),
            }
        }

        fn remove(&mut self, bucket: usize, key: u64) -> bool {
            let there = self.contains(bucket, key);
            self.changes += 1;
            match self.fault {
                Fault::LosesRemoval if self.changes > 100 && there => true,
                _ => self.inner.remove(bucket, key),
            }
        }
    }

    fn broken(fault: Fault) -> impl Fn(&Point, Shape) -> Result<Broken, String> {
        move |_, shape| {
            let inner = Rcu::new(shape);
            Ok(Broken { fault, inner })
        }
    }

    #[test]
    fn lost_and_wrong_keys_are_found() {
        let bench = Bench::List {
            size: 64,
            updates: 50,
        };
        let method = |build| Method::new("broken", Kind::Direct, build);
        let faults: [Method<Spec>; 3] = [
            method(|spec, point, _| contender(spec, point, broken(Fault::LosesInsertion))),
            method(|spec, point, _| contender(spec, point, broken(Fault::LosesRemoval))),
            method(|spec, point, _| contender(spec, point, broken(Fault::OtherKey))),
        ];
        let runs = measure(bench, &faults, 2);
        assert_caught(&runs[0], " keys instead of ");
        assert_caught(&runs[1], " keys instead of ");
        assert_caught(&runs[2], "other keys than were inserted");
    }

    #[test]
    fn keys_that_do_not_ascend_are_found() {
        struct Fixed(Vec<Vec<u64>>);
        struct Nothing;
        impl Set for Fixed {
            type Session<'a> = Nothing;
            fn session(&self) -> Nothing {
                Nothing
            }
            fn keys(&self) -> Vec<Vec<u64>> {
                self.0.clone()
            }
        }
        impl SetSession for Nothing {
            fn contains(&mut self, _: usize, _: u64) -> bool {
                false
            }
            fn insert(&mut self, _: usize, _: u64) -> bool {
                true
            }
            fn remove(&mut self, _: usize, _: u64) -> bool {
                false
            }
        }
        let said = |keys: &[u64]| {
            let bench = Bench::List {
                size: 2,
                updates: 0,
            };
            let scale = crate::ordered::spec::Scale::ONE;
            let keys = vec![keys.to_vec()];
            let contender = contender(Spec { bench, scale }, &Point::small(2), |_, _| {
                Ok(Fixed(keys))
            });
            contender.unwrap().total()
        };
        assert_eq!(said(&[0, 2]), Ok(0));
        assert!(said(&[2, 0]).unwrap_err().contains("do not ascend"));
        assert!(said(&[0, 0]).unwrap_err().contains("do not ascend"));
        assert!(said(&[0, 9]).unwrap_err().contains("inserted 9"));
    }
}
