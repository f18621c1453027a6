//! The lab: measures, on the reader's own machine, which way of sharing wins.
//!
//! | module | idea |
//! |---|---|
//! | [`cli`] | the program `corelay`: flags, bad input, exit codes |
//! | [`comparison`] | somebody's own structure, compared in the same way |
//! | [`course`] | effects shown rather than measured |
//! | [`fibres`] | the benchmarks of fibres |
//! | [`ordered`] | what a clock orders: time stamps, read-log-update, transactions, logs |
//! | [`peer`] | the benchmarks of fibres on other runtimes |
//! | [`reach`] | the project's targets |

#![deny(unsafe_code)]

pub mod cli;
mod cluster;
pub mod comparison;
pub mod course;
pub mod fibres;
pub mod figures;
pub mod ordered;
pub mod peer;
pub mod reach;

pub use comparison::Comparison;

/// The page of the guide, compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/comparing-your-own.md")]
struct ComparingYourOwn;

/// As above.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/models.md")]
struct Models;
