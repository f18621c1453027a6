//! Like `balanced`, with room between the heads of the lists: no two threads write to the same
//! cache line.

use super::{Ended, Heads, Job, Node};

pub(super) fn run(job: &Job) -> Ended {
    let mut nodes = job.array();
    let mut lists = Heads::new(job.threads, job.padding);
    let parts = job.parts(nodes.chunks_mut(job.part_len()));
    let ended = job.run(lists.each(), |me, list| {
        while let Some((keys, nodes)) = me.take(&parts) {
            for (&key, node) in me.part(keys).iter().zip(nodes) {
                list.push(node.write(Node::new(key)));
            }
        }
    });
    drop(parts);
    ended.check(lists.together(), job.all())
}
