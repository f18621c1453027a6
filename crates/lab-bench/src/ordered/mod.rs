//! What a clock orders: time stamps, read-log-update, transactional memory, logs merged at read,
//! each with a counter for a clock and with the cores' own (Ordo), beside rivals that need none.
//!
//! | workload | module | an operation |
//! |---|---|---|
//! | `timestamp` (O11) | `stamp` | one new time |
//! | `rlu-list`, `rlu-hash` (O5) | `set` | one look-up, insertion or removal |
//! | `stm-transfer`, `stm-read` (O6) | `bank` | one transaction |
//! | `oplog-rmap` (O8) | `rmap` | one mapping added or removed, or one read of all of them |
//!
//! They are no [`Workload`](corelay_lab_measure::workload::operation::Workload), for what their methods share is
//! not a sequential object: each has a small trait of its own, whose implementors are the methods.
//! Measured they are as all others: contenders of a [`Session`](corelay_lab_measure::measure::session::Session).
//!
//! | module | idea |
//! |---|---|
//! | [`spec`] | which workload, with its parameters, and by how much the boundary is multiplied |
//! | [`method`] | who does it |
//! | [`contest`] | several of them, sampled in turn |
//! | [`clocks`] | the clocks that the lab measures with |
//! | `ledger` | what clients leave behind: counts, and what was wrong |
//! | `served` | what a trustee's thread does for a method, and which threads are left |

mod bank;
pub mod clocks;
pub mod contest;
mod ledger;
pub mod method;
mod rmap;
mod served;
mod set;
pub mod spec;
mod stamp;
#[cfg(test)]
mod tests;
