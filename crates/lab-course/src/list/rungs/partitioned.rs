//! A list for each thread, so no lock. In the end the lists are joined.

use super::{Ended, Heads, Job, Node};

pub(super) fn run(job: &Job) -> Ended {
    let mut lists = Heads::new(job.threads, 0);
    let ended = job.run(lists.each(), |me, list| {
        for &key in me.part(me.share()).iter() {
            list.push(me.make(|| Box::new(Node::new(key))));
        }
    });
    ended.check(lists.together(), job.all())
}
