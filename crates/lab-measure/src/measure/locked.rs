//! The cost of a locked instruction against the plain one, in cycles, on a word that no other thread
//! uses (the thesis, "Synchronization": on Skylake `LOCK CMPXCHG` takes 18 cycles and `CMPXCHG` 6, by
//! Fog's tables).
//!
//! A cycle is a third of the time of a multiplication that waits for the previous one: three cycles on
//! Intel's cores since 2008 and on AMD's since 2017 (Fog, "Instruction tables"). So no counter of
//! cycles is needed.

#![allow(unsafe_code, reason = "instructions of one architecture")]

use super::cost::Cost;
use std::arch::asm;
use std::time::Instant;

/// Times each instruction is executed in one timing. The best of [`TIMINGS`] counts, as an interrupt
/// spoils some.
const TIMES: u32 = 20_000;
const TIMINGS: u32 = 25;

/// Runs `$instruction` [`TIMES`] times, each after the previous one, and returns the nanoseconds of
/// one. The instruction may use the register `word`, which points to a word that is 0, and `register`,
/// which is 0; `rax` is 0 before and after.
macro_rules! time {
    ($instruction:literal) => {{
        let mut word = 0_u64;
        let mut best = f64::INFINITY;
        for _ in 0..TIMINGS {
            let begin = Instant::now();
            // SAFETY: the block writes to the local word, the named registers and flags only, leaves the
            // stack alone, and ends after `TIMES` rounds.
            unsafe {
                asm!(
                    "2:",
                    $instruction,
                    "dec {left:e}",
                    "jnz 2b",
                    left = inout(reg) TIMES => _,
                    word = in(reg) &raw mut word,
                    register = inout(reg) 0_u64 => _,
                    inout("rax") 0_u64 => _,
                    options(nostack),
                );
            }
            best = best.min(begin.elapsed().as_nanos() as f64 / f64::from(TIMES));
        }
        std::hint::black_box(word);
        best
    }};
}

/// Measures the instructions, the plain ones before the locked.
pub(super) fn costs() -> [Cost; 5] {
    // A template must name every operand: those that an instruction does not use stand in a comment.
    let cycle = time!("imul {register}, {register} /* {word} */") / 3.0;
    let of = |what, ns: f64| Cost {
        what,
        ns,
        cycles: ns / cycle,
    };
    [
        of(
            "add, in memory",
            time!("add qword ptr [{word}], 0 /* {register} */"),
        ),
        of(
            "lock add",
            time!("lock add qword ptr [{word}], 0 /* {register} */"),
        ),
        of("cmpxchg", time!("cmpxchg qword ptr [{word}], {register}")),
        of(
            "lock cmpxchg",
            time!("lock cmpxchg qword ptr [{word}], {register}"),
        ),
        of(
            "xchg, always locked",
            time!("xchg qword ptr [{word}], {register}"),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_instruction_takes_some_time() {
        let costs = costs();
        assert!(
            costs
                .iter()
                .all(|cost| cost.ns > 0.0 && cost.cycles.is_finite()),
            "{costs:?}"
        );
    }
}
