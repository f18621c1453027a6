//! Delegation, fibres and locks together, in one program: each that is linked costs the gate
//! seconds.

#![cfg(not(any(corelay_loom, corelay_shuttle)))]

mod aborts;
mod adaptive;
mod combining;
mod fibres;
mod histories;
mod launch;
mod leaves;
#[path = "../../../fibre/tests/promise/mod.rs"]
mod promise;
mod sharded;
