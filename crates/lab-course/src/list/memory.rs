//! Memory of the allocators, so that each run begins as a program of its own would.

#![allow(unsafe_code, reason = "functions of the C library and of mimalloc")]

/// Gives back to the system what is free.
pub(super) fn free_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: may be called at any time, in any thread.
    unsafe {
        libc::malloc_trim(0);
    }
    // SAFETY: as above.
    unsafe { libmimalloc_sys::mi_collect(true) };
}

/// From here on a page fault is one small page, whatever an allocator would rather have: else some
/// of them would give 2 MiB at once and take a hundred times as long, as luck has it.
pub(super) fn small_pages() {
    #[cfg(target_os = "linux")]
    // Where the kernel does not know of it, there is nothing to switch off.
    // SAFETY: sets a flag of this process.
    unsafe {
        libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0);
    }
}
