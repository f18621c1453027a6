//! Like `system`, with nodes from mimalloc (Leijen, Zorn, de Moura, 2019): a general allocator
//! that gives each thread pages of its own.

use super::{Ended, Heads, Job, MiBox, Node, Pages};
use std::iter::repeat;

pub(super) fn run(job: &Job) -> Ended {
    let mut lists = Heads::new(job.threads, job.padding);
    let parts = job.parts(repeat(()));
    let prepare = |list| {
        if job.pages == Pages::Recycled {
            let nodes: Vec<_> = (0..job.share).map(|_| MiBox::new(Node::new(0))).collect();
            drop(nodes);
        }
        list
    };
    let ended = job.run_prepared(lists.each(), prepare, |me, list| {
        while let Some((keys, ())) = parts.take() {
            for &key in me.part(keys).iter() {
                list.push(me.make(|| MiBox::new(Node::new(key))));
            }
        }
    });
    ended.check(lists.together(), job.all())
}
