//! The checker against the literature, against brute force, and on long histories; the
//! recorder on real threads; histories in files.
//!
//! `CORELAY_STRESS=10 cargo test …` runs ten times as many iterations.

mod files;
mod known;
mod long;
mod pending;
mod pictures;
mod properties;
mod recording;
mod support;
mod transactions;
