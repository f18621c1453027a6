//! The counters of a thread, which all threads can read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number that only one thread changes, and that all threads can read.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`. Only the thread that owns the counter may call this: another one's change would be lost.
    #[inline]
    pub(crate) fn add(&self, n: u64) {
        self.set(self.get().wrapping_add(n));
    }

    /// Adds 1 if `does`.
    #[inline]
    pub(crate) fn count_if(&self, does: bool) {
        self.add(u64::from(does));
    }

    /// Sets the number. Only the thread that owns the counter may call this.
    #[inline]
    pub(crate) fn set(&self, n: u64) {
        // Relaxed: a number by itself, which nobody concludes anything from.
        self.0.store(n, Ordering::Relaxed);
    }

    /// Reads the number.
    #[inline]
    pub(crate) fn get(&self) -> u64 {
        // Relaxed: as above.
        self.0.load(Ordering::Relaxed)
    }
}

/// Declares the counters of a thread, and the sums of all threads' counters under the same names.
macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The counters of a thread: of its connections, and of the operations of its shard. Names that
        /// memcached has, too, mean the same.
        #[derive(Debug, Default)]
        #[repr(align(128))]
        pub(crate) struct Counters {
            $($(#[$doc])* pub(crate) $name: Counter,)*
        }

        /// The sums of several threads' counters.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub(crate) struct Sums {
            $($(#[$doc])* pub(crate) $name: u64,)*
        }

        impl Sums {
            /// Adds the counters up.
            pub(crate) fn of(threads: &[Arc<Counters>]) -> Self {
                let mut sums = Self::default();
                for counters in threads {
                    $(sums.$name = sums.$name.wrapping_add(counters.$name.get());)*
                }
                sums
            }

            /// The sums since `before` was taken.
            pub(crate) fn since(self, before: Self) -> Self {
                Self { $($name: self.$name.wrapping_sub(before.$name),)* }
            }
        }
    };
}

counters! {
    get_hits,
    get_misses,
    /// Retrievals that found an item that had expired.
    get_expired,
    cmd_set,
    cmd_flush,
    touch_hits,
    touch_misses,
    delete_hits,
    delete_misses,
    incr_hits,
    incr_misses,
    decr_hits,
    decr_misses,
    cas_hits,
    cas_misses,
    cas_badval,
    store_too_large,
    store_no_memory,
    auth_cmds,
    auth_errors,
    bytes_read,
    bytes_written,
    total_connections,
    rejected_connections,
    /// Connections that were closed because they were idle.
    idle_kicks,
    /// Requests that the shard has run.
    requests,
    /// Requests that the shard has run for another thread's connections.
    delegated,
    /// Batches in which such requests came.
    batches,
    /// Reads of a connection whose requests took longer than the limit of `--slow`.
    slow_requests,
    /// The items that the shard has, and the bytes of memory that they take with all that belongs to
    /// them, of which so many are the index.
    curr_items,
    bytes,
    hash_bytes,
    total_items,
    evictions,
    evicted_unfetched,
    reclaimed,
    expired_unfetched,
    /// Items that were moved to free the rest of their segment.
    moved,
}

impl Counters {
    /// The hits and the misses of `incr`, or of `decr`.
    pub(crate) fn of_arithmetic(&self, is_increment: bool) -> [&Counter; 2] {
        if is_increment {
            [&self.incr_hits, &self.incr_misses]
        } else {
            [&self.decr_hits, &self.decr_misses]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_of_all_threads_and_begin_anew() {
        let threads: Vec<Arc<Counters>> = (0..3).map(|_| Arc::default()).collect();
        threads[0].get_hits.add(2);
        threads[2].get_hits.add(3);
        threads[1].bytes.set(7);
        let before = Sums::of(&threads);
        assert_eq!((before.get_hits, before.bytes), (5, 7));
        threads[1].get_hits.count_if(true);
        threads[1].get_hits.count_if(false);
        assert_eq!(Sums::of(&threads).since(before).get_hits, 1);
    }
}
