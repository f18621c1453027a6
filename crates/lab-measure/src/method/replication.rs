//! Node replication (Calciu, Sen, Balakrishnan, Aguilera: "Black-box Concurrent Data Structures for
//! NUMA Architectures", ASPLOS 2017), by its authors' crate `node-replication`.
//!
//! Every memory node has a copy of all objects. The threads of a node combine their operations and
//! append them to a log that all nodes share; each node carries the whole log out on its copy. An
//! operation that only reads runs on the node's copy once that has caught up with the log, beside
//! other readers. A workload's operation may change its object, so here every one goes through the
//! log; structures whose reads change nothing read their copy (`workload::structure::rivals`).
//!
//! With one memory node there is one copy, and what remains is flat combining with a log.
//!
//! The log has room for some thousand operations. A copy whose threads do nothing must not stop the
//! others, so every writer carries the log out on the other copies now and then, as the paper has it
//! ("inactive replicas", section 5.2).

use crate::method::{Contender, Kind, Method};
use crate::workload::operation::{Aligned, Answer, Operation, Workload};
use crate::workload::point::Point;
use crate::workload::random::Client;
use corelay_topology::{memory_nodes, node_of_cpu};
use node_replication::{Dispatch, Log, MAX_REPLICAS_PER_LOG, Replica, ReplicaToken};
use std::convert::Infallible;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// The name of the method.
pub(crate) const NAME: &str = "node-replication";

/// Bytes of a log; its authors advise 1 to 2 MiB. An entry has a cache line.
const LOG_BYTES: usize = 2 << 20;

/// Operations that a writer logs before it looks after the other copies. As many writers as a copy
/// admits, 256, fill a quarter of the log meanwhile.
const HELP_EVERY: u32 = 32;

/// Bytes that a log and the places of its writers take, roughly.
pub(crate) const BYTES: u64 = 2 * LOG_BYTES as u64;

/// The number of copies that this machine has by itself: one for each memory node.
pub(crate) fn copies_here() -> usize {
    memory_nodes().unwrap_or(1).clamp(1, MAX_REPLICAS_PER_LOG)
}

/// A structure of which every memory node has a copy, and the log of its changes.
pub(crate) struct Replicated<D: Dispatch<WriteOperation: 'static> + Sync> {
    copies: Box<[Copy<D>]>,
    /// The lock of the helpers: one thread at a time uses their places.
    help: Mutex<()>,
}

struct Copy<D: Dispatch<WriteOperation: 'static> + Sync> {
    replica: Arc<Replica<'static, D>>,
    helper: ReplicaToken,
}

/// A thread's place at a copy. No two threads use one at the same time.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    copy: usize,
    token: ReplicaToken,
    /// Operations until the thread looks after the other copies.
    left: u32,
}

impl<D: Dispatch<WriteOperation: 'static> + Sync> Replicated<D> {
    /// Makes copies, all of which `make` makes equal.
    pub(crate) fn new(copies: usize, mut make: impl FnMut() -> D) -> Self {
        let log = Arc::new(Log::new(LOG_BYTES));
        let copy = |_| {
            let replica = Replica::with_data(&log, make());
            let helper = replica.register().expect("a new copy has places");
            Copy { replica, helper }
        };
        Self {
            copies: (0..copies.clamp(1, MAX_REPLICAS_PER_LOG))
                .map(copy)
                .collect(),
            help: Mutex::new(()),
        }
    }

    /// Takes a place at the copy of a memory node.
    ///
    /// # Errors
    /// A clause, if as many threads as a copy admits have one.
    pub(crate) fn place(&self, node: usize) -> Result<Place, String> {
        let copy = node % self.copies.len();
        match self.copies[copy].replica.register() {
            Some(token) => Ok(Place {
                copy,
                token,
                left: HELP_EVERY,
            }),
            None => Err("node replication admits 255 threads on a node".to_owned()),
        }
    }

    /// Logs an operation and returns its answer.
    #[inline]
    pub(crate) fn write(&self, place: &mut Place, operation: D::WriteOperation) -> D::Response {
        place.left -= 1;
        if place.left == 0 {
            place.left = HELP_EVERY;
            self.help(place.copy);
        }
        self.copies[place.copy]
            .replica
            .execute_mut(operation, place.token)
    }

    /// Runs an operation that only reads, on the copy of the place.
    #[inline]
    pub(crate) fn read(&self, place: &Place, operation: D::ReadOperation) -> D::Response {
        self.copies[place.copy]
            .replica
            .execute(operation, place.token)
    }

    /// Carries the log out on all copies but `own`, unless another thread is doing so.
    #[cold]
    fn help(&self, own: usize) {
        if self.copies.len() == 1 {
            return;
        }
        let Ok(_guard) = self.help.try_lock() else {
            return;
        };
        for (i, copy) in self.copies.iter().enumerate() {
            if i != own {
                copy.replica.sync(copy.helper);
            }
        }
    }

    /// Shows every copy to `look`, with the whole log carried out. Called while no thread writes.
    pub(crate) fn each(&self, mut look: impl FnMut(&D)) {
        let _guard = self.help.lock().unwrap_or_else(PoisonError::into_inner);
        for copy in &self.copies {
            copy.replica.verify(&mut look);
        }
    }
}

