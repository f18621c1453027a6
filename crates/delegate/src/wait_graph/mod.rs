//! Launched closures that would wait for each other in a ring.
//!
//! One [graph](graph::Graph) for the process is kept here, under one lock, since launches are rare
//! and edges rarer; with it the names of objects, and the refusals to be delivered. A wait that
//! would close a ring is refused in one of three ways:
//!
//! | the last wait of the ring | what is refused |
//! |---|---|
//! | a request that is being deferred | that request, by its trustee, at once |
//! | a [join](crate::LaunchHandle::join) | that join, by its caller |
//! | a wait for answers, for room or for launches | the first request or join of the ring, which waits already |
//!
//! The last kind concerns another trustee or another closure, which is woken and finds its refusal
//! here. A refused request is an edge no more, so the wait itself goes on.
//!
//! The lock is `std`'s: no atomic of ours is touched inside, so the models have nothing to
//! interleave there. Property tests compare the graph with one that looks at all paths.

mod graph;

pub(crate) use self::graph::{Address, DeferredId, RequestPlace, Wait};

use self::graph::{Graph, Refused};
use crate::error::CircularWait;
use crate::object::Header;
use crate::object::shared::Shared;
use crate::wire::LaunchId;
use corelay_sync::facade::sync::Arc;
use std::collections::BTreeMap;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// The record of a held object.
struct Held {
    /// The object's name, if it has one, and its type's.
    name: String,
    trustee: Arc<Shared>,
}

/// The record of a closure that joins a launch: how to wake it, and why the join is refused, if it
/// is.
struct Join {
    waker: Waker,
    refusal: Option<CircularWait>,
}

struct WaitGraph {
    graph: Graph,
    held: BTreeMap<Address, Held>,
    joins: BTreeMap<LaunchId, Join>,
    /// The refusals of deferred requests that their trustees have still to deliver.
    refused: BTreeMap<DeferredId, (Address, CircularWait)>,
}

static WAIT_GRAPH: Mutex<WaitGraph> = Mutex::new(WaitGraph {
    graph: Graph::new(),
    held: BTreeMap::new(),
    joins: BTreeMap::new(),
    refused: BTreeMap::new(),
});

fn lock() -> MutexGuard<'static, WaitGraph> {
    WAIT_GRAPH.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The address by which the graph knows an object, a channel or a trustee.
pub(crate) fn address<T>(of: *const T) -> Address {
    of.addr()
}

/// Adds a new launch on `home`, made by `parent` through its channel if a launched closure makes
/// it.
pub(crate) fn number(home: &Shared, parent: Option<(LaunchId, Address)>) -> LaunchId {
    lock().graph.launch(address(home), parent)
}

/// Notes that `launch` holds `object` from now on.
pub(crate) fn hold(launch: LaunchId, object: *mut Header) {
    // SAFETY: a request on the object runs, so its handle or its acceptance keeps it alive.
    let header = unsafe { &*object };
    let held = Held {
        name: describe(header),
        trustee: Arc::clone(&header.trustee),
    };
    let mut waits = lock();
    waits.held.insert(address(object), held);
    waits.graph.hold(launch, address(object));
}

/// Notes that nobody holds `object` any more.
pub(crate) fn release(object: *mut Header) {
    let mut waits = lock();
    let held = waits.held.remove(&address(object));
    waits.graph.release(address(object));
    drop(waits);
    // May hold the last count of its trustee, so it is dropped without the lock.
    drop(held);
}

/// Notes that `launch` has ended, or will not begin.
pub(crate) fn end(launch: LaunchId) {
    lock().graph.end(launch);
}

/// Notes that the coroutine of `launch` ends.
pub(crate) fn forget(launch: LaunchId) {
    lock().graph.forget(launch);
}

/// Notes that a request to the held `object` waits at `place`: see [`Graph::defer`].
pub(crate) fn defer(
    object: *mut Header,
    place: RequestPlace,
    sender: Option<LaunchId>,
    launch: Option<LaunchId>,
) -> Result<DeferredId, CircularWait> {
    let mut waits = lock();
    let deferred = waits.graph.defer(address(object), place, sender, launch);
    deferred.map_err(|objects| waits.name(&objects))
}

/// Notes that a deferred request is about to be run or refused.
pub(crate) fn resume(deferred: DeferredId) {
    let mut waits = lock();
    waits.graph.resume(deferred);
    waits.refused.remove(&deferred);
}

/// Notes that `launch` waits from now on. Fails if that closed a ring in which nothing can be
/// refused.
pub(crate) fn wait(launch: LaunchId, wait: Wait) -> Result<(), CircularWait> {
    let mut waits = lock();
    let refused = waits.graph.wait(launch, wait);
    refuse(waits, refused)
}

