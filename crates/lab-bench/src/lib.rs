//! Benchmarks that share no object of a workload: fibres, and what a clock orders.
//!
//! | module | idea |
//! |---|---|
//! | [`fibres`] | the benchmarks of fibres |
//! | [`peer`] | the same on other runtimes |
//! | [`ordered`] | what a clock orders: time stamps, read-log-update, transactions, logs |

#![deny(unsafe_code)]

mod cluster;
pub mod fibres;
pub mod ordered;
pub mod peer;
