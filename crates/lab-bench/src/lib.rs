//! Benchmarks whose methods share no object of a workload: fibres, operations that a clock orders, and
//! cache servers.
//!
//! | module | contents |
//! |---|---|
//! | [`cache`] | a load for cache servers |
//! | [`fibres`] | the benchmarks of fibres |
//! | [`peer`] | the same benchmarks on other runtimes |
//! | [`ordered`] | workloads ordered by a clock: time stamps, read-log-update, transactions, logs |

#![deny(unsafe_code)]

pub mod cache;
mod cluster;
pub mod fibres;
pub mod ordered;
pub mod peer;
