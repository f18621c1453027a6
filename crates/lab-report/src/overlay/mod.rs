//! Results of several machines or commits, overlaid in shared pictures.
//!
//! ```text
//!   files ── read ──► Input ── chart ──► Chart … ── lay ──► Overlay … ──► verdict, page, SVG, tables
//!             │                  one for each workload,        those that
//!             └ refused: foreign,  axis and quantity           all files have
//!               cut, of another schema
//! ```
//!
//! A file is anything that `compare`, `bench --json` or `figure` wrote. Files are comparable if
//! they have the same workload over the same axis. Machine, number of threads and commit may
//! differ; they are compared, and named.

#![forbid(unsafe_code)]

pub(crate) mod chart;
mod fibres;
pub mod lay;
pub mod page;
pub mod read;
pub mod verdict;

#[cfg(test)]
mod tests;
