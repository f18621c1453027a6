//! The models of this crate under loom, one process each: `cargo xtask loom`.
#![cfg(corelay_loom)]

#[path = "../inline/mod.rs"]
mod inline;

#[path = "../model/mod.rs"]
mod model;

mod channel;
mod ends;
mod event_loop;
mod flat;
mod future;
mod launch;
mod nested;
mod parked;
mod single_request;
