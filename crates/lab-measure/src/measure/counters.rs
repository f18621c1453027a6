//! Loads from memory, by the processor's own counters, where there are any (D25).
//!
//! Linux counts loads that go to memory as accesses to the node: those that miss it are another
//! node's. Where the processor, the hypervisor or the system offers no such counter, that is an
//! error with a sentence, and nothing else is measured instead.

use std::ops::{AddAssign, Sub};

/// Loads from memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// From the node's own.
    pub(crate) local: u64,
    /// From other nodes'.
    pub remote: u64,
}

impl Sub for Counts {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            local: self.local.saturating_sub(before.local),
            remote: self.remote.saturating_sub(before.remote),
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, more: Self) {
        self.local += more.local;
        self.remote += more.remote;
    }
}

pub use of_this_system::Counters;

/// Why memory loads cannot be counted here; `None` where they can.
pub fn unavailable() -> Option<String> {
    Counters::own().err()
}

#[cfg(target_os = "linux")]
mod of_this_system {
    use super::Counts;
    use perf_event::events::{Cache, CacheId, CacheOp, CacheResult, Event, Hardware};
    use perf_event::{Builder, Counter};

    /// Loads that go to memory, and those of them that go to another node's.
    const LOADS: Cache = Cache {
        which: CacheId::NODE,
        operation: CacheOp::READ,
        result: CacheResult::ACCESS,
    };
    const ELSEWHERE: Cache = Cache {
        result: CacheResult::MISS,
        ..LOADS
    };

    /// Two counters that run.
    #[derive(Debug)]
    pub struct Counters {
        all: Counter,
        elsewhere: Counter,
    }

    impl Counters {
        /// Counts what the calling thread does from now on.
        ///
        /// # Errors
        /// A clause that says why it cannot be counted.
        pub(crate) fn own() -> Result<Self, String> {
            Self::of([LOADS, ELSEWHERE], false)
        }

        /// Counts what the calling thread does, and what threads do that it starts from now on.
        ///
        /// # Errors
        /// A clause that says why it cannot be counted.
        pub(crate) fn inherited() -> Result<Self, String> {
            Self::of([LOADS, ELSEWHERE], true)
        }

        /// Counts the calling thread's misses of the caches that are shared, from now on: those are
        /// `remote`, hits are `local`.
        ///
        /// # Errors
        /// A clause that says why they cannot be counted.
        pub fn misses() -> Result<Self, String> {
            let said = |error: String| error.replace("loads from memory", "cache misses");
            Self::of([Hardware::CACHE_REFERENCES, Hardware::CACHE_MISSES], false).map_err(said)
        }

        pub(super) fn of<E: Event>(
            [all, elsewhere]: [E; 2],
            inherit: bool,
        ) -> Result<Self, String> {
            let counter = |event| -> std::io::Result<Counter> {
                let mut counter = Builder::new(event).inherit(inherit).build()?;
                counter.enable()?;
                Ok(counter)
            };
            let both = || {
                Ok(Self {
                    all: counter(all)?,
                    elsewhere: counter(elsewhere)?,
                })
            };
            both().map_err(|error: std::io::Error| why(&error))
        }

        /// What has been counted so far.
        pub fn read(&mut self) -> Counts {
            // A counter that was opened can be read.
            let all = self.all.read().unwrap_or(0);
            let remote = self.elsewhere.read().unwrap_or(0);
            Counts {
                local: all.saturating_sub(remote),
                remote,
            }
        }
    }

    fn why(error: &std::io::Error) -> String {
        match error.kind() {
            std::io::ErrorKind::PermissionDenied => "loads from memory cannot be counted: this \
                process may not read hardware counters (see /proc/sys/kernel/perf_event_paranoid)"
                .to_owned(),
            std::io::ErrorKind::NotFound => {
                "loads from memory cannot be counted: this (virtual) processor offers no such \
                 counter"
                    .to_owned()
            }
            _ => format!("loads from memory cannot be counted: {error}"),
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use perf_event::events::Software;

        /// By a counter that every Linux has: what is counted, and of whom.
        #[test]
        fn own_and_inherited_counts_differ_in_whom_they_count() {
            let events = || [Software::TASK_CLOCK, Software::EMULATION_FAULTS];
            let (Ok(mut own), Ok(mut all)) =
                (Counters::of(events(), false), Counters::of(events(), true))
            else {
                return; // a sandbox that forbids even these
            };
            let before = (own.read(), all.read());
            let busy = || {
                let start = std::time::Instant::now();
                while start.elapsed() < std::time::Duration::from_millis(20) {
                    std::hint::spin_loop();
                }
            };
            std::thread::spawn(busy).join().unwrap();
            let (own, all) = (own.read() - before.0, all.read() - before.1);
            // Nanoseconds on a CPU: the other thread's are in the inherited count only.
            assert!(all.local > own.local, "{own:?} {all:?}");
            assert_eq!((own.remote, all.remote), (0, 0));
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod of_this_system {
    use super::Counts;

    /// There are none.
    #[derive(Debug)]
    pub enum Counters {}

    impl Counters {
        /// # Errors
        /// Always.
        pub(crate) fn own() -> Result<Self, String> {
            Err("loads from memory are counted on Linux only".to_owned())
        }

        /// # Errors
        /// Always.
        pub(crate) fn inherited() -> Result<Self, String> {
            Self::own()
        }

        /// # Errors
        /// Always.
        pub(crate) fn misses() -> Result<Self, String> {
            Err("cache misses are counted on Linux only".to_owned())
        }

        /// Nothing.
        pub(crate) fn read(&mut self) -> Counts {
            match *self {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_up() {
        let counts = |local, remote| Counts { local, remote };
        let mut sum = counts(1, 2);
        sum += counts(10, 20) - counts(3, 4);
        assert_eq!(sum, counts(8, 18));
        assert_eq!(counts(1, 1) - counts(2, 0), counts(0, 1));
    }
}
