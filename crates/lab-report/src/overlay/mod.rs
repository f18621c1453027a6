//! Results of several machines or commits, laid over each other.
//!
//! ```text
//!   files ── read ──► Input ── chart ──► Chart … ── lay ──► Overlay … ──► page, SVG, tables
//!             │                  one for each workload,        those that
//!             └ refused: foreign,  axis and quantity           all files have
//!               cut, of another schema
//! ```
//!
//! A file is whatever `compare`, `bench --json` or `figure` have written. Files are comparable
//! where they have the same workload over the same axis; the machine, the number of threads and
//! the commit are what is compared, and are named.

#![forbid(unsafe_code)]

pub(crate) mod chart;
mod fibres;
pub mod lay;
pub mod page;
pub mod read;
