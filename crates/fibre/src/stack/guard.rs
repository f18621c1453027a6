//! The page below a stack that cannot be touched.
//!
//! One page: rustc's stack probes touch every page of a frame, so that Rust code cannot step over
//! it. C code can, where a frame is larger than a page and was not built with
//! `-fstack-clash-protection`; a larger guard would only make that rarer, and each page of it
//! costs every stack an entry of the page tables.
//!
//! Linux 6.13 and later mark a page of a mapping as a guard and leave the mapping one
//! (`MADV_GUARD_INSTALL`). Elsewhere the page's protection changes, which splits the mapping:
//! two of them per stack, and Linux has 65,530 for a process (`vm.max_map_count`), which makes
//! about 32,750 stacks.

use super::size::page_size;
use std::io;
use std::ptr::NonNull;

/// Whether a stack must have a guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Guards {
    /// No stack without one.
    Required,
    /// One where it can be had. Whoever takes such a stack swears that its frames fit.
    IfPossible,
}

/// Bytes of a guard.
#[inline(always)]
pub(crate) fn bytes() -> usize {
    page_size()
}

/// Makes the page at `low` a guard.
///
/// # Safety
///
/// The page is part of a mapping of the caller's that nobody uses.
pub(super) unsafe fn install(low: NonNull<u8>) -> io::Result<()> {
    // SAFETY: handed on.
    if unsafe { mark(low) } {
        return Ok(());
    }
    // SAFETY: the page is the caller's and not in use.
    let done = unsafe { libc::mprotect(low.as_ptr().cast(), bytes(), libc::PROT_NONE) };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Marks the page; false where the kernel cannot: it is older, or the mapping is locked.
///
/// # Safety
///
/// As [`install`].
#[cfg(any(target_os = "linux", target_os = "android"))]
unsafe fn mark(low: NonNull<u8>) -> bool {
    use std::sync::OnceLock;

    /// Of `include/uapi/asm-generic/mman-common.h`, Linux 6.13; libc has no name for it yet.
    const MADV_GUARD_INSTALL: libc::c_int = 102;

    // An escape hatch for trying the fallback, and for where marks go wrong.
    static WANTED: OnceLock<bool> = OnceLock::new();
    if !WANTED.get_or_init(|| std::env::var_os("CORELAY_NO_GUARD_INSTALL").is_none()) {
        return false;
    }
    // SAFETY: the page is the caller's and not in use; older kernels know no such advice and do
    // nothing.
    unsafe { libc::madvise(low.as_ptr().cast(), bytes(), MADV_GUARD_INSTALL) == 0 }
}

/// # Safety
///
/// As [`install`].
#[cfg(not(any(target_os = "linux", target_os = "android")))]
unsafe fn mark(_low: NonNull<u8>) -> bool {
    false
}

/// How many mappings a process may have, where that limits guards.
pub(super) fn most_mappings() -> Option<usize> {
    let limit = std::fs::read_to_string("/proc/sys/vm/max_map_count").ok()?;
    limit.trim().parse().ok()
}
