//! Structures that threads use directly, without a lock or a trustee around them: the literature's
//! and other crates'. Each is a method of the workload whose structure it is.
//!
//! | workload | methods |
//! |---|---|
//! | `list`, `lazy-list` | `sharded-mutex`, `lazy-list`, `harris-michael` |
//! | `queue` | `two-lock`, `michael-scott`, `block-queue`, `seg-queue` |
//! | `stack` | `treiber`, `elimination` |
//! | `hash` | `sharded-mutex`, `bucket-locks`, `dashmap`, `papaya`, `scc` |
//! | `skip-list` | `sharded-mutex`, `optimistic`, `crossbeam-skiplist`, `scc-tree` |
//! | `tree` | `sharded-mutex`, `external-tree`, `scc-tree` |
//! | all but `lru`, whose reads change it | `rwlock`, `parking-lot-rwlock`, whose readers share the lock; `node-replication`, whose readers read their node's copy |
//!
//! They get the same keys and the same requests as the sequential structure does, and give the same
//! answers, but for one: they have no way to look at the end of a queue or a stack, so that a read
//! only asks whether there is anything.
//!
//! # What is checked
//! Each client keeps its own ledger: the operations that it has done, and the keys that came and went
//! by its calls. After a run the structures together must hold just the keys that are left over, and
//! sorted ones must be sorted. An insertion or a removal of which two calls say that it was theirs,
//! or none, shows up there.
//!
//! A new one takes an implementation of [`Rival`] and an [`entry`] in the table of its workload
//! below.

mod ends;
mod keyed;
mod locked;
mod replicated;

use super::{Access, Kind, Ledger, SharedStructure, Structure, judge};
use crate::check::Action;
use crate::method::{
    self, Build, Contender, Entry, Form, Marker, Method, Schedule, Style, noop, replication, rwlock,
};
use crate::workload::operation::Aligned;
use crate::workload::point::Point;
use crate::workload::random::Client;
use corelay_structures::fine::{
    BucketMap, ExternalTree, LazyList, OptimisticSkipList, TwoLockQueue,
};
use corelay_structures::lockfree::{BlockQueue, HarrisList, MsQueue, TreiberStack};
use crossbeam_queue::SegQueue;
use crossbeam_skiplist::SkipMap;
use dashmap::DashMap;
pub(crate) use locked::{Locked, Sharded};
pub(crate) use replicated::Copies;
#[cfg(test)]
pub(crate) use replicated::TwoCopies;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// A structure of numbers that threads share directly.
pub(crate) trait Rival: Send + Sync + 'static {
    /// An empty structure for about `size` keys.
    fn empty(size: usize) -> Self;

    /// Reads a key. Without keys, returns 1 if there is anything.
    fn read(&self, key: u64) -> Option<u64>;

    /// Inserts a key; returns whether it is new.
    fn insert(&self, key: u64) -> bool;

    /// Removes a key, or the one that is next.
    fn remove(&self, key: u64) -> Option<u64>;

    /// All keys. Called while no other thread uses the structure.
    fn keys(&self) -> Vec<u64>;

    /// The keys of each part of the structure, sorted if the structure is.
    fn parts(&self) -> Vec<Vec<u64>> {
        vec![self.keys()]
    }
}

/// An empty structure for about `size` keys, as a closure that runs an action of a history on it.
pub(crate) fn concurrent<R: Rival>(size: usize) -> impl Fn(Action) -> Option<u64> {
    let structure = R::empty(size);
    move |action| match action {
        Action::Get(key) => structure.read(key),
        Action::Insert(key, _) => structure.insert(key).then_some(key),
        Action::Remove(key) => structure.remove(key),
        Action::Push(value) => {
            structure.insert(value);
            None
        }
        Action::Pop => structure.remove(0),
        Action::Peek => structure.read(0),
    }
}

/// The looks of rivals in reports: with locks, without, improved, and of other crates.
const LOCKS: Style = Style::of("c-brown", Marker::Circle, "6 3");
const SHARDS: Style = Style::of("c-green", Marker::Box, "2 3");
const LOCK_FREE: Style = Style::of("c-rose", Marker::Cross, "6 3");
const IMPROVED: Style = Style::of("c-rose", Marker::Ring, "6 3");
const CRATE: Style = Style::of("c-black", Marker::Diamond, "");
const SECOND_CRATE: Style = Style::of("c-black", Marker::Square, "2 3");
const THIRD_CRATE: Style = Style::of("c-black", Marker::Ring, "6 3");

