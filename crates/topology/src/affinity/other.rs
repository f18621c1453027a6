//! Systems without a per-thread mask of CPUs: everything is honestly refused.

use crate::CpuSet;
use std::io;

pub(super) fn affinity() -> io::Result<CpuSet> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn set_affinity(_: &CpuSet) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn current_cpu() -> Option<usize> {
    None
}
