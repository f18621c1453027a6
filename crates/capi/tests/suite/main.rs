//! The C interface, called as C calls it. `tests/c/errors.c` is the same from C.
//!
//! `CORELAY_STRESS=10 cargo test …` runs ten times as many iterations.

// Nearly every line is a call of C's, whose duties are kept in plain sight.
#![allow(
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block
)]

mod calls;
mod clients;
mod handles;
mod support;
mod within;
