//! The models of this crate under shuttle, one process each: `cargo xtask shuttle`.
#![cfg(corelay_shuttle)]

#[path = "../../../sync/tests/schedules/mod.rs"]
mod schedules;

#[path = "../model_rows/mod.rs"]
mod model_rows;

mod oplog;
mod rlu;
mod store_log;
mod store_views;
mod tl2;
