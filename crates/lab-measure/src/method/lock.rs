//! A lock per variable: any lock of `corelay-locks`.

use crate::method::{Contender, Kind, Method};
use crate::workload::operation::{Answer, LINE_BYTES, Operation, Workload};
use crate::workload::point::Point;
use crate::workload::random::Client;
use crate::workload::root::FetchRoot;
use corelay_locks::{
    Adaptive, CcSynch, Clh, DsmSynch, FlatCombining, Mcs, ParkingLot, StdMutex, Tas, Ticket, Ttas,
};
use corelay_sync::{Session, Shared};
use std::ops::Range;

/// The method `mutex`.
pub const fn mutex<W: Workload>() -> Method<W> {
    method::<_, StdMutex<_>>("mutex", |w, p, _| Ok(Locks::boxed(w, p, StdMutex::new)))
}
/// The method `mutex` of fetch-add, but each operation takes `ROOTS` square roots.
pub fn rooted<const ROOTS: u32>() -> Method {
    mutex().built_by(|_, p, setup_limit| (mutex().build)(FetchRoot::<ROOTS>, p, setup_limit))
}
/// The method `parking-lot`.
pub(crate) const fn parking_lot<W: Workload>() -> Method<W> {
    method::<_, ParkingLot<_>>("parking-lot", |w, p, _| {
        Ok(Locks::boxed(w, p, ParkingLot::new))
    })
}
/// The method `tas`.
pub(crate) const fn tas<W: Workload>() -> Method<W> {
    method::<_, Tas<_>>("tas", |w, p, _| Ok(Locks::boxed(w, p, Tas::new)))
}
/// The method `ttas`.
pub(crate) const fn ttas<W: Workload>() -> Method<W> {
    method::<_, Ttas<_>>("ttas", |w, p, _| Ok(Locks::boxed(w, p, Ttas::new)))
}
/// The method `ticket`.
pub(crate) const fn ticket<W: Workload>() -> Method<W> {
    method::<_, Ticket<_>>("ticket", |w, p, _| Ok(Locks::boxed(w, p, Ticket::new)))
}
/// The method `mcs`.
pub(crate) const fn mcs<W: Workload>() -> Method<W> {
    method::<_, Mcs<_>>("mcs", |w, p, _| Ok(Locks::boxed(w, p, Mcs::new)))
}
/// The method `clh`.
pub(crate) const fn clh<W: Workload>() -> Method<W> {
    method::<_, Clh<_>>("clh", |w, p, _| Ok(Locks::boxed(w, p, Clh::new)))
}
/// The method `flat-combining`.
pub(crate) const fn flat_combining<W: Workload>() -> Method<W> {
    method::<_, FlatCombining<_>>("flat-combining", |w, p, _| {
        Ok(Locks::boxed(w, p, FlatCombining::new))
    })
}
/// The method `cc-synch`.
pub(crate) const fn cc_synch<W: Workload>() -> Method<W> {
    method::<_, CcSynch<_>>("cc-synch", |w, p, _| Ok(Locks::boxed(w, p, CcSynch::new)))
}
/// The method `dsm-synch`.
pub(crate) const fn dsm_synch<W: Workload>() -> Method<W> {
    method::<_, DsmSynch<_>>("dsm-synch", |w, p, _| Ok(Locks::boxed(w, p, DsmSynch::new)))
}
/// The method `adaptive`.
pub(crate) const fn adaptive<W: Workload>() -> Method<W> {
    method::<_, Adaptive<_>>("adaptive", |w, p, _| Ok(Locks::boxed(w, p, Adaptive::new)))
}

const fn method<W: Workload, L>(name: &'static str, build: super::Build<W>) -> Method<W>
where
    L: Shared<Value = W::Object>,
{
    Method {
        bytes_per_var: size_of::<L>() as u64,
        ..Method::new(name, Kind::Direct, build)
    }
}

pub(super) struct Locks<W, L> {
    workload: W,
    threads: usize,
    variables: Box<[L]>,
}

impl<W, L> Locks<W, L>
where
    W: Workload,
    L: Shared<Value = W::Object> + Send + Sync + 'static,
{
    /// Whether a session is only a pointer to its lock.
    const IS_FREE_TO_OPEN: bool = size_of::<L::Session<'static>>() == size_of::<&L>();

    pub(super) fn boxed(
        workload: W,
        point: &Point,
        lock: fn(W::Object) -> L,
    ) -> Box<dyn Contender> {
        const { assert!(align_of::<L>() >= LINE_BYTES) };
        let locks = (0..point.vars).map(|_| lock(workload.object()));
        Box::new(Self {
            workload,
            threads: point.threads,
            variables: locks.collect(),
        })
    }
}

impl<W, L> Contender for Locks<W, L>
where
    W: Workload,
    L: Shared<Value = W::Object> + Send + Sync + 'static,
{
    fn clients(&self) -> Range<usize> {
        0..self.threads
    }

    fn client(&self, client: Client) -> u64 {
        let workload = self.workload;
        if Self::IS_FREE_TO_OPEN {
            return client.call_each(workload, |var, operation| {
                run(operation, &mut self.variables[var].session())
            });
        }
        let mut kept = Kept::of(&self.variables);
        client.call_each(workload, |var, operation| run(operation, kept.session(var)))
    }

    fn total(&self) -> Result<u64, String> {
        let seen = |lock: &L| lock.session().apply(|object| self.workload.check(object));
        self.variables.iter().map(seen).sum()
    }
}

#[inline(always)]
fn run<T, O>(operation: O, session: &mut impl Session<Value = T>) -> u64
where
    O: Operation<T> + Send,
{
    session.apply(move |object| operation.run(object)).number()
}

/// Sessions that a client keeps from one operation to the next, as a program would, where a session
/// has memory of its own. With many variables it keeps those of the last ones used: they seldom meet
/// another client, and a session that has not had to wait has no memory yet.
struct Kept<'a, L: Shared + 'a> {
    variables: &'a [L],
    /// Each session with the number of its variable, at that number modulo the length.
    sessions: [(usize, L::Session<'a>); SESSIONS],
}

const SESSIONS: usize = 64;

impl<'a, L: Shared> Kept<'a, L> {
    fn of(variables: &'a [L]) -> Self {
        let session = |i: usize| {
            let var = i % variables.len();
            (var, variables[var].session())
        };
        Self {
            variables,
            sessions: std::array::from_fn(session),
        }
    }

    #[inline(always)]
    fn session(&mut self, var: usize) -> &mut L::Session<'a> {
        let (of, session) = &mut self.sessions[var % SESSIONS];
        if *of != var {
            *of = var;
            *session = self.variables[var].session();
        }
        session
    }
}
