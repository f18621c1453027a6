//! This CPU's counter, read with as little order as asked for.
//!
//! [`ticks`](crate::ticks()) is a full fence on top; clocks that know what their algorithms need
//! ask for less. Only to be read where [`usable`] says that all CPUs' counters agree on the rate.
//!
//! | | x86-64 | aarch64 | earlier loads | earlier stores | later instructions |
//! |---|---|---|---|---|---|
//! | [`read`] | `rdtsc` | `isb; mrs` | | | |
//! | [`read_between`] | `lfence; rdtsc; lfence` | `dsb ishld; isb; mrs; isb` | have their values | | have not begun |
//! | [`read_behind_stores`] | `xchg; lfence; rdtsc; lfence` | `dsb ish; isb; mrs; isb` | have their values | can be seen | have not begun |
//!
//! # Why these
//! * **`lfence` before.** `rdtsc` may run ahead of loads in front of it. `lfence` waits until they
//!   have their values (Intel SDM volume 2, RDTSC; on AMD since Linux 4.15 sets the mode for it).
//!   `rdtscp` waits too; with the `lfence` that is needed behind it, it is the slower one (20.8
//!   against 18.3 ns on a 2.6 GHz EPYC of family 26).
//! * **`lfence` behind.** Nothing after it begins before the counter is read; without it later
//!   loads do.
//! * **`xchg` before, for stores.** A store may wait in the store buffer long after `lfence` has
//!   let pass. The manual's remedy is `mfence; lfence`. A locked operation drains the buffer as
//!   well: earlier stores can be seen before it, its own line stays locked until it can, and no
//!   later load is served before (SDM volume 3, "Memory ordering"; Linux' own `smp_mb`); behind the
//!   `lfence` the counter is read as a load would be. 23.8 ns in all against 33.7 on that machine.
//!   The one difference, non-temporal stores and write-combining memory, concerns no atomic
//!   word. A thread whose last store of importance *was* a locked operation needs nothing more:
//!   [`read_behind_exchange`].
//! * **`isb` before, also alone.** Without it the processor may read `cntvct_el0` ahead of earlier
//!   instructions (Arm ARM, "The Generic Timer in AArch64 state"), an earlier read of the counter
//!   included, so times of one thread could decrease. On x86-64 no two reads of one CPU do: the
//!   count "is guaranteed to return a monotonically increasing unique value whenever executed"
//!   (SDM volume 3, "Time-Stamp Counter").
//! * **`dsb ishld` before, for loads.** `isb` does not wait for the value of a load that no branch
//!   depends on.
//! * **`dsb ish` before, for stores.** It waits until all earlier stores can be seen by all cores;
//!   an exclusive or atomic instruction alone does not make the counter wait for it, so here an
//!   announcement spares nothing.

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

/// True where this process may order by the hardware's counter; [`ticks_source`](crate::ticks_source)
/// says why not.
#[inline(always)]
pub fn usable() -> bool {
    hardware::chosen()
}

/// True where there is a counter to read, whether or not anybody vouches for it.
pub const fn is_there() -> bool {
    cfg!(all(
        any(target_arch = "x86_64", target_arch = "aarch64"),
        not(any(corelay_loom, corelay_shuttle, miri))
    ))
}

/// The count, somewhere between what stands before and after in the program: the processor may
/// read it before earlier instructions have ended and after later ones have begun. Two reads of
/// one thread on one CPU are in order.
///
/// # Panics
/// Where there is no counter.
#[inline(always)]
pub fn read() -> u64 {
    instructions::read_anywhere()
}

/// The count, after all earlier loads have their values and before any later instruction begins.
/// Earlier stores may still wait in the store buffer.
///
/// # Panics
/// Where there is no counter.
#[inline(always)]
pub fn read_between() -> u64 {
    instructions::read_between()
}

/// The count, after all earlier loads have their values and all earlier stores can be seen by
/// every thread, and before any later instruction begins.
///
/// # Panics
/// Where there is no counter.
#[inline(always)]
pub fn read_behind_stores() -> u64 {
    instructions::read_behind_stores()
}

/// As [`read_behind_stores`], of a thread whose last store was an atomic read-modify-write: what
/// it and the stores in front of it have stored can be seen. Stores behind it may still wait.
///
/// # Panics
/// Where there is no counter.
#[inline(always)]
pub fn read_behind_exchange() -> u64 {
    instructions::read_behind_exchange()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_read_counts_on() {
        // Also under an emulator of aarch64, whose kernel keeps time by another machine's counter.
        let emulated = is_there() && cfg!(target_arch = "aarch64");
        if !(usable() || emulated) {
            return;
        }
        let ways = [read, read_between, read_behind_stores, read_behind_exchange];
        let mut last = 0;
        for turn in 0..100_000 {
            let now = ways[turn % ways.len()]();
            assert!(last <= now, "{last} then {now} in turn {turn}");
            last = now;
        }
    }
}
