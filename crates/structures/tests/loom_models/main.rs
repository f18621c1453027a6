//! The models of this crate under loom, one process each: `cargo xtask loom`.
#![cfg(corelay_loom)]

#[path = "../common/fine_sets.rs"]
mod fine_sets;

mod block_queue;
mod fine;
mod harris_list;
mod ms_queue;
mod pool;
mod treiber_stack;
