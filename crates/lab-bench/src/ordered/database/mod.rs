//! `ycsb` and `tpcc`: databases, and transactions on them (O7).
//!
//! ```text
//!   ycsb::Ycsb, tpcc::Tpcc ── Work: tables, terminals, a check
//!            │ each transaction is a Procedure, written once
//!            ▼
//!   engine::Transaction ◄── a transaction of the store, or plain maps of which one client is inside
//!            ▲
//!   host::Host: the store that runs procedures; the mutex or the trustee of all tables; dashmap
//! ```
//!
//! | method | module | a transaction |
//! |---|---|---|
//! | `mutex`, `trust` | `engine::plain` | in the one lock, or on the one trustee, of all tables |
//! | `dashmap` | `engine::dash` | one request, in the lock of a shard |
//! | `occ-…`, `silo`, `tictoc`, `mvcc-…` | `engine::stored` | of corelay's store |

mod contender;
mod engine;
mod host;
mod tape;
pub mod tpcc;
pub mod ycsb;

use super::clocks;
use super::method::Build;
use super::spec::{Bench, Spec};
use contender::{Work, contender};
use corelay_clock::Logical;
use corelay_history::transactions::Level;
use corelay_lab_measure::method::{Contender, SetupLimit};
use corelay_lab_measure::workload::point::Point;
use corelay_txn::store::{Isolation, Mvcc, Occ, Protocol, Silo, TicToc};
pub(super) use host::aborts;
use host::{Dash, Stored, delegated, locked};
pub use tape::{Tape, Taped};
use tpcc::Tpcc;
use ycsb::Ycsb;

/// The names of the methods that are corelay's store.
pub const STORES: &[&str] = &[
    "silo",
    "tictoc",
    "occ-logical",
    "occ-ordo",
    "mvcc-logical",
    "mvcc-ordo",
];

/// A way of setting a host up for any work.
trait Way: Sized {
    /// The level of isolation that the host promises.
    fn level(&self) -> Level {
        Level::StrictSerializable
    }

    fn open<W: Work>(
        self,
        work: W,
        point: &Point,
        limit: &SetupLimit,
    ) -> Result<Box<dyn Contender>, String>;
}

/// Sets a workload up, on the host that `way` makes.
fn open(
    spec: Spec,
    point: &Point,
    limit: &SetupLimit,
    way: impl Way,
) -> Result<Box<dyn Contender>, String> {
    match spec.bench {
        Bench::Ycsb { shape, tape, .. } => {
            let tape = tape.map(|tape| (tape, way.level()));
            way.open(Ycsb::new(shape, tape), point, limit)
        }
        Bench::Tpcc { shape, .. } => way.open(Tpcc::new(shape), point, limit),
        _ => unreachable!("a database"),
    }
}

struct Mutex;

impl Way for Mutex {
    fn open<W: Work>(
        self,
        work: W,
        point: &Point,
        limit: &SetupLimit,
    ) -> Result<Box<dyn Contender>, String> {
        contender(work, locked(work), point, limit)
    }
}

struct Trusted;

impl Way for Trusted {
    fn open<W: Work>(
        self,
        work: W,
        point: &Point,
        limit: &SetupLimit,
    ) -> Result<Box<dyn Contender>, String> {
        contender(work, delegated(work, point)?, point, limit)
    }
}

struct Sharded;

impl Way for Sharded {
    fn open<W: Work>(
        self,
        work: W,
        point: &Point,
        limit: &SetupLimit,
    ) -> Result<Box<dyn Contender>, String> {
        contender(work, Dash::new(work), point, limit)
    }
}

/// corelay's store with a protocol.
struct By<P>(P, Level);

impl<P: Protocol> Way for By<P> {
    fn level(&self) -> Level {
        self.1
    }

    fn open<W: Work>(
        self,
        work: W,
        point: &Point,
        limit: &SetupLimit,
    ) -> Result<Box<dyn Contender>, String> {
        contender(work, Stored::new(self.0, work), point, limit)
    }
}

pub(super) const MUTEX: Build = |spec, point, limit| open(spec, point, limit, Mutex);
pub(super) const TRUST: Build = |spec, point, limit| open(spec, point, limit, Trusted);
pub(super) const DASHMAP: Build = |spec, point, limit| open(spec, point, limit, Sharded);
pub(super) const SILO: Build =
    |spec, point, limit| open(spec, point, limit, By(Silo, Level::StrictSerializable));
pub(super) const TICTOC: Build =
    |spec, point, limit| open(spec, point, limit, By(TicToc, Level::Serializable));
pub(super) const OCC_LOGICAL: Build = |spec, point, limit| {
    let occ = Occ::new(Logical::new());
    open(spec, point, limit, By(occ, Level::StrictSerializable))
};
pub(super) const OCC_ORDO: Build = |spec, point, limit| {
    let occ = Occ::new(clocks::ordo(spec.scale)?);
    open(spec, point, limit, By(occ, Level::StrictSerializable))
};
pub(super) const MVCC_LOGICAL: Build = |spec, point, limit| {
    let mvcc = Mvcc::with_isolation(Logical::new(), isolation(spec));
    open(spec, point, limit, By(mvcc, level(isolation(spec))))
};
pub(super) const MVCC_ORDO: Build = |spec, point, limit| {
    let mvcc = Mvcc::with_isolation(clocks::ordo(spec.scale)?, isolation(spec));
    open(spec, point, limit, By(mvcc, level(isolation(spec))))
};

/// The level that the checker of histories knows by another name.
fn level(isolation: Isolation) -> Level {
    match isolation {
        Isolation::Snapshot => Level::SnapshotIsolation,
        Isolation::Serializable => Level::Serializable,
        Isolation::StrictlySerializable => Level::StrictSerializable,
    }
}

fn isolation(spec: Spec) -> Isolation {
    match spec.bench {
        Bench::Ycsb { isolation, .. } | Bench::Tpcc { isolation, .. } => isolation,
        _ => Isolation::default(),
    }
}
