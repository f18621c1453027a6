//! The promises of delegation, each with tests named after it, and failures of all kinds.
//!
//! `CORELAY_STRESS=10 cargo test …` runs ten times as many iterations.
// Closures given back are run on the spot, and refused ones may be large.
#![allow(clippy::unit_arg, clippy::type_complexity, clippy::result_large_err)]
#![cfg(not(any(corelay_loom, corelay_shuttle)))]

mod builder;
mod coroutines;
mod drops;
mod entrust;
mod failures;
mod futures;
mod into_inner;
mod large;
mod launch_attack;
mod launch_ends;
mod launch_guards;
mod launch_rings;
mod launches;
mod named_requests;
mod nodes;
mod parked;
mod promise_01_typed;
mod promise_02_borrowing;
mod promise_03_accepted;
mod promise_03_futures;
mod promise_04_order;
mod promise_05_bounded;
mod promise_06_panics;
mod promise_07_leaves;
mod promise_07_nesting;
mod promise_08_lifetime;
mod promise_09_clients;
mod promise_10_idle;
mod promise_11_shutdown;
mod report;
mod rings;
mod single_request;
mod single_request_ends;
mod stress;
mod support;
mod timed;
#[path = "../../../sync/tests/toy/mod.rs"]
mod toy;
#[path = "../watch/mod.rs"]
mod watch;
mod zip;
