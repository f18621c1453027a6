//! From results to a page one can read: verdict first, then pictures, then everything.
//!
//! ```text
//!   Results ── verdict ──┬── Display: the terminal
//!           │            └── page ──┐
//!           └── page/figures, tables ── html: one file that needs no other
//! ```
//!
//! Nothing here measures, and nothing here knows more than the results file says: a page
//! can be made again from any `results.json`, also of a machine that is not at hand.

#![forbid(unsafe_code)]

pub(crate) mod data;
mod latency;
pub(crate) mod method;
pub(crate) mod page;
pub mod verdict;
pub(crate) mod words;

pub use method::Form;
pub use verdict::{Verdict, verdict};

use corelay_lab_measure::schema::Results;

/// The page about `results`: one HTML file without any outside resource, in light and
/// dark, for phones and for paper. It is well-formed XML, too.
///
/// ```
/// use corelay_lab_measure::schema::{Machine, Results, SCHEMA};
///
/// let nothing = Results {
///     schema: SCHEMA,
///     machine: Machine::default(),
///     commit: "unknown".into(),
///     command: "corelay compare".into(),
///     runs: Vec::new(),
/// };
/// let page = corelay_lab::report::html(&nothing);
/// assert!(page.contains("Nothing was measured"));
/// ```
pub fn html(results: &Results) -> String {
    page::html(results)
}

/// The main picture as an SVG file of its own: throughput of every method at the most
/// threads, in the mode with the most samples. Empty results give a picture that says so.
pub fn picture(results: &Results) -> String {
    page::figures::picture(results)
}

#[cfg(test)]
mod synthetic;
#[cfg(test)]
mod tests;
