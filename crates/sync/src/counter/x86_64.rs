//! The time-stamp counter of x86-64.

use core::arch::asm;
use core::mem::MaybeUninit;

/// Behind everything, before whatever comes later: a full fence.
#[inline(always)]
pub(crate) fn read_fenced() -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: fences, and a counter that user space may read (Linux keeps it open
    // unless a process asks otherwise by prctl). Not `nomem`: the compiler, too,
    // leaves what is before it before and what is behind it behind.
    unsafe {
        asm!(
            "mfence",
            "lfence",
            "rdtsc",
            "lfence",
            out("rax") low,
            out("rdx") high,
            options(nostack, preserves_flags)
        );
    }
    high << 32 | low
}

/// Without any fence.
#[inline(always)]
pub(crate) fn read_anywhere() -> u64 {
    // SAFETY: as in `read_fenced`.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Behind earlier loads, before whatever comes later.
#[inline(always)]
pub(crate) fn read_between() -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: as in `read_fenced`.
    unsafe {
        asm!(
            "lfence",
            "rdtsc",
            "lfence",
            out("rax") low,
            out("rdx") high,
            options(nostack, preserves_flags)
        );
    }
    high << 32 | low
}

/// Behind earlier loads and stores, before whatever comes later.
#[inline(always)]
pub(crate) fn read_behind_stores() -> u64 {
    let mut word = MaybeUninit::<u32>::uninit();
    let (low, high): (u64, u64);
    // SAFETY: as in `read_fenced`; the exchange writes a word of ours that nobody reads.
    unsafe {
        asm!(
            // Locked without saying so.
            "xchg dword ptr [{word}], eax",
            "lfence",
            "rdtsc",
            "lfence",
            word = in(reg) word.as_mut_ptr(),
            inout("rax") 0_u64 => low,
            out("rdx") high,
            options(nostack, preserves_flags)
        );
    }
    high << 32 | low
}

/// The same behind a locked instruction, which has drained the stores already.
#[inline(always)]
pub(crate) fn read_behind_exchange() -> u64 {
    read_between()
}
