//! Sharded structures on dedicated trustees and on flat teams, against the maps of `std` and the
//! checker of histories. Those on fibres are in the tests of `corelay`.

#![cfg(not(any(corelay_loom, corelay_shuttle)))]

mod drops;
mod histories;
mod nesting;
mod panics;
mod properties;
mod support;
mod waiting;
