//! The models of this crate under shuttle, one process each: `cargo xtask shuttle`.
#![cfg(corelay_shuttle)]

#[path = "../common/fine_sets.rs"]
mod fine_sets;
#[path = "../../../sync/tests/schedules/mod.rs"]
mod schedules;

mod fine;
mod lockfree;
mod pool;
