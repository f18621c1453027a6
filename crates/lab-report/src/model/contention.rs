//! The probability that threads meet on one variable, if each picks one uniformly at random.
//!
//! The thesis ("Asynchronous Delegation", section "Performance Under Contention") gives `1 − C(V,
//! T) / V^T` for the chance that at least one pair contends. That formula lacks a factor `T!`:
//! the favourable outcomes are *ordered* choices without repetition. The right formula is that of
//! the birthday problem. It agrees with the thesis's own prose ("drops below 10 % at 2^14 and is
//! practically zero at 2^19"): 8.98 % and 0.29 % for its 56 threads. The printed formula gives
//! practically 1 for 56 threads everywhere. [`as_printed`] is kept only to be refuted.

/// Returns the probability, 0 to 1, that at least two of `threads` pick the same one of `vars`
/// variables: `1 − V! / ((V − T)! · V^T)` for `T ≤ V`, and 1 for `T > V`.
///
/// It is computed as a sum of logarithms, so that factorials do not overflow and a small
/// probability is not lost in rounding.
///
/// ```
/// use corelay_lab_report::model::contention::probability;
///
/// assert_eq!(probability(2, 1), 1.0);
/// assert!((probability(2, 64) - 1.0 / 64.0).abs() < 1e-12);
/// ```
pub fn probability(threads: usize, vars: u64) -> f64 {
    let threads = threads as u64;
    if threads > vars {
        return if threads > 1 { 1.0 } else { 0.0 };
    }
    let nobody_meets: f64 = (0..threads)
        .map(|i| (-(i as f64) / vars as f64).ln_1p())
        .sum();
    // `0.0 -` instead of unary minus, so that one thread gives 0 and not −0.
    0.0 - nobody_meets.exp_m1()
}

/// Returns the fewest threads that share a variable with another, whatever they pick: by the
/// pigeonhole principle `T − V + 1` if `T > V`, else none.
///
/// The thesis says `2·(T − V)`, which three threads on one variable refute: 3 of them contend,
/// not 4.
///
/// ```
/// use corelay_lab_report::model::contention::fewest_contending;
///
/// assert_eq!(fewest_contending(3, 1), 3);
/// assert_eq!(fewest_contending(3, 4), 0);
/// ```
pub fn fewest_contending(threads: usize, vars: u64) -> u64 {
    let threads = threads as u64;
    if vars > 0 && threads > vars {
        threads - vars + 1
    } else {
        0
    }
}

/// Returns the thesis's formula as printed, `1 − C(V, T) / V^T`, which is `1 − (1 − P) / T!`. It
/// is wrong; only its refutation uses it.
///
/// ```
/// use corelay_lab_report::model::contention::{as_printed, probability};
///
/// // Two threads that choose among four variables meet in 4 of 16 cases, not in 10.
/// assert!((probability(2, 4) - 0.25).abs() < 1e-12 && (as_printed(2, 4) - 0.625).abs() < 1e-12);
/// // A single thread meets no other, and both formulas say so.
/// assert_eq!(as_printed(1, 4), 0.0);
/// // The thesis's own prose calls this "practically zero".
/// assert!(as_printed(56, 1 << 19) > 0.999_999);
/// ```
pub fn as_printed(threads: usize, vars: u64) -> f64 {
    let ways: f64 = (1..=threads).map(|n| n as f64).product();
    1.0 - (1.0 - probability(threads, vars)) / ways
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_figures_of_the_source() {
        assert!((probability(56, 1 << 14) - 0.0898).abs() < 5e-5);
        assert!((probability(56, 1 << 19) - 0.0029).abs() < 5e-5);
    }

    #[test]
    fn agrees_with_counting_all_choices() {
        for threads in 1..=4usize {
            for vars in 1..=6u64 {
                let all = vars.pow(threads as u32);
                let meet = (0..all)
                    .filter(|&n| some_pair_meets(n, threads, vars))
                    .count();
                let counted = meet as f64 / all as f64;
                let p = probability(threads, vars);
                assert!(
                    (p - counted).abs() < 1e-12,
                    "T={threads} V={vars}: {p} for {counted}"
                );
            }
        }
    }

    /// Reads `n` as `threads` digits in base `vars`: one choice each.
    fn some_pair_meets(mut n: u64, threads: usize, vars: u64) -> bool {
        let mut seen = [false; 8];
        (0..threads).any(|_| {
            let pick = (n % vars) as usize;
            n /= vars;
            std::mem::replace(&mut seen[pick], true)
        })
    }

    #[test]
    fn fewest_contending_is_reached_by_some_choice_and_never_undercut() {
        for threads in 1..=5usize {
            for vars in 1..=5u64 {
                let all = vars.pow(threads as u32);
                let least = (0..all).map(|n| contending(n, threads, vars)).min();
                assert_eq!(
                    least,
                    Some(fewest_contending(threads, vars)),
                    "T={threads} V={vars}"
                );
            }
        }
    }

    fn contending(mut n: u64, threads: usize, vars: u64) -> u64 {
        let mut picks = [0u64; 8];
        for _ in 0..threads {
            picks[(n % vars) as usize] += 1;
            n /= vars;
        }
        picks.iter().filter(|&&p| p > 1).sum()
    }

    #[test]
    fn stays_exact_far_out() {
        // Two threads meet with probability exactly 1/V.
        for shift in 0..40 {
            let vars = 1u64 << shift;
            let p = probability(2, vars);
            assert!((p * vars as f64 - 1.0).abs() < 1e-12, "V=2^{shift}: {p}");
        }
        assert_eq!(probability(0, 8), 0.0);
        assert_eq!(probability(1, 8), 0.0);
        assert_eq!(probability(1, 0), 0.0);
        assert_eq!(probability(200, 199), 1.0);
        assert_eq!(probability(200, 200), 1.0);
    }
}
