//! The x86-64 instructions that read the counter, bare, to be compared with.

#![allow(unsafe_code, reason = "instructions of one architecture")]

use core::arch::x86_64::{__rdtscp, _mm_lfence, _rdtsc};

/// Reads the counter, in no order.
#[inline(always)]
pub fn rdtsc() -> u64 {
    // SAFETY: every x86-64 has it, and Linux lets user space read the counter.
    unsafe { _rdtsc() }
}

#[inline(always)]
pub(super) fn lfence_rdtsc() -> u64 {
    // SAFETY: part of SSE2, which every x86-64 has.
    unsafe { _mm_lfence() };
    rdtsc()
}

/// The compiler's own, which knows what the instruction writes: rcx, too.
#[inline(always)]
pub fn rdtscp() -> u64 {
    let mut cpu = 0;
    // SAFETY: `cpu` is there to be written; older than any x86-64 that has an invariant counter.
    unsafe { __rdtscp(&raw mut cpu) }
}
