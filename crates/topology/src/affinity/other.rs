//! Systems without a per-thread mask of CPUs: reading and setting it is an error, and the present
//! CPU is unknown.

use crate::CpuSet;
use std::io;

pub(super) fn affinity() -> io::Result<CpuSet> {
    Err(unsupported())
}

pub(super) fn set_affinity(_: &CpuSet) -> io::Result<()> {
    Err(unsupported())
}

fn unsupported() -> io::Error {
    let why = "threads are pinned to CPUs on Linux only";
    io::Error::new(io::ErrorKind::Unsupported, why)
}

pub(super) fn current_cpu() -> Option<usize> {
    None
}
