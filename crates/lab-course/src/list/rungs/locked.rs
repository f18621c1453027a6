//! Like `biglock`, with the other parts of the ladder that make sense for one list: nodes made
//! before, and keys in parts. No rung of the ladder; `lab list --flags m,l,ml` runs it.

use super::{Ended, Job, List, Node, Owned};
use std::iter::repeat;
use std::sync::Mutex;

pub(super) fn run(job: &Job) -> Ended {
    insert(job, repeat(repeat(())), |(), key| Box::new(Node::new(key)))
}

/// Like `run`, with all nodes made before, in one piece of memory.
pub(super) fn run_preallocated(job: &Job) -> Ended {
    let mut nodes = job.array();
    insert(job, nodes.chunks_mut(job.part_len()), |place, key| {
        place.write(Node::new(key))
    })
}

/// Inserts a node for each key. Each part of the keys has its places for the nodes.
fn insert<N: Owned + Send, P: IntoIterator + Send>(
    job: &Job,
    places: impl Iterator<Item = P> + Send,
    node: impl Fn(P::Item, u64) -> N + Sync,
) -> Ended {
    let list = Mutex::new(List::default());
    let parts = job.parts(places);
    let ended = job.run(repeat(()), |me, ()| {
        while let Some((keys, places)) = me.take(&parts) {
            for (&key, place) in me.part(keys).iter().zip(places) {
                let node = me.make(|| node(place, key));
                me.lock(&list).push(node);
            }
        }
    });
    drop(parts);
    ended.check(list.into_inner().unwrap_or_default(), job.all())
}
