//! Measuring on machines that move under you.
//!
//! | module | idea |
//! |---|---|
//! | [`probe`] | how far apart two CPUs are right now |
//! | `one_core` | whether they are hardware threads of one core right now |
//! | [`mode`] | near, far or discarded, against the smallest round trip ever seen |
//! | [`crew`] | long-lived pinned threads |
//! | `slice` | start together, run, stop, count |
//! | `tally` | latencies and late ones of an open loop |
//! | [`limit`] | whether a load was borne, and if not, what was in the way |
//! | [`load`] | which loads are offered, and what the results say of them |
//! | [`session`] | samples of all contenders, interleaved and bracketed by the probe |
//! | [`plan`] | which contenders are set up at the same time |
//! | [`rig`] | what all of that needs and keeps |
//! | [`memory`] | how much may be set up at once |
//! | [`stats`] | medians, spread, intervals of ratios |
//! | [`counters`] | loads from memory, by hardware counters where there are any |
//! | [`cpu`] | CPU time of the process |
//! | [`reading`] | what each way to read the time costs |
//! | [`tracer`] | what an event of the tracer costs |

pub mod counters;
pub mod cpu;
pub mod crew;
#[cfg(target_arch = "x86_64")]
pub mod instructions;
pub mod limit;
pub mod load;
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
