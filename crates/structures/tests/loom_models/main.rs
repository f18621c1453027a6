//! The models of this crate under loom, one process each: `cargo xtask loom`.
#![cfg(corelay_loom)]

mod harris_list;
mod ms_queue;
mod pool;
mod treiber_stack;
