//! The plain structures against those of std, and what a drop leaves.

#![cfg(not(any(corelay_loom, corelay_shuttle)))]

mod drops;
mod list;
mod lru;
mod maps;
