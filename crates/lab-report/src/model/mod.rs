//! The sources' models of the figures, each in a file of its own.
//!
//! | module | question | SPEC |
//! |---|---|---|
//! | [`contention`] | how likely do two threads meet on one variable? | D20, D21 |
//! | [`residency`] | how much of the data does a cache hold? | D22 |
//! | [`throughput`] | what do so many servers and clients do together? | D9 |
//! | [`footprint`] | what does delegation itself keep in the caches? | D23 |
//! | [`ceilings`] | what does one round trip allow? | F6 |
//! | [`queues`] | how full are queues when a client writes its requests out? | D4 |
//! | [`lines`] | how many cache lines does an operation move on larger machines? | |
//!
//! A model is drawn beside the measured figures, never in place of them. `corelay model` prints
//! each.

#![forbid(unsafe_code)]

pub mod ceilings;
pub mod contention;
pub mod footprint;
pub mod lines;
pub mod queues;
pub mod residency;
pub mod throughput;
