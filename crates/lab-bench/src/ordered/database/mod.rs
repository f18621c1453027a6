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
pub mod tpcc;
pub mod ycsb;

use super::clocks;
use super::method::Build;
use super::spec::{Bench, Spec};
use contender::{Work, contender};
use corelay_clock::Logical;
use corelay_lab_measure::method::{Contender, SetupLimit};
use corelay_lab_measure::workload::point::Point;
use corelay_txn::store::{Isolation, Mvcc, Occ, Protocol, Silo, TicToc};
use host::{Dash, Stored, delegated, locked};
use tpcc::Tpcc;
use ycsb::Ycsb;

/// A way of setting a host up for any work.
trait Way {
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
        Bench::Ycsb { shape, .. } => way.open(Ycsb::new(shape), point, limit),
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

impl<P: Protocol> Way for P {
    fn open<W: Work>(
        self,
        work: W,
        point: &Point,
        limit: &SetupLimit,
    ) -> Result<Box<dyn Contender>, String> {
        contender(work, Stored::new(self, work), point, limit)
    }
}

pub(super) const MUTEX: Build = |spec, point, limit| open(spec, point, limit, Mutex);
pub(super) const TRUST: Build = |spec, point, limit| open(spec, point, limit, Trusted);
pub(super) const DASHMAP: Build = |spec, point, limit| open(spec, point, limit, Sharded);
pub(super) const SILO: Build = |spec, point, limit| open(spec, point, limit, Silo);
pub(super) const TICTOC: Build = |spec, point, limit| open(spec, point, limit, TicToc);
pub(super) const OCC_LOGICAL: Build =
    |spec, point, limit| open(spec, point, limit, Occ::new(Logical::new()));
pub(super) const OCC_ORDO: Build =
    |spec, point, limit| open(spec, point, limit, Occ::new(clocks::ordo(spec.scale)?));
pub(super) const MVCC_LOGICAL: Build = |spec, point, limit| {
    let mvcc = Mvcc::with_isolation(Logical::new(), isolation(spec));
    open(spec, point, limit, mvcc)
};
pub(super) const MVCC_ORDO: Build = |spec, point, limit| {
    let mvcc = Mvcc::with_isolation(clocks::ordo(spec.scale)?, isolation(spec));
    open(spec, point, limit, mvcc)
};

fn isolation(spec: Spec) -> Isolation {
    match spec.bench {
        Bench::Ycsb { isolation, .. } | Bench::Tpcc { isolation, .. } => isolation,
        _ => Isolation::default(),
    }
}
