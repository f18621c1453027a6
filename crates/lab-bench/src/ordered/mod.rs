//! Workloads whose operations a clock orders: time stamps, read-log-update, transactional memory,
//! and logs that are merged when they are read. Each runs on a shared counter and on the cores' own
//! clocks (Ordo), beside rivals that need no clock.
//!
//! | workload | module | an operation |
//! |---|---|---|
//! | `timestamp` (O11) | `stamp` | one new time |
//! | `rlu-list`, `rlu-hash` (O5) | `set` | one look-up, insertion or removal |
//! | `stm-transfer`, `stm-read` (O6) | `bank` | one transaction |
//! | `oplog-rmap` (O8) | `rmap` | one mapping added or removed, or one read of all of them |
//! | `ycsb`, `tpcc` (O7) | [`database`] | one transaction on the tables of a database |
//! | `kept` | [`kept`] | one transaction that is on disk when it is answered |
//! | `recover` | [`kept`] | a kilobyte of the log that an opened store has read |
//!
//! None is a [`Workload`](corelay_lab_measure::workload::operation::Workload), because what its
//! methods share is not a sequential object. Each has a small trait of its own, which its methods
//! implement. They are measured like all others, as contenders of a
//! [`Session`](corelay_lab_measure::measure::session::Session).
//!
//! | module | contents |
//! |---|---|
//! | [`spec`] | the workloads' parameters, and the factor of the boundary |
//! | [`method`] | the catalogue of methods |
//! | [`contest`] | contenders of several workloads, sampled in turn |
//! | [`clocks`] | the clocks that the lab measures with |
//! | `ledger` | counts and errors that clients report |
//! | `served` | objects behind a lock or behind a trustee |

mod bank;
pub mod clocks;
pub mod contest;
pub mod database;
pub mod kept;
mod ledger;
pub mod method;
mod rmap;
mod served;
mod set;
pub mod spec;
mod stamp;
#[cfg(test)]
mod tests;
