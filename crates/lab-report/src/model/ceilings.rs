//! Limits that follow from one round trip (ffwd's slides, "why so slow?" and "why isn't it even
//! faster?"; SPEC F6).
//!
//! A cache line that has to cross from core to core for every operation bounds their number:
//! about 70 ns one way gave the slides 14 Mops for a lock. Delegation is bounded by the requests
//! in flight instead: clients × requests each ÷ round trip. Higher bounds are the capacity of the
//! links between sockets and the server's processing speed.
//!
//! The slides see 55 Mops where clients and links allow 300, and suspect the server's core: its store
//! and load buffers, and its reorder window, limit how many lines it waits for at once
//! ([`Ceilings::of_core`]).
//!
//! | the slides | here |
//! |---|---|
//! | "~70 ns intra-socket latency, ~14 Mops" | [`Ceilings::lock_handover`] |
//! | "latency suggests 2.5 Mops/client, 120 clients: 300 Mops" | [`Ceilings::one_in_flight`] |
//! | "round-trip bandwidth-delay product is 120 cache lines" | [`Ceilings::in_flight_for`] |
//! | "300 cache lines per link: 300+ Mops" | [`links`] |
//! | "55 Mops = 40 cycles per operation" | [`processing`], [`cycles_each`] |
//! | "server store / load buffers, reorder window size?" | [`Ceilings::of_core`] |

/// Limits that follow from one measured round trip. All throughput is in Mops.
///
/// ```
/// use corelay_lab_report::model::ceilings::Ceilings;
///
/// let here = Ceilings { rtt_ns: 140.0, clients: 1 };
/// assert!((here.lock_handover() - 14.3).abs() < 0.1);   // the slides' 70 ns, 14 Mops
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ceilings {
    /// Round trip between two cores, in nanoseconds: a cache line there and a cache line back.
    pub rtt_ns: f64,
    /// Threads that issue requests.
    pub clients: usize,
}

impl Ceilings {
    /// Returns the limit of a lock or an atomic whose line crosses once per operation: 1 ÷
    /// one-way latency. A lock that keeps its line for several operations in a row may exceed it.
    pub fn lock_handover(self) -> f64 {
        1000.0 / (self.rtt_ns / 2.0)
    }

    /// Returns the limit of all clients together, each with one request in flight: clients ÷
    /// round trip.
    pub fn one_in_flight(self) -> f64 {
        self.clients as f64 * 1000.0 / self.rtt_ns
    }

    /// Returns the limit of a server whose core waits for no more lines at once than a buffer of it
    /// has room for: entries ÷ entries of an operation ÷ one-way latency. A hardware prefetcher that
    /// guesses the next request's line may exceed the limits of stores and window, but not that of
    /// the line-fill buffers.
    ///
    /// ```
    /// use corelay_lab_report::model::ceilings::{Ceilings, SOURCE_BUFFERS};
    ///
    /// // The slides' round trip of 400 ns: ten lines at once allow 50 Mops; they saw 55.
    /// let slides = Ceilings { rtt_ns: 400.0, clients: 120 };
    /// assert_eq!(slides.of_core(SOURCE_BUFFERS[0]), 50.0);
    /// ```
    pub fn of_core(self, buffer: CoreBuffer) -> f64 {
        buffer.entries / buffer.each * 1000.0 / (self.rtt_ns / 2.0)
    }

    /// Returns the requests that must be in flight at once to sustain `mops` (the bandwidth-delay
    /// product).
    pub fn in_flight_for(self, mops: f64) -> f64 {
        mops * self.rtt_ns / 1000.0
    }
}

/// The size of a buffer of a core, and the share of it that an operation of a server takes. All of
/// it is occupied until a line has come from another core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CoreBuffer {
    /// The name.
    pub name: &'static str,
    /// The number of its entries.
    pub entries: f64,
    /// Entries that one operation takes.
    pub each: f64,
}

/// The buffers of the slides' Broadwell core (Intel, "64 and IA-32 Architectures Optimization Reference
/// Manual", section on Haswell, whose sizes Broadwell has), and what an operation of ffwd takes of
/// them: the line of its request; three stores (the variable, the answer, and the copy of the
/// answer); about 40 instructions, which is assumed.
pub const SOURCE_BUFFERS: [CoreBuffer; 3] = [
    CoreBuffer {
        name: "line-fill buffers",
        entries: 10.0,
        each: 1.0,
    },
    CoreBuffer {
        name: "store buffer",
        entries: 42.0,
        each: 3.0,
    },
    CoreBuffer {
        name: "reorder window",
        entries: 192.0,
        each: 40.0,
    },
];

/// Returns the Mops of links that carry `lines_each` million lines a second, with an operation
/// per line.
///
/// ```
/// assert_eq!(corelay_lab_report::model::ceilings::links(3, 300.0), 900.0);
/// ```
pub fn links(links: u64, lines_each: f64) -> f64 {
    links as f64 * lines_each
}

/// Returns the Mops of a core of `ghz` that needs `cycles` for an operation.
///
/// ```
/// assert_eq!(corelay_lab_report::model::ceilings::processing(2.2, 40.0), 55.0);
/// ```
pub fn processing(ghz: f64, cycles: f64) -> f64 {
    ghz * 1000.0 / cycles
}

/// Returns the cycles that a core of `ghz` has for each operation if it does `mops`.
///
/// ```
/// assert_eq!(corelay_lab_report::model::ceilings::cycles_each(2.2, 55.0), 40.0);
/// ```
pub fn cycles_each(ghz: f64, mops: f64) -> f64 {
    ghz * 1000.0 / mops
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slides_figures_come_out() {
        // A throughput of 2.5 Mops per client is a round trip of 400 ns. 120 clients make 300
        // Mops, which needs 120 requests in flight.
        let slides = Ceilings {
            rtt_ns: 400.0,
            clients: 120,
        };
        assert_eq!(slides.one_in_flight(), 300.0);
        assert_eq!(slides.in_flight_for(300.0), 120.0);
        assert_eq!(
            Ceilings {
                rtt_ns: 400.0,
                clients: 1
            }
            .one_in_flight(),
            2.5
        );
        assert_eq!(slides.lock_handover(), 5.0);
    }
}
