//! One list again, and no lock: the thread that owns the list inserts for all. The others send it
//! their nodes and do not wait for an answer.

use super::{Ended, Job, List, Node};
use corelay::{Trustees, barrier};

pub(super) fn run(job: &Job) -> Ended {
    let team = match Trustees::flat(job.threads).start() {
        Ok(team) => team,
        Err(error) => return Ended::failed(error.to_string()),
    };
    let list = team.entrust_on(0, List::default());
    let threads = |lap: &(dyn Fn(usize) -> _ + Sync)| team.run(|member| lap(member.number()));
    let ended = job.run_in(threads, |me| {
        for &key in me.part(me.share()).iter() {
            let node = me.make(|| Box::new(Node::new(key)));
            list.post(move |list| list.push(node));
        }
        barrier().expect("nothing that was sent panics");
    });
    ended.check(list.apply(std::mem::take), job.all())
}
