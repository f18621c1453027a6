//! Like `padded`, with nodes from the system's allocator. Compared with `mimalloc`, `jemalloc` and
//! `pool` it shows the cost of an allocator when all else is in order.

use super::{Ended, Heads, Job, Node, Owned, Pages};
use std::iter::repeat;

pub(super) fn run(job: &Job) -> Ended {
    insert(job, Box::new)
}

/// Inserts nodes that `allocate` moves into memory from some allocator.
pub(super) fn insert<N: Owned + Send>(job: &Job, allocate: impl Fn(Node) -> N + Sync) -> Ended {
    let mut lists = Heads::new(job.threads, job.padding);
    let parts = job.parts(repeat(()));
    let prepare = |list| {
        if job.pages == Pages::Recycled {
            let nodes: Vec<_> = (0..job.share).map(|_| allocate(Node::new(0))).collect();
            drop(nodes);
        }
        list
    };
    let ended = job.run_prepared(lists.each(), prepare, |me, list| {
        while let Some((keys, ())) = me.take(&parts) {
            for &key in me.part(keys).iter() {
                list.push(me.make(|| allocate(Node::new(key))));
            }
        }
    });
    ended.check(lists.together(), job.all())
}
