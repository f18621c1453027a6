//! Compares the ways of sharing a structure of your own, as `corelay compare` does for fetch-add,
//! and says which to use where.
//!
//! [`Comparison`] is the entry point. It stands on:
//!
//! | module | idea |
//! |---|---|
//! | `survey` | the measurement, and how its time is spent |
//! | `sweep` | the points to measure at |
//! | `deliver` | the page, the raw results and the verdict |
//! | `flags` | the command line of a program that compares |

#![forbid(unsafe_code)]

mod comparison;
mod deliver;
mod flags;
mod survey;
mod sweep;

pub use comparison::{Comparison, Ready};
pub use corelay_lab_measure::schema;
pub use corelay_lab_measure::workload::random::Random;
pub use corelay_lab_report::{html, verdict};
pub use deliver::Delivery;
pub use survey::Contest;

/// The commit this program was built from, or `unknown`.
pub const COMMIT: &str = env!("CORELAY_COMMIT");

/// The page of the guide, compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/comparing-your-own.md")]
struct ComparingYourOwn;
