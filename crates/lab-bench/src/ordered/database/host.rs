//! Hosts: what has the tables and runs procedures on them.

use super::contender::{Procedure, Work};
use super::engine::dash::Shards;
use super::engine::plain::Plain;
use crate::ordered::served::Served;
use corelay::Trust;
use corelay_lab_measure::schema::{Aborts, ConflictCounts, Trustee};
use corelay_lab_measure::workload::point::Point;
use corelay_locks::StdMutex;
use corelay_sync::Shared;
use corelay_txn::store::{Protocol, Reason, Store};
use std::iter::once;

/// Tables, and a way of running procedures on them.
pub(super) trait Host<W: Work>: Send + Sync + 'static {
    /// A thread's session with the host.
    type Session<'a>: Session<W>
    where
        Self: 'a;

    /// Opens a session for the calling thread.
    fn session(&self) -> Self::Session<'_>;

    /// Aborted attempts by reason since the host was made, if it counts them.
    fn counts(&self) -> ConflictCounts {
        ConflictCounts::default()
    }

    /// Ends the trustees, if there are any; returns their counts. Nothing is called afterwards.
    fn end(&mut self) -> Vec<Trustee> {
        Vec::new()
    }
}

/// A thread's session with a host.
pub(super) trait Session<W: Work> {
    /// Runs a procedure as one transaction; None if it gave itself up.
    fn run<T: Procedure<W>>(&mut self, procedure: &T) -> Option<T::Answer>;
}

/// corelay's store.
pub(super) struct Stored<W: Work, P: Protocol> {
    store: Store<P>,
    tables: W::Tables<Store<P>>,
}

impl<W: Work, P: Protocol> Stored<W, P> {
    pub(super) fn new(protocol: P, work: W) -> Self {
        let mut store = Store::new(protocol);
        let tables = work.tables(&mut store);
        Self { store, tables }
    }
}

impl<W: Work, P: Protocol> Host<W> for Stored<W, P> {
    type Session<'a> = &'a Self;

    fn session(&self) -> &Self {
        self
    }

    fn counts(&self) -> ConflictCounts {
        aborts(&self.store)
    }
}

/// Aborted attempts of a store by reason, and its uncertain comparisons.
pub(in crate::ordered) fn aborts<P: Protocol>(store: &Store<P>) -> ConflictCounts {
    let of = |reason| store.aborts(reason);
    ConflictCounts {
        aborts: Aborts {
            lock: of(Reason::Locked) + of(Reason::Yielded),
            validation: of(Reason::Validation),
            version: of(Reason::Version) + of(Reason::Refused),
            phantom: of(Reason::Phantom),
            uncertain: 0,
            unknown: 0,
        },
        uncertain: store.report().uncertain,
        ..ConflictCounts::default()
    }
}

impl<W: Work, P: Protocol> Session<W> for &Stored<W, P> {
    #[inline]
    fn run<T: Procedure<W>>(&mut self, procedure: &T) -> Option<T::Answer> {
        loop {
            let ended = if procedure.is_read_only() {
                self.store.read_only(|tx| procedure.run(tx, &self.tables))
            } else {
                self.store.transact(|tx| procedure.run(tx, &self.tables))
            };
            match ended {
                Ok(answer) => return Some(answer),
                // A transaction that lost its CPU for long is refused its old versions.
                Err(abort) if abort.reason() == Reason::Refused => {}
                Err(_) => return None,
            }
        }
    }
}

/// Plain maps behind one lock or on one trustee.
pub(super) struct Locked<W: Work, L> {
    maps: Served<L>,
    tables: W::Tables<Plain>,
}

/// All tables behind one mutex.
pub(super) fn locked<W: Work>(work: W) -> Locked<W, StdMutex<Plain>> {
    let mut maps = Plain::default();
    let tables = work.tables(&mut maps);
    Locked {
        maps: Served::locked(once(maps)),
        tables,
    }
}

/// All tables on one trustee.
pub(super) fn delegated<W: Work>(
    work: W,
    point: &Point,
) -> Result<Locked<W, Trust<Plain>>, String> {
    let mut maps = Plain::default();
    let tables = work.tables(&mut maps);
    Ok(Locked {
        maps: Served::delegated(point, once(maps))?,
        tables,
    })
}

impl<W: Work, L> Host<W> for Locked<W, L>
where
    L: Shared<Value = Plain> + Send + Sync + 'static,
{
    type Session<'a> = InTurn<'a, W, L::Session<'a>>;

    fn session(&self) -> Self::Session<'_> {
        InTurn {
            maps: self.maps.sessions(),
            tables: &self.tables,
        }
    }

    fn end(&mut self) -> Vec<Trustee> {
        self.maps.end()
    }
}

/// A session with the single object that has all maps.
pub(super) struct InTurn<'a, W: Work, S> {
    maps: Box<[S]>,
    tables: &'a W::Tables<Plain>,
}

impl<W: Work, S: corelay_sync::Session<Value = Plain>> Session<W> for InTurn<'_, W, S> {
    #[inline]
    fn run<T: Procedure<W>>(&mut self, procedure: &T) -> Option<T::Answer> {
        let tables = self.tables;
        self.maps[0].apply(|maps| procedure.run(maps, tables).ok())
    }
}

/// Tables of the crate `dashmap`.
pub(super) struct Dash<W: Work>(W::Tables<Shards>);

impl<W: Work> Dash<W> {
    pub(super) fn new(work: W) -> Self {
        Self(work.tables(&mut Shards))
    }
}

impl<W: Work> Host<W> for Dash<W> {
    type Session<'a> = &'a Self;

    fn session(&self) -> &Self {
        self
    }
}

impl<W: Work> Session<W> for &Dash<W> {
    #[inline]
    fn run<T: Procedure<W>>(&mut self, procedure: &T) -> Option<T::Answer> {
        procedure.run(&mut Shards, &self.0).ok()
    }
}
