//! The calling thread's affinity mask: the CPUs on which the kernel may run it.

#[cfg_attr(any(target_os = "linux", target_os = "android"), path = "linux.rs")]
#[cfg_attr(
    not(any(target_os = "linux", target_os = "android")),
    path = "other.rs"
)]
mod system;

mod process;

pub use process::process_affinity;

use crate::CpuSet;
use std::io;

/// The CPUs on which the calling thread may run.
///
/// # Errors
///
/// If the system has no such mask (only Linux has), or refuses to tell.
///
/// ```
/// # if cfg!(target_os = "linux") {
/// assert!(!corelay_topology::affinity()?.is_empty());
/// # }
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn affinity() -> io::Result<CpuSet> {
    system::affinity()
}

/// The CPU on which the calling thread runs at this moment; `None` if the system does not say.
/// Unless the thread is pinned, the answer may be out of date at once.
pub fn current_cpu() -> Option<usize> {
    system::current_cpu()
}

pub(crate) fn set_affinity(cpus: &CpuSet) -> io::Result<()> {
    system::set_affinity(cpus)
}
