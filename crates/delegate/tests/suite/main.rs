//! The promises of delegation, each with tests named after it, and what may go wrong.
//!
//! `CORELAY_STRESS=10 cargo test …` runs ten times as many iterations.

#![cfg(not(any(corelay_loom, corelay_shuttle)))]

mod promise_01_typed;
mod promise_02_borrowing;
mod promise_03_accepted;
mod promise_04_order;
mod suspects;
mod support;
