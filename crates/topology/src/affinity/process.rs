//! The process's CPUs, remembered from before its threads were pinned.

use super::affinity;
use crate::CpuSet;
use std::sync::OnceLock;

/// The CPUs on which this process may run: the union of its threads' masks, at the time of the
/// first call or of the first pinning by this crate. So a pinned thread can still find out how
/// parallel its process is.
///
/// Empty if the system has no such masks.
pub fn process_affinity() -> &'static CpuSet {
    static REMEMBERED: OnceLock<CpuSet> = OnceLock::new();
    REMEMBERED.get_or_init(|| {
        let own = affinity().unwrap_or_default();
        masks_of_threads().fold(own, |all, mask| all.union(&mask))
    })
}

/// The masks of all threads of this process, as the kernel lists them.
fn masks_of_threads() -> impl Iterator<Item = CpuSet> {
    let threads = std::fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    threads.filter_map(|thread| {
        let status = std::fs::read_to_string(thread.path().join("status")).ok()?;
        let list = status
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        list.trim().parse().ok()
    })
}
