//! The lab: measures, on the reader's own machine, which way of sharing wins.
//!
//! | module | idea |
//! |---|---|
//! | [`cli`] | the program `corelay`: flags, bad input, exit codes |
//! | [`comparison`] | somebody's own structure, compared in the same way |
//! | [`course`] | effects shown rather than measured |
//! | [`fibres`] | the benchmarks of fibres |
//! | [`ordered`] | what a clock orders: time stamps, read-log-update, transactions, logs |
//! | [`figure`] | the figures of the sources, made again |
//! | [`model`] | what the figures should look like |
//! | [`overlay`] | results of several machines or commits, laid over each other |
//! | [`peer`] | the benchmarks of fibres on other runtimes |
//! | [`plot`] | pictures |
//! | [`report`] | the page and the verdict |
//! | [`reach`] | the project's targets |
//! | [`timeline`] | the picture of a trace |

#![deny(unsafe_code)]

pub mod cli;
mod cluster;
pub mod comparison;
pub mod course;
mod exit;
pub mod fibres;
pub mod figure;
pub mod figures;
pub mod model;
pub mod ordered;
mod output;
pub mod overlay;
pub mod peer;
pub mod plot;
pub mod reach;
pub mod report;
pub mod table;
pub mod timeline;

pub use comparison::Comparison;

/// The page of the guide, compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/comparing-your-own.md")]
struct ComparingYourOwn;

/// As above.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/models.md")]
struct Models;
