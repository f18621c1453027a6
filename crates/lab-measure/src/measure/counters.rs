//! Loads from memory, counted by the processor (D25).
//!
//! Linux has two events for loads that go to memory, `node-loads` and `node-load-misses`. What they
//! count depends on the processor: on some the first counts the loads from every node and the second
//! those from other nodes, on others the first counts those from the own node alone (`NodeEvents`).
//! If the processor, the hypervisor or the system offers no such counter, or its meaning is not known,
//! opening one fails with a sentence, and nothing else is measured instead.

use std::ops::{AddAssign, Sub};

/// Numbers of loads from memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadCounts {
    /// Loads from the node's own memory.
    pub(crate) local: u64,
    /// Loads from the memory of other nodes.
    pub remote: u64,
}

impl Sub for LoadCounts {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            local: self.local.saturating_sub(before.local),
            remote: self.remote.saturating_sub(before.remote),
        }
    }
}

impl AddAssign for LoadCounts {
    fn add_assign(&mut self, more: Self) {
        self.local += more.local;
        self.remote += more.remote;
    }
}

pub use of_this_system::Counters;

/// The meaning of the events `node-loads` and `node-load-misses` on a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NodeEvents {
    /// The first counts the loads from all nodes, the second those from other nodes.
    AllAndRemote,
    /// The first counts the loads from the own node, the second those from other nodes.
    LocalAndRemote,
}

impl NodeEvents {
    /// The meaning on a processor, by the tables of the Linux kernel (`arch/x86/events`:
    /// `nehalem_`, `snb_`, `hsw_` and `skl_hw_cache_extra_regs`, `amd_hw_cache_event_ids`); `None`
    /// where it has not been looked up.
    fn of(vendor: &str, family: u32, model: u32) -> Option<Self> {
        match (vendor, family, model) {
            // Nehalem and Westmere; Sandy Bridge and Ivy Bridge.
            ("GenuineIntel", 6, 0x1a | 0x1e | 0x2e | 0x25 | 0x2c | 0x2f)
            | ("GenuineIntel", 6, 0x2a | 0x2d | 0x3a | 0x3e)
            // Before Zen, which has no such events.
            | ("AuthenticAMD", 0x0f..=0x16, _) => Some(Self::AllAndRemote),
            // Haswell and Broadwell; Skylake, Kaby Lake and Comet Lake; Ice Lake, Tiger Lake and Rocket
            // Lake.
            ("GenuineIntel", 6, 0x3c | 0x3f | 0x45 | 0x46 | 0x3d | 0x47 | 0x4f | 0x56)
            | ("GenuineIntel", 6, 0x4e | 0x5e | 0x55 | 0x8e | 0x9e | 0xa5 | 0xa6)
            | ("GenuineIntel", 6, 0x7d | 0x7e | 0x6a | 0x6c | 0x8c | 0x8d | 0xa7) => {
                Some(Self::LocalAndRemote)
            }
            _ => None,
        }
    }

    /// The meaning on the processor that the text of `/proc/cpuinfo` describes.
    ///
    /// # Errors
    /// A clause that names the processor if the meaning is not known.
    fn on(cpuinfo: &str) -> Result<Self, String> {
        let field = |name: &str| {
            let mut lines = cpuinfo.lines().filter_map(|line| line.split_once(':'));
            let found = lines.find(|(key, _)| key.trim() == name);
            found.map_or("", |(_, value)| value.trim())
        };
        let number = |name| field(name).parse().unwrap_or(0);
        let (vendor, family, model) = (field("vendor_id"), number("cpu family"), number("model"));
        Self::of(vendor, family, model).ok_or_else(|| {
            let vendor = if vendor.is_empty() {
                "unknown vendor"
            } else {
                vendor
            };
            format!(
                "loads from memory cannot be counted: what the kernel's node-loads count on this \
                 processor ({vendor}, family {family}, model {model}) is not known here"
            )
        })
    }

    /// The loads by node, if the two events have counted `first` and `second`.
    fn counts(self, first: u64, second: u64) -> LoadCounts {
        let local = match self {
            Self::AllAndRemote => first.saturating_sub(second),
            Self::LocalAndRemote => first,
        };
        let remote = second;
        LoadCounts { local, remote }
    }
}

/// The reason why memory loads cannot be counted here; `None` if they can.
pub fn unavailable() -> Option<String> {
    Counters::own().err()
}

#[cfg(target_os = "linux")]
mod of_this_system {
    use super::{LoadCounts, NodeEvents};
    use perf_event::events::{Cache, CacheId, CacheOp, CacheResult, Event, Hardware};
    use perf_event::{Builder, Counter};

    /// The event `node-loads`.
    const LOADS: Cache = Cache {
        which: CacheId::NODE,
        operation: CacheOp::READ,
        result: CacheResult::ACCESS,
    };
    /// The event `node-load-misses`.
    const LOAD_MISSES: Cache = Cache {
        result: CacheResult::MISS,
        ..LOADS
    };

    /// A pair of running counters, and their meaning.
    #[derive(Debug)]
    pub struct Counters {
        first: Counter,
        second: Counter,
        meaning: NodeEvents,
    }

