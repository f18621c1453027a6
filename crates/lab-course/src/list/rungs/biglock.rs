//! One list, one lock: each thread takes the lock for each key.

use super::{Ended, Job, List, Node};
use std::iter::repeat;
use std::sync::Mutex;

pub(super) fn run(job: &Job) -> Ended {
    let list = Mutex::new(List::default());
    let ended = job.run(repeat(()), |me, ()| {
        for &key in me.part(me.share()).iter() {
            // The node is made before the lock is taken, so nobody waits for the allocator.
            let node = me.make(|| Box::new(Node::new(key)));
            me.lock(&list).push(node);
        }
    });
    ended.check(list.into_inner().unwrap_or_default(), job.all())
}
