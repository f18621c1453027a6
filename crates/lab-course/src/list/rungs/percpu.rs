//! Like `padded`, with a list for each CPU instead of each thread, as the kernel's per-CPU variables:
//! an insertion goes to the list of the CPU that its thread runs on.
//!
//! The kernel can forbid that a thread is moved to another CPU meanwhile. A program cannot: its
//! thread may be moved between the look at its CPU and the insertion, and then meets the thread that
//! runs there. So each list has a lock. It is almost never wanted by two threads at once, and its
//! line stays in its CPU's cache; its price is that of a lock that nobody else wants, and of the
//! look at the CPU (`sched_getcpu`), for each key. In return there are as many lists as CPUs,
//! whatever the number of threads.

use super::{Ended, Job, List, Node};
use corelay_topology::{affinity, current_cpu};
use std::iter::repeat;
use std::sync::{Mutex, PoisonError};

/// The list of a CPU: apart from the others by two lines, because some processors fetch lines in
/// pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Head<'a> {
    list: Mutex<List<&'a mut Node>>,
}

pub(super) fn run(job: &Job) -> Ended {
    let mut nodes = job.array();
    let heads: Vec<Head<'_>> = (0..heads(job.threads)).map(|_| Head::default()).collect();
    let parts = job.parts(nodes.chunks_mut(job.part_len()));
    let ended = job.run(repeat(()), |me, ()| {
        while let Some((keys, nodes)) = me.take(&parts) {
            for (&key, node) in me.part(keys).iter().zip(nodes) {
                let node = node.write(Node::new(key));
                // A system that does not say where a thread runs gets a list for each thread.
                let cpu = current_cpu().unwrap_or(me.number());
                me.lock(&heads[cpu % heads.len()].list).push(node);
            }
        }
    });
    drop(parts);
    let mut all = List::default();
    for head in heads {
        all.append(
            head.list
                .into_inner()
                .unwrap_or_else(PoisonError::into_inner),
        );
    }
    ended.check(all, job.all())
}

/// Returns the number of lists: enough for the highest CPU that this program may use. A thread on
/// another CPU shares a list, which the locks allow.
fn heads(threads: usize) -> usize {
    let highest = affinity().ok().and_then(|cpus| cpus.iter().max());
    highest.map_or(threads, |cpu| cpu + 1)
}
