//! Reporting: turns results into a verdict, pages, pictures, tables and models.
//!
//! ```text
//!   Results ── verdict ──┬── Display: the terminal
//!           │            └── page ──┐
//!           └── page/figures, tables ── html: one file that needs no other
//! ```
//!
//! Nothing here measures, and nothing here knows more than the results file. So a page can be
//! made again from any `results.json`, even one from another machine.
//!
//! | module | idea |
//! |---|---|
//! | [`verdict`](mod@verdict) | which method to use where, in words |
//! | [`page`] | the page of a comparison, and the parts that all pages share |
//! | [`figure`] | a measured figure of a source: its file, its page, its tables |
//! | [`overlay`] | results of several machines or commits in shared pictures |
//! | [`timeline`] | the picture of a trace |
//! | [`model`] | the sources' models of the figures |
//! | [`plot`] | pictures as SVG |
//! | [`table`] | results as tables for the terminal |
//! | [`units`] | ticks and cycles beside nanoseconds |
//! | [`words`] | numbers and lists as words |
//! | `data` | runs, grouped for pages and pictures |
//! | `mean` | harmonic means outside the quartiles beside them |
//! | `method` | each method's form, style and description |
//! | [`output`] | files that are written whole or not at all, and the terminal |
//! | [`exit`] | the exit codes |

#![forbid(unsafe_code)]

mod data;
pub mod exit;
pub mod figure;
mod latency;
mod mean;
mod method;
pub mod model;
pub mod output;
pub mod overlay;
pub mod page;
pub mod plot;
pub mod table;
pub mod timeline;
pub mod units;
pub mod verdict;
pub mod words;

pub use verdict::{Verdict, verdict};

use corelay_lab_measure::schema::Results;

/// Renders the page about `results`: one HTML file without any outside resource, in light and
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
/// let page = corelay_lab_report::html(&nothing);
/// assert!(page.contains("Nothing was measured"));
/// ```
pub fn html(results: &Results) -> String {
    page::html(results)
}

/// Draws the main picture as an SVG file of its own: throughput of every method at the most
/// threads, in the mode with the most samples. Empty results give a picture that says so.
pub fn picture(results: &Results) -> String {
    page::figures::picture(results)
}

#[cfg(test)]
mod synthetic;
#[cfg(test)]
mod tests;

/// The page of the guide, compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/models.md")]
struct Models;
