//! Like `system`, with nodes from jemalloc (Evans, 2006): a general allocator with several arenas
//! and a cache for each thread. The source asks to try it.

use super::{BoxFrom, Ended, Jemalloc, Job, system};

pub(super) fn run(job: &Job) -> Ended {
    system::insert(job, BoxFrom::<Jemalloc>::new)
}
