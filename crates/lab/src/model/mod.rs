//! What the figures should look like: the sources' models, each in a file of its own.
//!
//! | module | question | SPEC |
//! |---|---|---|
//! | [`contention`] | how likely do two threads meet on one variable? | D20, D21 |
//! | [`residency`] | how much of the data does a cache hold? | D22 |
//! | [`ceilings`] | what does one round trip allow? | F6 |
//!
//! A model is drawn beside the measured figures and never in place of them.

#![forbid(unsafe_code)]

pub mod ceilings;
pub mod contention;
pub mod residency;
