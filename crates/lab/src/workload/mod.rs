//! Workloads: what the threads do with the shared variables.
//!
//! | module | idea |
//! |---|---|
//! | [`fetch_add`] | add one to a variable chosen at random (D16) |
//! | [`random`] | which variable: one cheap generator for every rival |
//! | [`zipf`] | Zipf's law in O(1), exactly |

pub mod fetch_add;
pub mod random;
pub mod zipf;