/// The method `node-replication`, with a copy for each memory node.
pub(super) fn method<W: Workload>() -> Method<W> {
    let method = Method::new(NAME, Kind::Direct, |workload, point, _| {
        Ok(Box::new(Objects::new(workload, point, copies_here())?))
    });
    let object = size_of::<Aligned<Mutex<W::Object>>>();
    method.taking((copies_here() * object) as u64)
}

/// A copy of all objects of a workload. The mutexes are never locked by an operation: they only
/// make objects that threads must not share into ones that they may.
struct Own<W: Workload> {
    workload: W,
    objects: Box<[Aligned<Mutex<W::Object>>]>,
}

/// An operation in the log.
struct Logged<W: Workload> {
    var: usize,
    operation: W::Operation,
}

// Not derived: a derive would ask the same of the workload.
impl<W: Workload> Clone for Logged<W> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

/// The crate demands that operations can be compared and never compares them.
impl<W: Workload> PartialEq for Logged<W> {
    fn eq(&self, other: &Self) -> bool {
        self.var == other.var
    }
}

impl<W: Workload> fmt::Debug for Logged<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Logged")
            .field("var", &self.var)
            .finish_non_exhaustive()
    }
}

impl<W: Workload> Dispatch for Own<W> {
    type ReadOperation = Infallible;
    type WriteOperation = Logged<W>;
    type Response = u64;

    fn dispatch(&self, operation: Infallible) -> u64 {
        match operation {}
    }

    #[inline]
    fn dispatch_mut(&mut self, logged: Logged<W>) -> u64 {
        let object = self.objects[logged.var].0.get_mut();
        let object = object.unwrap_or_else(PoisonError::into_inner);
        logged.operation.run(object).number()
    }
}

impl<W: Workload> Own<W> {
    /// The number of operations that the copy's objects have seen.
    fn seen(&self) -> Result<u64, String> {
        let seen = |object: &Aligned<Mutex<W::Object>>| {
            let object = object.0.lock().unwrap_or_else(PoisonError::into_inner);
            self.workload.check(&object)
        };
        self.objects.iter().map(seen).sum()
    }
}

/// The objects of a workload, of which every copy has all.
struct Objects<W: Workload> {
    workload: W,
    copies: Replicated<Own<W>>,
    /// The place of each thread.
    places: Box<[Place]>,
}

impl<W: Workload> Objects<W> {
    fn new(workload: W, point: &Point, copies: usize) -> Result<Self, String> {
        let copies = Replicated::new(copies, || Own {
            workload,
            objects: (0..point.vars)
                .map(|_| Aligned(Mutex::new(workload.object())))
                .collect(),
        });
        let node = |thread: usize| {
            let cpu = point.placement.get(thread).copied().flatten();
            cpu.and_then(node_of_cpu).unwrap_or(thread)
        };
        let places = (0..point.threads).map(|thread| copies.place(node(thread)));
        Ok(Self {
            workload,
            places: places.collect::<Result<_, _>>()?,
            copies,
        })
    }
}

impl<W: Workload> Contender for Objects<W> {
    fn clients(&self) -> Range<usize> {
        0..self.places.len()
    }

    fn client(&self, client: Client) -> u64 {
        // The crew runs each client on one thread at a time.
        let mut place = self.places[client.index].clone();
        client.call_each(self.workload, |var, operation| {
            self.copies.write(&mut place, Logged { var, operation })
        })
    }

    fn total(&self) -> Result<u64, String> {
        let mut seen = Vec::new();
        self.copies.each(|copy| seen.push(copy.seen()));
        let seen = seen.into_iter().collect::<Result<Vec<u64>, _>>()?;
        match seen.iter().all(|count| *count == seen[0]) {
            true => Ok(seen[0]),
            false => Err(format!(
                "the copies have seen different operations: {seen:?}"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A counter.
    struct Counter(u64);

    impl Dispatch for Counter {
        type ReadOperation = ();
        type WriteOperation = u64;
        type Response = u64;

        fn dispatch(&self, (): ()) -> u64 {
            self.0
        }

        fn dispatch_mut(&mut self, by: u64) -> u64 {
            self.0 += by;
            self.0
        }
    }

    #[test]
    fn an_idle_copy_does_not_stop_writers() {
        let copies = Replicated::new(2, || Counter(0));
        let mut place = copies.place(0).unwrap();
        // More than the log has room for.
        let writes = 4 * LOG_BYTES as u64 / 64;
        for n in 1..=writes {
            assert_eq!(copies.write(&mut place, 1), n);
        }
        let idle = copies.place(1).unwrap();
        assert_eq!(copies.read(&idle, ()), writes);
    }

    #[test]
    fn all_copies_carry_out_what_all_threads_write() {
        let copies = Replicated::new(2, || Counter(0));
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let copies = &copies;
                scope.spawn(move || {
                    let mut place = copies.place(thread).unwrap();
                    let mut last = 0;
                    for _ in 0..20_000 {
                        let now = copies.write(&mut place, 1);
                        assert!(now > last, "the counter fell from {last} to {now}");
                        last = copies.read(&place, ());
                        assert!(last >= now, "a read misses a write before it");
                    }
                });
            }
        });
        let mut seen = Vec::new();
        copies.each(|counter| seen.push(counter.0));
        assert_eq!(seen, [80_000, 80_000]);
    }

    #[test]
    fn a_copy_admits_255_threads_and_says_so() {
        let copies = Replicated::new(1, || Counter(0));
        assert!((0..255).all(|_| copies.place(0).is_ok()));
        assert!(copies.place(0).unwrap_err().contains("255"));
    }
}
