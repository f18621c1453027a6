//! Measuring on machines whose speed changes meanwhile.
//!
//! | module | contents |
//! |---|---|
//! | [`probe`] | the present round trip between two CPUs |
//! | `one_core` | whether two CPUs are hardware threads of one core now |
//! | [`mode`] | the mode of a sample: near, far or discarded |
//! | [`crew`] | long-lived pinned threads |
//! | `slice` | one run of all clients: start together, stop, count |
//! | `tally` | latencies and late operations of an open loop |
//! | [`limit`] | whether a load was borne, and if not, why |
//! | [`load`] | the choice of loads, and the verdict on each |
//! | [`session`] | samples of all contenders, interleaved and bracketed by the probe |
//! | [`plan`] | the groups of contenders that are set up together |
//! | [`rig`] | the crew and the probe of an invocation |
//! | [`memory`] | available and used memory |
//! | [`stats`] | medians, spread, intervals of ratios |
//! | [`counters`] | loads from memory, by hardware counters |
//! | [`cpu`] | CPU time of the process |
//! | [`reading`] | the cost of each way to read the time |
//! | [`tracer`] | the cost of an event of the tracer |

pub mod cost;
pub mod counters;
pub mod cpu;
pub mod crew;
#[cfg(target_arch = "x86_64")]
pub mod instructions;
pub mod limit;
pub mod load;
#[cfg(target_arch = "x86_64")]
mod locked;
pub mod memory;
pub mod mode;
mod one_core;
pub mod plan;
pub mod probe;
pub mod reading;
pub mod rig;
pub mod session;
pub(crate) mod slice;
pub mod stats;
pub(crate) mod tally;
pub mod tracer;
