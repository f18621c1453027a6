//! The virtual counter of aarch64's generic timer.

use core::arch::asm;

/// Reads the counter after all earlier operations and before all later ones: a full fence.
#[inline(always)]
pub(crate) fn read_fenced() -> u64 {
    let count: u64;
    // SAFETY: barriers, and a counter that Linux lets user space read. Without `nomem` the compiler
    // moves no memory access across the read either.
    unsafe {
        asm!(
            "dsb ish",
            "isb",
            "mrs {count}, cntvct_el0",
            "isb",
            count = out(reg) count,
            options(nostack, preserves_flags)
        );
    }
    count
}

/// Reads the counter in order with this CPU's other reads of it, and with nothing else.
#[inline(always)]
pub(crate) fn read_anywhere() -> u64 {
    let count: u64;
    // SAFETY: a barrier, and a counter that Linux lets user space read. `nomem`: memory may be
    // accessed before or after.
    unsafe {
        asm!(
            "isb",
            "mrs {count}, cntvct_el0",
            count = out(reg) count,
            options(nomem, nostack, preserves_flags)
        );
    }
    count
}

/// Reads the counter after earlier loads and before all later operations.
///
/// `isb` alone does not wait for the value of a load that no branch before it depends on;
/// `dsb ishld` does.
#[inline(always)]
pub(crate) fn read_between() -> u64 {
    let count: u64;
    // SAFETY: barriers, and a counter that Linux lets user space read.
    unsafe {
        asm!(
            "dsb ishld",
            "isb",
            "mrs {count}, cntvct_el0",
            "isb",
            count = out(reg) count,
            options(nostack, preserves_flags)
        );
    }
    count
}

/// Reads the counter after earlier loads and stores and before all later operations.
#[inline(always)]
pub(crate) fn read_after_stores() -> u64 {
    read_fenced()
}

/// Reads the counter as [`read_after_stores`] does: an atomic instruction does not make the
/// counter wait for its store.
#[inline(always)]
pub(crate) fn read_after_exchange() -> u64 {
    read_fenced()
}
