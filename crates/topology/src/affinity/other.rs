//! Systems without a per-thread mask of CPUs: every call is refused with an error.

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
