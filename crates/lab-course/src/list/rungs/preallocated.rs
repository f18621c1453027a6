//! Like `partitioned`, with all nodes made before, in one piece of memory: the timed phase does
//! not call the allocator. No node can be freed by itself, which few real programs can accept.

use super::{Ended, Heads, Job, Node};

pub(super) fn run(job: &Job) -> Ended {
    let mut nodes = job.array();
    let mut lists = Heads::new(job.threads, 0);
    let own = lists.each().zip(nodes.chunks_mut(job.share));
    let ended = job.run(own, |me, (list, nodes)| {
        for (&key, node) in me.part(me.share()).iter().zip(nodes) {
            list.push(node.write(Node::new(key)));
        }
    });
    ended.check(lists.together(), job.all())
}
