//! The crate on generated trees of machines that are not at hand, and on this one.

mod containers;
mod facts;
mod garbage;
mod lists;
mod machines;
mod orders;
mod pinning;
mod rendering;
mod tree;
