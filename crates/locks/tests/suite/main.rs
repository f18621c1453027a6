//! The locks on threads, in one program: each that is linked costs the gate seconds.
#![cfg(not(any(corelay_loom, corelay_shuttle)))]

#[path = "../common/mod.rs"]
mod common;

mod adaptive;
mod combining;
mod locks;
mod stress;
