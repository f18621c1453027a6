//! This CPU's counter, read with as little order as the caller asks for.
//!
//! [`ticks`](crate::ticks()) adds a full fence; clocks that know what their algorithms need ask for
//! less. Read the counter only if [`usable`] says that all CPUs' counters agree on the rate.
//!
//! | | x86-64 | aarch64 | earlier loads | earlier stores | later instructions |
//! |---|---|---|---|---|---|
//! | [`read`] | `rdtsc` | `isb; mrs` | | | |
//! | [`read_between`] | `lfence; rdtsc; lfence` | `dsb ishld; isb; mrs; isb` | have their values | | have not begun |
//! | [`read_after_stores`] | `xchg; lfence; rdtsc; lfence` | `dsb ish; isb; mrs; isb` | have their values | can be seen | have not begun |
//!
//! # Why these
//! * **`lfence` before.** `rdtsc` may run ahead of the loads before it. `lfence` waits until they
//!   have their values (Intel SDM volume 2, RDTSC; on AMD since Linux 4.15 sets the mode for it).
//!   `rdtscp` waits too, but with the `lfence` that is needed after it, it is slower (20.8 against
//!   18.3 ns on a 2.6 GHz EPYC of family 26).
//! * **`lfence` after.** Nothing after it begins before the counter is read; without it later loads
//!   do.
//! * **`xchg` before, for stores.** A store may wait in the store buffer long after `lfence` has
//!   completed. The manual's remedy is `mfence; lfence`. A locked operation drains the buffer as
//!   well: earlier stores can be seen before it, its own line stays locked until it can be seen,
//!   and no later load is served before it (SDM volume 3, "Memory ordering"; Linux' own `smp_mb`).
//!   After the `lfence` the counter is read as a load would be. All of it takes 23.8 ns, against
//!   33.7 for the manual's remedy, on that machine. The one difference, non-temporal stores and
//!   write-combining memory, concerns no atomic word. If the thread's last relevant store *was* a
//!   locked operation, nothing more is needed: [`read_after_exchange`].
//! * **`isb` before, also alone.** Without it the processor may read `cntvct_el0` ahead of earlier
//!   instructions (Arm ARM, "The Generic Timer in AArch64 state"), an earlier read of the counter
//!   included, so the times of one thread could decrease. On x86-64 two reads on one CPU never do:
//!   the count "is guaranteed to return a monotonically increasing unique value whenever executed"
//!   (SDM volume 3, "Time-Stamp Counter").
//! * **`dsb ishld` before, for loads.** `isb` does not wait for the value of a load that no branch
//!   depends on.
//! * **`dsb ish` before, for stores.** It waits until all earlier stores can be seen by all cores.
//!   An exclusive or atomic instruction alone does not make the counter wait for it, so on aarch64
//!   an announcement by an atomic instruction saves nothing.

#[cfg(all(target_arch = "aarch64", not(any(corelay_loom, corelay_shuttle, miri))))]
#[path = "aarch64.rs"]
pub(crate) mod instructions;
#[cfg(all(target_arch = "x86_64", not(any(corelay_loom, corelay_shuttle, miri))))]
#[path = "x86_64.rs"]
pub(crate) mod instructions;
#[cfg(not(all(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(any(corelay_loom, corelay_shuttle, miri))
)))]
#[path = "none.rs"]
pub(crate) mod instructions;

use crate::ticks::hardware;

/// Whether this process may order events by the hardware's counter. If not,
/// [`ticks_source`](crate::ticks_source) says why.
#[inline(always)]
pub fn usable() -> bool {
    hardware::chosen()
}

/// Whether there is a counter to read, even if no system vouches for it.
pub const fn is_there() -> bool {
    cfg!(all(
        any(target_arch = "x86_64", target_arch = "aarch64"),
        not(any(corelay_loom, corelay_shuttle, miri))
    ))
}

/// Reads the counter somewhere between the instructions before and after it in the program: the
/// processor may read it before earlier instructions have ended and after later ones have begun.
/// Two reads by one thread on one CPU are in order.
///
/// # Panics
/// If there is no counter.
#[inline(always)]
pub fn read() -> u64 {
    instructions::read_anywhere()
}

/// Reads the counter after all earlier loads have their values and before any later instruction
/// begins. Earlier stores may still wait in the store buffer.
///
/// # Panics
/// If there is no counter.
#[inline(always)]
pub fn read_between() -> u64 {
    instructions::read_between()
}

/// Reads the counter after all earlier loads have their values and all earlier stores can be seen
/// by every thread, and before any later instruction begins.
///
/// # Panics
/// If there is no counter.
#[inline(always)]
pub fn read_after_stores() -> u64 {
    instructions::read_after_stores()
}

/// Reads the counter as [`read_after_stores`] does, on a thread whose last store was an atomic
/// read-modify-write. That store and the ones before it can be seen. Stores after it may still wait
/// in the store buffer.
///
/// # Panics
/// If there is no counter.
#[inline(always)]
pub fn read_after_exchange() -> u64 {
    instructions::read_after_exchange()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_read_counts_up() {
        // Also under an emulator of aarch64, whose kernel keeps time by another machine's counter.
        let emulated = is_there() && cfg!(target_arch = "aarch64");
        if !(usable() || emulated) {
            return;
        }
        let ways = [read, read_between, read_after_stores, read_after_exchange];
        let mut last = 0;
        for turn in 0..100_000 {
            let now = ways[turn % ways.len()]();
            assert!(last <= now, "{last} then {now} in turn {turn}");
            last = now;
        }
    }
}
