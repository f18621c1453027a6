//! Control of the allocators' memory, so that each run begins like a new program.

#![allow(
    unsafe_code,
    reason = "functions of the C library, of mimalloc and of jemalloc"
)]

/// Gives free memory back to the system.
pub(super) fn free_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: `malloc_trim` has no precondition; glibc allows it at any time, in any thread.
    unsafe {
        libc::malloc_trim(0);
    }
    // SAFETY: `mi_collect` has no precondition; mimalloc allows it at any time, in any thread.
    unsafe { libmimalloc_sys::mi_collect(true) };
    #[cfg(all(feature = "jemalloc", unix))]
    for command in [
        // The free blocks that this thread keeps go to their arenas, and the arenas' free pages to
        // the system. 4096 stands for all arenas.
        c"thread.tcache.flush",
        c"arena.4096.purge",
    ] {
        let nothing = std::ptr::null_mut();
        // SAFETY: the name ends with a zero. Both commands take and return nothing, for which
        // jemalloc's manual asks null pointers and a length of zero.
        unsafe {
            tikv_jemalloc_sys::mallctl(command.as_ptr(), nothing, nothing.cast(), nothing, 0);
        }
    }
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
