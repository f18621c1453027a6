//! The checker of transactions: anomalies by name, stores that are right and wrong, and brute
//! force.

mod named;
mod pictures;
mod properties;
mod recording;
mod simulated;
