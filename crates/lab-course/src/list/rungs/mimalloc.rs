//! Like `system`, with nodes from mimalloc (Leijen, Zorn, de Moura, 2019): a general allocator
//! that gives each thread pages of its own.

use super::{BoxFrom, Ended, Job, Mimalloc, system};

pub(super) fn run(job: &Job) -> Ended {
    system::insert(job, BoxFrom::<Mimalloc>::new)
}
