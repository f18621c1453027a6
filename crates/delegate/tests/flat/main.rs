//! Flat teams: every promise again, with members that are clients and trustees at once, under
//! every policy.
#![cfg(not(any(corelay_loom, corelay_shuttle)))]

mod bell;
mod ends;
#[cfg(unix)]
mod event_loop;
mod nesting;
mod order;
mod outside;
mod own;
mod panics;
mod reentry;
mod support;
#[path = "../../../sync/tests/toy/mod.rs"]
mod toy;
mod waiting;
#[path = "../watch/mod.rs"]
mod watch;