/// Notes that `launch` blocks its trustee's thread from now on, so that launches there wait for it.
/// Fails if that closed a ring in which nothing can be refused.
pub(crate) fn block(launch: LaunchId) -> Result<(), CircularWait> {
    let mut waits = lock();
    let refused = waits.graph.block(launch);
    refuse(waits, refused)
}

/// Notes that `launch` blocks its thread no more.
pub(crate) fn unblock(launch: LaunchId) {
    lock().graph.unblock(launch);
}

/// Notes that `launch` joins another one from now on. Fails if that closed a ring. `waker` is woken
/// if the join is [refused](refusal_of_join) later.
pub(crate) fn join(launch: LaunchId, other: LaunchId, waker: Waker) -> Result<(), CircularWait> {
    let mut waits = lock();
    let refusal = None;
    waits.joins.insert(launch, Join { waker, refusal });
    let refused = waits.graph.wait(launch, Wait::Join(other));
    let joined = refuse(waits, refused);
    if joined.is_err() {
        lock().joins.remove(&launch);
    }
    joined
}

/// Takes the reason for which `launch` is to join no longer, if there is one.
pub(crate) fn refusal_of_join(launch: LaunchId) -> Option<CircularWait> {
    lock().joins.get_mut(&launch)?.refusal.take()
}

/// Notes that `launch` waits no more.
pub(crate) fn go_on(launch: LaunchId) {
    let mut waits = lock();
    waits.graph.go_on(launch);
    let join = waits.joins.remove(&launch);
    drop(waits);
    drop(join);
}

/// The objects of `trustee` that are held, by their names, for reports. Each comes with the objects
/// held by the closures that its own closure waits for.
pub(crate) fn held(trustee: &Shared) -> Vec<(String, Vec<String>)> {
    let waits = lock();
    let held = waits.graph.held(address(trustee)).into_iter();
    let held = held.filter_map(|(object, waits_for)| {
        let name = |object| waits.held.get(&object).map(|held| held.name.clone());
        let waits_for = waits_for.into_iter().map(|other| {
            let other = other.and_then(name);
            other.unwrap_or_else(|| String::from("a launch that holds nothing"))
        });
        Some((name(object)?, waits_for.collect()))
    });
    held.collect()
}

/// Takes the refusals of requests that wait on `trustee`.
pub(crate) fn take_refused(trustee: &Shared) -> Vec<(DeferredId, CircularWait)> {
    let mut waits = lock();
    let mut its = Vec::new();
    waits.refused.retain(|&deferred, (of, ring)| {
        let is_its = *of == address(trustee);
        if is_its {
            its.push((deferred, ring.clone()));
        }
        !is_its
    });
    its
}

impl WaitGraph {
    fn name(&self, objects: &[Address]) -> CircularWait {
        let name = |object| self.held.get(object).map(|held| held.name.clone());
        CircularWait::new(objects.iter().filter_map(name).collect())
    }
}

/// Delivers refusals, after it has released the lock.
fn refuse(
    mut waits: MutexGuard<'_, WaitGraph>,
    refused: Vec<(Option<Refused>, Vec<Address>)>,
) -> Result<(), CircularWait> {
    let (mut trustees, mut wakers, mut result) = (Vec::new(), Vec::new(), Ok(()));
    for (what, objects) in refused {
        let ring = waits.name(&objects);
        match what {
            Some(Refused::Request(deferred, object)) => {
                // The request was deferred because this object is held, so it is listed.
                if let Some(held) = waits.held.get(&object) {
                    let trustee = Arc::clone(&held.trustee);
                    let of = address(ptr::from_ref::<Shared>(&trustee));
                    waits.refused.insert(deferred, (of, ring));
                    trustees.push(trustee);
                }
            }
            Some(Refused::Join(launch)) => {
                if let Some(join) = waits.joins.get_mut(&launch) {
                    join.refusal = Some(ring);
                    wakers.push(join.waker.clone());
                }
            }
            Some(Refused::Wait) | None => result = Err(ring),
        }
    }
    drop(waits);
    for trustee in trustees {
        trustee.tell_of_refusals();
    }
    wakers.into_iter().for_each(Waker::wake);
    result
}

/// The object's name, if it has one, and its type's.
pub(crate) fn describe(object: &Header) -> String {
    let type_name = object.type_name();
    match object.trustee.roster.name_of(address(object), type_name) {
        Some(name) => format!("{name:?} ({type_name})"),
        None => String::from(type_name),
    }
}
