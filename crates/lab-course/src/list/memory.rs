//! Control of the allocators' memory, so that each run begins like a new program.

#![allow(unsafe_code, reason = "functions of the C library and of mimalloc")]

/// Gives free memory back to the system.
pub(super) fn free_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: `malloc_trim` has no precondition; glibc allows it at any time, in any thread.
    unsafe {
        libc::malloc_trim(0);
    }
    // SAFETY: `mi_collect` has no precondition; mimalloc allows it at any time, in any thread.
    unsafe { libmimalloc_sys::mi_collect(true) };
}

/// Makes every later page fault bring one small page, whatever an allocator prefers. Otherwise
/// some faults would bring 2 MiB and take a hundred times as long, by chance.
pub(super) fn small_pages() {
    #[cfg(target_os = "linux")]
    // A kernel that does not know the flag has nothing to switch off.
    // SAFETY: `PR_SET_THP_DISABLE` takes no pointers; it only sets a flag of this process.
    unsafe {
        libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0);
    }
}
