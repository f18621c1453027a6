//! `kept`: small transactions on a store that keeps its rows on disk. A transaction counts when it is
//! on disk, so that it survives a loss of power.
//!
//! Each transaction adds 1 to a number in some rows, which it reads for that. At the end the store is
//! closed and opened again, and the numbers in all rows must sum up to the answered additions.
//!
//! | method | module | a commit |
//! |---|---|---|
//! | `redb`, `fjall`, `sled`, `heed` | `embedded` | a transaction of that crate with its own sync |
//! | `redb-grouped`, `fjall-grouped`, `sled-grouped`, `heed-grouped` | `grouped` | one transaction of that crate for those of all threads that wait |
//!
//! | `occ-…`, `silo`, `tictoc`, `mvcc-…` | `stored` | a transaction of corelay's store, and the sync of its epoch |
//!
//! `recover` opens corelay's store again and again; see `recover`.
//!
//! # What is fair
//! Each method has the fastest setting of its crate with which a commit is on disk before it is
//! answered. The crates with one writer at a time cannot share a sync between threads by themselves;
//! the methods `…-grouped` do it for them: a thread that finds no leader becomes it, gathers the
//! transactions of the other threads for a moment, and commits them all in one. `sled-flush` is sled's
//! own promise, which is less than that of the others; see `embedded::sled`.

mod contender;
mod embedded;
mod folder;
mod grouped;
mod recover;
mod stored;
#[cfg(test)]
mod tests;

pub use contender::Shape;
pub use folder::check_folder;
pub use recover::LogShape;

use super::clocks;
use super::method::Build;
use super::spec::{Bench, Spec};
use contender::{Keeper, contender};
use corelay_clock::Logical;
use corelay_lab_measure::method::{Contender, SetupLimit};
use corelay_lab_measure::workload::point::Point;
use corelay_txn::store::{Mvcc, Occ, Protocol, Silo, TicToc};
use embedded::{Alone, Embedded, Fjall, Heed, Redb, Sled};
use grouped::Grouped;
use std::path::Path;
use stored::Stored;

/// Sets a method up whose stores `open` opens.
fn build<K: Keeper>(
    spec: Spec,
    point: &Point,
    limit: &SetupLimit,
    open: impl Fn(&Path, Shape) -> Result<K, String> + Send + Sync + 'static,
) -> Result<Box<dyn Contender>, String> {
    let Bench::Kept { shape, dir } = spec.bench else {
        unreachable!("rows that are kept on disk");
    };
    contender(shape, dir, point, limit, open)
}

fn alone<E: Embedded>(
    spec: Spec,
    point: &Point,
    limit: &SetupLimit,
) -> Result<Box<dyn Contender>, String> {
    build(spec, point, limit, |dir, shape| {
        E::open(dir, shape).map(Alone)
    })
}

fn grouped<E: Embedded>(
    spec: Spec,
    point: &Point,
    limit: &SetupLimit,
) -> Result<Box<dyn Contender>, String> {
    let clients = point.threads;
    build(spec, point, limit, move |dir, shape| {
        Ok(Grouped::new(E::open(dir, shape)?, clients))
    })
}

/// Sets corelay's store up, with a protocol that is made anew for each opening.
fn stored<P: Protocol>(
    spec: Spec,
    point: &Point,
    limit: &SetupLimit,
    protocol: fn(Spec) -> Result<P, String>,
) -> Result<Box<dyn Contender>, String> {
    let protocol = move || protocol(spec);
    match spec.bench {
        Bench::Recover { shape, dir } => recover::contender(shape, dir, limit, protocol),
        _ => build(spec, point, limit, move |dir, shape| {
            Stored::open(protocol()?, dir, shape)
        }),
    }
}

pub(super) const REDB: Build = alone::<Redb>;
pub(super) const REDB_GROUPED: Build = grouped::<Redb>;
pub(super) const FJALL: Build = alone::<Fjall>;
pub(super) const FJALL_GROUPED: Build = grouped::<Fjall>;
pub(super) const SLED: Build = alone::<Sled<true>>;
pub(super) const SLED_GROUPED: Build = grouped::<Sled<true>>;
pub(super) const SLED_FLUSH: Build = alone::<Sled<false>>;
pub(super) const HEED: Build = alone::<Heed>;
pub(super) const HEED_GROUPED: Build = grouped::<Heed>;
pub(super) const SILO: Build = |spec, point, limit| stored(spec, point, limit, |_| Ok(Silo));
pub(super) const TICTOC: Build = |spec, point, limit| stored(spec, point, limit, |_| Ok(TicToc));
pub(super) const OCC_LOGICAL: Build =
    |spec, point, limit| stored(spec, point, limit, |_| Ok(Occ::new(Logical::new())));
pub(super) const OCC_ORDO: Build = |spec, point, limit| {
    stored(spec, point, limit, |spec| {
        Ok(Occ::new(clocks::ordo(spec.scale)?))
    })
};
pub(super) const MVCC_LOGICAL: Build =
    |spec, point, limit| stored(spec, point, limit, |_| Ok(Mvcc::new(Logical::new())));
pub(super) const MVCC_ORDO: Build = |spec, point, limit| {
    stored(spec, point, limit, |spec| {
        Ok(Mvcc::new(clocks::ordo(spec.scale)?))
    })
};
