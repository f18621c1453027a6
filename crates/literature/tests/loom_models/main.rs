//! The models of this crate under loom, one process each: `cargo xtask loom`.
#![cfg(corelay_loom)]

#[path = "../common/mod.rs"]
mod common;

mod blocking;
mod flat;
mod lines;
