//! The models of this crate under shuttle, one process each: `cargo xtask shuttle`.
#![cfg(corelay_shuttle)]

#[path = "../inline/mod.rs"]
mod inline;

#[path = "../../../sync/tests/schedules/mod.rs"]
mod schedules;

mod channel;
mod event_loop;
mod flat;
mod future;
mod launch;
mod nested;
