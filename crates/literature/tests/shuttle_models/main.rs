//! The models of this crate under shuttle, one process each: `cargo xtask shuttle`.
#![cfg(corelay_shuttle)]

#[path = "../common/mod.rs"]
mod common;

#[path = "../../../sync/tests/schedules/mod.rs"]
mod schedules;

mod blocking;
mod flat;
mod lines;
