//! The program `corelay` from the outside, as its users run it: one program of tests, since each
//! that is linked costs the gate seconds.
//!
//! The gate runs them on a build without optimisation; `cargo xtask deep smoke` on the one that is
//! shipped, with those that take long.

mod cache;
mod check;
mod cli;
mod clock;
mod course;
mod fibres;
mod figure;
mod greedy;
mod hash;
#[cfg(unix)]
mod interrupt;
mod ladder;
mod model;
mod ordered;
mod page;
mod program;
mod raytrace;
mod smoke;
mod structures;
mod trace;
