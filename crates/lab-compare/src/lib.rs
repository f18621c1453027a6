//! Comparing the ways of sharing, and saying which to use where: what `corelay compare` does with
//! fetch-add, for a structure of your own.
//!
//! [`Comparison`] is the face. Behind it:
//!
//! | module | idea |
//! |---|---|
//! | `survey` | what is measured, and in what time |
//! | `sweep` | at which points |
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

/// The commit that this program was built from, or `unknown`.
pub const COMMIT: &str = env!("CORELAY_COMMIT");

/// The page of the guide, compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/comparing-your-own.md")]
struct ComparingYourOwn;
