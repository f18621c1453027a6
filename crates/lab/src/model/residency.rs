//! How much of the shared data a cache holds (SPEC D22).
//!
//! `P = min(1, S_cache / (S_var · N))` is the chance that a variable chosen uniformly at
//! random is *in* the cache, once the cache has filled with nothing else. The thesis calls
//! it the share that goes to memory; that share is `1 − P`.

/// Bytes that one shared variable of the fetch-and-add benchmark occupies: a line of its
/// own (D16).
pub const VAR_BYTES: u64 = 64;

/// The share, 0 to 1, of `vars` variables that a cache of `cache_bytes` holds.
///
/// ```
/// use corelay_lab::model::residency::resident;
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

/// The most variables that a cache of `cache_bytes` holds: where its mark stands.
///
/// ```
/// assert_eq!(corelay_lab::model::residency::capacity(1 << 20), 1 << 14);
/// ```
pub fn capacity(cache_bytes: u64) -> u64 {
    cache_bytes / VAR_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

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
