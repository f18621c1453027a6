//! The virtual counter of aarch64's generic timer.

use core::arch::asm;

/// Behind everything, before whatever comes later: a full fence.
#[inline(always)]
pub(crate) fn read_fenced() -> u64 {
    let count: u64;
    // SAFETY: barriers, and a counter that Linux lets user space read. Not `nomem`:
    // the compiler, too, leaves what is before it before and behind it behind.
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

/// In order with other reads of the counter, and nothing more.
#[inline(always)]
pub(crate) fn read_anywhere() -> u64 {
    let count: u64;
    // SAFETY: as in `read_fenced`. `nomem`: memory may be accessed before or after.
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

/// Behind earlier loads, before whatever comes later.
///
/// `isb` alone does not wait for the value of a load that no branch before it depends on;
/// `dsb ishld` does.
#[inline(always)]
pub(crate) fn read_between() -> u64 {
    let count: u64;
    // SAFETY: as in `read_fenced`.
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

/// Behind earlier loads and stores, before whatever comes later.
#[inline(always)]
pub(crate) fn read_behind_stores() -> u64 {
    read_fenced()
}

/// The same: an atomic instruction does not make the counter wait for its store.
#[inline(always)]
pub(crate) fn read_behind_exchange() -> u64 {
    read_fenced()
}
