//! A lock per variable, word and value on one line: any lock of `corelay-locks`.

use crate::method::{Contender, Kind, Method};
use crate::workload::fetch_add::{OBJECT_BYTES, Point};
use crate::workload::random::Client;
use corelay_locks::{Clh, Mcs, ParkingLot, StdMutex, Ticket, Ttas};
use corelay_sync::{Session, Shared};
use std::ops::Range;

pub(crate) const MUTEX: Method = method("mutex", |p, _| Ok(Locks::boxed(p, StdMutex::new)));
pub(crate) const PARKING_LOT: Method =
    method("parking-lot", |p, _| Ok(Locks::boxed(p, ParkingLot::new)));
pub(crate) const TTAS: Method = method("ttas", |p, _| Ok(Locks::boxed(p, Ttas::new)));
pub(crate) const TICKET: Method = method("ticket", |p, _| Ok(Locks::boxed(p, Ticket::new)));
pub(crate) const MCS: Method = method("mcs", |p, _| Ok(Locks::boxed(p, Mcs::new)));
pub(crate) const CLH: Method = method("clh", |p, _| Ok(Locks::boxed(p, Clh::new)));

const fn method(name: &'static str, build: super::Build) -> Method {
    Method {
        name,
        kind: Kind::Direct,
        window: 1,
        bytes_per_var: OBJECT_BYTES as u64,
        build,
    }
}

struct Locks<L> {
    threads: usize,
    variables: Box<[L]>,
}

impl<L> Locks<L>
where
    L: Shared<Value = u64> + Send + Sync + 'static,
{
    fn boxed(point: &Point, lock: fn(u64) -> L) -> Box<dyn Contender> {
        const { assert!(size_of::<L>() == OBJECT_BYTES && align_of::<L>() == OBJECT_BYTES) };
        let variables = (0..point.vars).map(|_| lock(0)).collect();
        Box::new(Self {
            threads: point.threads,
            variables,
        })
    }
}

impl<L> Contender for Locks<L>
where
    L: Shared<Value = u64> + Send + Sync + 'static,
{
    fn clients(&self) -> Range<usize> {
        0..self.threads
    }

    fn client(&self, client: Client) -> u64 {
        // A lock's session is a pointer: opening one costs nothing.
        client.drive(|var| {
            self.variables[var].session().apply(|count| {
                let old = *count;
                *count = old.wrapping_add(1);
                old
            })
        })
    }

    fn total(&self) -> u64 {
        self.variables
            .iter()
            .map(|lock| lock.session().apply(|count| *count))
            .sum()
    }
}
