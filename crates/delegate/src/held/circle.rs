//! Who waits for whom: launched closures that would wait for each other in a ring.
//!
//! A launched closure holds one object. It waits for another object when its call has been deferred
//! there, because a third closure holds that; and for another launch when it joins that. A launch
//! that is deferred itself waits for its object. So each node has one edge at most, and a ring is
//! found by walking from the new edge on, before it is added: under one lock for the process, for
//! launches are rare, and edges rarer.
//!
//! **No ring is missed** among these edges: rings come to be by an edge, and edges are added inside
//! the lock only. (An object that changes hands takes its waiters' edges along to a closure that has
//! just begun, and waits for nobody.) **None is found that is not there**: an edge is taken away
//! before the one that waits goes on, and an object's holder before the object serves another one.
//!
//! The lock is `std`'s: no atomic of ours is touched inside, so the models have nothing to
//! interleave there.

use crate::object::Header;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Number(u64);

/// What a launch waits for.
#[derive(Clone, Copy)]
enum Target {
    Object(usize),
    Launch(Number),
}

struct Holder {
    launch: Number,
    /// The object's name, if it has one, and its type's.
    object: String,
}

#[derive(Default)]
struct Graph {
    last: u64,
    /// By the address of the object.
    holders: BTreeMap<usize, Holder>,
    waits: BTreeMap<Number, Target>,
}

static GRAPH: Mutex<Graph> = Mutex::new(Graph {
    last: 0,
    holders: BTreeMap::new(),
    waits: BTreeMap::new(),
});

fn graph() -> MutexGuard<'static, Graph> {
    GRAPH.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The ring that a wait of a launched closure would have closed: the wait was refused instead.
///
/// Its text names the objects that the closures of the ring hold: by their types, and by their
/// [names](crate::Trust::set_name) if they have any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CircularWait {
    objects: Vec<String>,
}

impl CircularWait {
    /// What the closures of the ring hold: of the one whose wait was refused first, then of each
    /// whom the one before waits for.
    pub fn objects(&self) -> impl Iterator<Item = &str> {
        self.objects.iter().map(String::as_str)
    }
}

impl fmt::Display for CircularWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("corelay: launched closures would wait for each other in a ring: ")?;
        for object in &self.objects {
            write!(f, "{object} -> ")?;
        }
        f.write_str(self.objects.first().map_or("nobody", String::as_str))
    }
}

impl std::error::Error for CircularWait {}

/// For a new launch.
pub(crate) fn number() -> Number {
    let mut graph = graph();
    graph.last += 1;
    Number(graph.last)
}

/// `launch` holds `object` from now on.
pub(crate) fn hold(launch: Number, object: *mut Header) {
    // SAFETY: a request on it runs, so it is alive.
    let description = describe(unsafe { &*object });
    let holder = Holder {
        launch,
        object: description,
    };
    graph().holders.insert(object.addr(), holder);
}

/// Nobody holds `object` any more.
pub(crate) fn release(object: *mut Header) {
    graph().holders.remove(&object.addr());
}

/// `launch` waits for `object`, which is held, unless that closed a ring.
pub(crate) fn wait_for_object(launch: Number, object: *mut Header) -> Result<(), CircularWait> {
    graph().add(launch, Target::Object(object.addr()))
}

/// `launch` waits for the end of `other`, unless that closed a ring.
pub(crate) fn wait_for_launch(launch: Number, other: Number) -> Result<(), CircularWait> {
    graph().add(launch, Target::Launch(other))
}

/// `launch` waits no more.
pub(crate) fn go_on(launch: Number) {
    graph().waits.remove(&launch);
}

impl Graph {
    fn add(&mut self, launch: Number, target: Target) -> Result<(), CircularWait> {
        let mut objects = Vec::new();
        let mut next = Some(target);
        while let Some(target) = next {
            let waited_for = match target {
                Target::Launch(other) => other,
                Target::Object(object) => match self.holders.get(&object) {
                    None => break,
                    Some(holder) => {
                        objects.push(holder.object.clone());
                        holder.launch
                    }
                },
            };
            if waited_for == launch {
                // The last one found is what the one who asks holds.
                objects.rotate_right(1);
                return Err(CircularWait { objects });
            }
            next = self.waits.get(&waited_for).copied();
        }
        self.waits.insert(launch, target);
        Ok(())
    }
}

fn describe(object: &Header) -> String {
    let type_name = object.type_name();
    match object.trustee.roster.name_of(object, type_name) {
        Some(name) => format!("{name:?} ({type_name})"),
        None => String::from(type_name),
    }
}
