//! The share of the shared data that a cache holds (SPEC D22).
//!
//! `P = min(1, S_cache / (S_var · N))` is the probability that a variable chosen uniformly at
//! random is *in* the cache, once the cache holds nothing but variables. The thesis calls it the
//! probability "that a variable will be DRAM resident", which would be largest with the fewest
//! variables. That share is `1 − P`.

use corelay_lab_measure::schema::CacheLevel;

/// Bytes of one shared variable of the fetch-and-add benchmark: a cache line of its own (D16).
pub const VAR_BYTES: u64 = 64;

/// Returns the share, 0 to 1, of `vars` variables that a cache of `cache_bytes` holds.
///
/// ```
/// use corelay_lab_report::model::residency::resident;
///
/// assert_eq!(resident(32 << 20, 1 << 20), 0.5);   // 64 MiB of variables, 32 MiB of cache
/// assert_eq!(resident(32 << 20, 1), 1.0);
/// ```
pub fn resident(cache_bytes: u64, vars: u64) -> f64 {
    let data = VAR_BYTES as f64 * vars as f64;
    if data <= cache_bytes as f64 {
        1.0
    } else {
        cache_bytes as f64 / data
    }
}

/// Returns the most variables that a cache of `cache_bytes` holds, where pictures mark it.
///
/// ```
/// assert_eq!(corelay_lab_report::model::residency::capacity(1 << 20), 1 << 14);
/// ```
pub fn capacity(cache_bytes: u64) -> u64 {
    cache_bytes / VAR_BYTES
}

/// Returns the share, 0 to 1, of `vars` variables that no cache holds, so that it comes from
/// memory.
///
/// ```
/// use corelay_lab_report::model::residency::from_memory;
///
/// assert_eq!(from_memory(32 << 20, 1 << 21), 0.75);
/// assert_eq!(from_memory(32 << 20, 1), 0.0);   // as printed, it would be all of them
/// ```
pub fn from_memory(cache_bytes: u64, vars: u64) -> f64 {
    1.0 - resident(cache_bytes, vars)
}

/// Returns the bytes of an L2 that are left for variables if a server's core has `footprint` bytes of
/// delegation's own in its caches: these take the L1 first (the thesis: 93 KB take a whole L1 and
/// 62 KB of the L2).
///
/// ```
/// assert_eq!(corelay_lab_report::model::residency::left(1024, 32, 93), 963);
/// ```
pub fn left(l2_bytes: u64, l1_bytes: u64, footprint: u64) -> u64 {
    l2_bytes.saturating_sub(footprint.saturating_sub(l1_bytes))
}

/// Returns the bytes of a machine's L2s and L3s together, or of its only caches. An L3 holds other
/// lines than the L2s unless it is inclusive, which the system does not say.
pub fn last_caches(caches: &[CacheLevel]) -> u64 {
    let of = |least: u32| {
        let levels = caches.iter().filter(|cache| cache.level >= least);
        let bytes = levels.map(|c| c.bytes.saturating_mul(c.instances.max(1) as u64));
        bytes.fold(0, u64::saturating_add)
    };
    match of(2) {
        0 => of(0),
        bytes => bytes,
    }
}

/// Returns the first power of two of variables that caches of `cache_bytes` do not hold: the point of
/// a sweep at which throughput begins to fall.
///
/// ```
/// use corelay_lab_report::model::residency::knee;
///
/// assert_eq!(knee(16 * (960 << 10)), 1 << 18);
/// assert_eq!(knee(64), 2);
/// ```
pub fn knee(cache_bytes: u64) -> u64 {
    (capacity(cache_bytes) + 1).next_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The thesis's own calculation: for each of 16 servers, delegation leaves 960 of 1,024 KB of
    /// L2, and 2,464 KB of L3.
    #[test]
    fn agrees_with_the_figures_of_the_source() {
        let near = |vars: u64, said: f64| (vars as f64 / said - 1.0).abs() < 0.03;
        assert!(near(capacity(960 << 10), 15e3) && near(capacity(16 * (960 << 10)), 246e3));
        assert!(near(capacity(2464 << 10), 39e3) && near(capacity(16 * (2464 << 10)), 630e3));
        // The thesis: "L2 cache is exhausted at 2^18", "L3 … approaches 2^20".
        assert_eq!(resident(16 * (960 << 10), 1 << 17), 1.0);
        assert!(from_memory(16 * (960 << 10), 1 << 18) > 0.0);
        let both = 16 * ((960 + 2464) << 10);
        assert_eq!(from_memory(both, 1 << 19), 0.0);
        assert!(from_memory(both, 1 << 20) > 0.1);
    }

    /// The same with the sizes in bytes: 16 servers, 1 MiB of L2 and 32 KiB of L1 each, 38.5 MiB of
    /// L3, and a footprint of 93 KB in either meaning.
    #[test]
    fn predicts_the_knees_of_the_source() {
        for footprint in [93_000, 93 << 10] {
            let l2 = 16 * left(1 << 20, 32 << 10, footprint);
            assert_eq!(knee(l2), 1 << 18);
            assert_eq!(knee(l2 + 40_370_176), 1 << 20);
        }
        // A larger L2 holds more.
        assert_eq!(knee(16 * left(4 << 20, 32 << 10, 0) + 40_370_176), 1 << 21);
        assert_eq!(left(1 << 20, 48 << 10, 20 << 10), 1 << 20);
        assert_eq!(left(1 << 10, 0, 1 << 20), 0);
    }

    #[test]
    fn all_caches_but_the_first_count_together() {
        let level = |level, bytes, instances| CacheLevel {
            level,
            bytes,
            sharers: 1,
            instances,
        };
        let all = [level(1, 10, 2), level(2, 100, 2), level(3, 1000, 1)];
        assert_eq!(last_caches(&all), 1200);
        assert_eq!(last_caches(&all[..1]), 20);
        assert_eq!(last_caches(&[]), 0);
    }

    #[test]
    fn all_of_it_up_to_the_capacity_and_less_beyond() {
        let cache = 48 << 10;
        let most = capacity(cache);
        assert_eq!(most, 768);
        assert_eq!(resident(cache, most), 1.0);
        assert!(resident(cache, most + 1) < 1.0);
        assert_eq!(resident(cache, 4 * most), 0.25);
    }

    #[test]
    fn no_cache_holds_nothing_and_no_data_is_always_held() {
        assert_eq!(resident(0, 1), 0.0);
        assert_eq!(resident(0, 0), 1.0);
    }
}