    impl Counters {
        /// Starts to count the calling thread's loads.
        ///
        /// # Errors
        /// A clause that says why it cannot be counted.
        pub(crate) fn own() -> Result<Self, String> {
            Self::of_loads(false)
        }

        /// Starts to count the loads of the calling thread and of threads that it starts later.
        ///
        /// # Errors
        /// A clause that says why it cannot be counted.
        pub(crate) fn inherited() -> Result<Self, String> {
            Self::of_loads(true)
        }

        /// Starts to count the calling thread's accesses to the shared caches. In the counts that
        /// [`read`](Self::read) returns, hits are `local` and misses are `remote`.
        ///
        /// # Errors
        /// A clause that says why they cannot be counted.
        pub fn misses() -> Result<Self, String> {
            let reworded = |error: String| error.replace("loads from memory", "cache misses");
            Self::of([Hardware::CACHE_REFERENCES, Hardware::CACHE_MISSES], false).map_err(reworded)
        }

        fn of_loads(inherit: bool) -> Result<Self, String> {
            let counters = Self::of([LOADS, LOAD_MISSES], inherit)?;
            let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
            let meaning = NodeEvents::on(&cpuinfo)?;
            Ok(Self {
                meaning,
                ..counters
            })
        }

        /// Opens and starts both counters, the second of which counts a part of the first; if `inherit`, they count later threads, too.
        pub(super) fn of<E: Event>([first, second]: [E; 2], inherit: bool) -> Result<Self, String> {
            let counter = |event| -> std::io::Result<Counter> {
                let mut counter = Builder::new(event).inherit(inherit).build()?;
                counter.enable()?;
                Ok(counter)
            };
            let both = || {
                Ok(Self {
                    first: counter(first)?,
                    second: counter(second)?,
                    meaning: NodeEvents::AllAndRemote,
                })
            };
            both().map_err(|error: std::io::Error| reason(&error))
        }

        /// The counts since the counters were started.
        pub fn read(&mut self) -> LoadCounts {
            // Reading a counter that was opened does not fail.
            let first = self.first.read().unwrap_or(0);
            let second = self.second.read().unwrap_or(0);
            self.meaning.counts(first, second)
        }
    }

    /// A clause that says why counters cannot be opened.
    fn reason(error: &std::io::Error) -> String {
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

        /// Tests the scope of both kinds of counters, by events that every Linux has.
        #[test]
        fn inherited_counts_include_threads_started_later() {
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
            // Nanoseconds on a CPU: the started thread's are in the inherited count only.
            assert!(all.local > own.local, "{own:?} {all:?}");
            assert_eq!((own.remote, all.remote), (0, 0));
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod of_this_system {
    use super::LoadCounts;

    /// Loads cannot be counted on this system, so no value exists.
    #[derive(Debug)]
    pub enum Counters {}

    impl Counters {
        /// Fails: no counters exist on this system.
        ///
        /// # Errors
        /// Always.
        pub(crate) fn own() -> Result<Self, String> {
            Err("loads from memory are counted on Linux only".to_owned())
        }

        /// Fails: no counters exist on this system.
        ///
        /// # Errors
        /// Always.
        pub(crate) fn inherited() -> Result<Self, String> {
            Self::own()
        }

        /// Fails: no counters exist on this system.
        ///
        /// # Errors
        /// Always.
        pub(crate) fn misses() -> Result<Self, String> {
            Err("cache misses are counted on Linux only".to_owned())
        }

        /// Cannot be called, as no counters exist on this system.
        pub(crate) fn read(&mut self) -> LoadCounts {
            match *self {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_says_what_the_events_count() {
        let cpuinfo = |vendor, family, model| {
            format!(
                "processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\nmodel name\t: a CPU\n"
            )
        };
        let on = |vendor, family, model| NodeEvents::on(&cpuinfo(vendor, family, model));
        // The thesis's: Skylake.
        let skylake = on("GenuineIntel", 6, 85).unwrap();
        assert_eq!(
            skylake.counts(70, 30),
            LoadCounts {
                local: 70,
                remote: 30
            }
        );
        let ivy_bridge = on("GenuineIntel", 6, 62).unwrap();
        assert_eq!(
            ivy_bridge.counts(100, 30),
            LoadCounts {
                local: 70,
                remote: 30
            }
        );
        // Read one after the other, the part may exceed the whole.
        assert_eq!(
            ivy_bridge.counts(29, 30),
            LoadCounts {
                local: 0,
                remote: 30
            }
        );
        assert_eq!(on("AuthenticAMD", 0x10, 9), Ok(NodeEvents::AllAndRemote));
        let zen = on("AuthenticAMD", 25, 1).unwrap_err();
        assert!(zen.contains("AuthenticAMD, family 25, model 1"), "{zen}");
        assert!(NodeEvents::on("").unwrap_err().contains("unknown vendor"));
    }

    #[test]
    fn counts_add_up() {
        let counts = |local, remote| LoadCounts { local, remote };
        let mut sum = counts(1, 2);
        sum += counts(10, 20) - counts(3, 4);
        assert_eq!(sum, counts(8, 18));
        assert_eq!(counts(1, 1) - counts(2, 0), counts(0, 1));
    }
}
