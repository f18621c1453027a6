//! The lock-free structures.

mod bounds;
mod drops;
mod histories;
mod panics;
mod sequential;
mod stress;