/// The rivals of the sorted list.
pub(super) fn list<S: Structure>() -> Vec<Entry<SharedStructure<S>>> {
    vec![
        sharded_in_no_order(),
        entry::<_, LazyList<u64>>(
            "lazy-list",
            "a sorted list with a lock in each node; look-ups take none (Heller et al.)",
            LOCKS,
        ),
        entry::<_, HarrisList<u64>>(
            "harris-michael",
            "a sorted list without locks (Harris; Michael)",
            LOCK_FREE,
        ),
    ]
}

/// The rivals of the queue.
pub(super) fn queue<S: Structure>() -> Vec<Entry<SharedStructure<S>>> {
    vec![
        entry::<_, TwoLockQueue<u64>>(
            "two-lock",
            "a queue with a lock at each end (Michael and Scott)",
            LOCKS,
        ),
        entry::<_, MsQueue<u64>>(
            "michael-scott",
            "a queue without locks (Michael and Scott)",
            LOCK_FREE,
        ),
        entry::<_, BlockQueue<u64>>(
            "block-queue",
            "a queue without locks, whose nodes are blocks (Yang and Mellor-Crummey)",
            IMPROVED,
        ),
        entry::<_, SegQueue<u64>>("seg-queue", "the queue of the crate crossbeam-queue", CRATE),
    ]
}

/// The rivals of the stack.
pub(super) fn stack<S: Structure>() -> Vec<Entry<SharedStructure<S>>> {
    vec![
        entry::<_, TreiberStack<u64, 0>>(
            "treiber",
            "a stack without locks, with back-off (Treiber)",
            LOCK_FREE,
        ),
        entry::<_, TreiberStack<u64>>(
            "elimination",
            "the same, where a push and a pop that meet are done at once (Hendler et al.)",
            IMPROVED,
        ),
    ]
}

/// The rivals of the hash table.
pub(super) fn hash<S: Structure>() -> Vec<Entry<SharedStructure<S>>> {
    vec![
        sharded(),
        entry::<_, BucketMap<u64, u64>>(
            "bucket-locks",
            "a hash table with a lock for each bucket (David et al.)",
            LOCKS,
        ),
        entry::<_, DashMap<u64, u64>>("dashmap", "the hash table of the crate dashmap", CRATE),
        entry::<_, papaya::HashMap<u64, u64>>(
            "papaya",
            "the hash table of the crate papaya, without locks",
            SECOND_CRATE,
        ),
        entry::<_, scc::HashMap<u64, u64>>(
            "scc",
            "the hash table of the crate scc, with a lock for each bucket",
            THIRD_CRATE,
        ),
    ]
}

/// The rivals of the skip list.
pub(super) fn skip_list<S: Structure>() -> Vec<Entry<SharedStructure<S>>> {
    vec![
        sharded_in_no_order(),
        entry::<_, OptimisticSkipList<u64, u64>>(
            "optimistic",
            "a skip list with a lock in each node; look-ups take none (Herlihy et al.)",
            LOCKS,
        ),
        entry::<_, SkipMap<u64, u64>>(
            "crossbeam-skiplist",
            "the skip list of the crate crossbeam-skiplist",
            CRATE,
        ),
        scc_tree(),
    ]
}

/// The rivals of the search tree.
pub(super) fn tree<S: Structure>() -> Vec<Entry<SharedStructure<S>>> {
    vec![
        sharded_in_no_order(),
        entry::<_, ExternalTree<u64, u64>>(
            "external-tree",
            "a search tree with a lock for each link; look-ups take none (David et al.)",
            LOCKS,
        ),
        scc_tree(),
    ]
}

/// The name of the method that divides a structure by its keys.
pub(crate) const SHARDED: &str = "sharded-mutex";

fn sharded<S: Structure>() -> Entry<SharedStructure<S>> {
    entry::<S, Sharded<S>>(
        SHARDED,
        "the keys in shards, four per CPU, each behind a mutex; the whole has no order",
        SHARDS,
    )
}

