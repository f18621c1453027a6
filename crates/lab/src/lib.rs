//! The lab: measures, on the reader's own machine, which way of sharing wins.
//!
//! | module | idea |
//! |---|---|
//! | [`cli`] | the program `corelay`: flags, bad input, exit codes |
//! | [`comparison`] | somebody's own structure, compared in the same way |
//! | [`course`] | effects shown rather than measured |
//! | [`reach`] | the project's targets |

#![deny(unsafe_code)]

pub mod cli;
pub mod comparison;
pub mod course;
pub mod figures;
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