/// The same for a sorted structure. `compare` and figures leave it out, because it is an answer to
/// another question: the whole is not sorted any more, and each shard takes fewer steps.
fn sharded_in_no_order<S: Structure>() -> Entry<SharedStructure<S>> {
    Entry {
        compared: None,
        ..sharded()
    }
}

/// Makes the reads of the reader-writer locks share the lock, and those of node replication read a
/// copy. In `any` each operation writes.
pub(super) fn share_reads<S: Structure>(methods: &mut [Entry<SharedStructure<S>>]) {
    let builds: [(_, Build<SharedStructure<S>>); 3] = [
        (rwlock::STD, |w, p, _| {
            Ok(Box::new(Direct::<S, Locked<std::sync::RwLock<S>>>::new(
                w, p,
            )))
        }),
        (replication::NAME, |w, p, _| {
            Ok(Box::new(Direct::<S, Copies<S>>::new(w, p)))
        }),
        (rwlock::PARKING_LOT, |w, p, _| {
            Ok(Box::new(Direct::<S, Locked<parking_lot::RwLock<S>>>::new(
                w, p,
            )))
        }),
    ];
    for entry in methods {
        if let Some((_, build)) = builds.iter().find(|(name, _)| *name == entry.name()) {
            entry.method = entry.method.built_by(*build);
            if entry.name() == replication::NAME {
                entry.method = entry.method.with_heap(replication::BYTES);
            }
        }
    }
}

fn scc_tree<S: Structure>() -> Entry<SharedStructure<S>> {
    entry::<_, scc::TreeIndex<u64, u64>>(
        "scc-tree",
        "the ordered map of the crate scc, a B+ tree; look-ups take no lock",
        SECOND_CRATE,
    )
}

fn entry<S: Structure, R: Rival>(
    name: &'static str,
    what: &'static str,
    style: Style,
) -> Entry<SharedStructure<S>> {
    let method = Method::new(name, method::Kind::Direct, |workload, point, _| {
        Ok(Box::new(Direct::<S, R>::new(workload, point)))
    });
    Entry {
        method: method.taking(size_of::<Aligned<R>>() as u64),
        form: Form::Waits,
        what,
        compared: Some(style),
        schedule: Schedule::Usual(noop::waits()),
    }
}

/// Structures that the clients use directly.
struct Direct<S, R> {
    workload: SharedStructure<S>,
    threads: usize,
    variables: Box<[Aligned<R>]>,
    /// The ledgers of all clients together.
    ledger: Mutex<Ledger>,
}

impl<S: Structure, R: Rival> Direct<S, R> {
    fn new(workload: SharedStructure<S>, point: &Point) -> Self {
        let mut ledger = Ledger::default();
        let keys = workload.keys();
        let mut filled = || {
            let structure = R::empty(workload.size as usize);
            for &key in &keys {
                if structure.insert(key) {
                    ledger.came(key);
                }
            }
            Aligned(structure)
        };
        Self {
            workload,
            threads: point.threads,
            variables: (0..point.vars).map(|_| filled()).collect(),
            ledger: Mutex::new(ledger),
        }
    }
}

impl<S: Structure, R: Rival> Contender for Direct<S, R> {
    fn clients(&self) -> Range<usize> {
        0..self.threads
    }

    fn client(&self, client: Client) -> u64 {
        let mut own = Ledger::default();
        let done = client.call_each(self.workload, |var, access| {
            run(access, &self.variables[var].0, &mut own)
        });
        let mut all = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        all.add(own);
        done
    }

    fn total(&self) -> Result<u64, String> {
        let all = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        let parts = self.variables.iter().flat_map(|it| it.0.parts());
        judge::<S>(parts, *all)
    }
}

#[inline(always)]
fn run(access: Access, structure: &impl Rival, own: &mut Ledger) -> u64 {
    own.operations += 1;
    match access.kind {
        Kind::Read => structure.read(access.key).unwrap_or(0),
        Kind::Insert => {
            let is_new = structure.insert(access.key);
            if is_new {
                own.came(access.key);
            }
            is_new.into()
        }
        Kind::Remove => {
            let removed = structure.remove(access.key);
            removed.inspect(|&key| own.went(key)).unwrap_or(0)
        }
    }
}

#[cfg(test)]
mod tests;
