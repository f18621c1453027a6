//! Workloads: what the threads do with the shared variables.
//!
//! | module | idea |
//! |---|---|
//! | [`operation`] | what a workload is: objects, and an operation on them |
//! | [`point`] | the parameters of a run |
//! | [`fetch_add`] | add one to a variable chosen at random (D16) |
//! | [`own`] | a structure and an operation that somebody else has written |
//! | [`root`] | add one, and take square roots (D10) |
//! | [`slow`] | add one, and compute for a microsecond |
//! | [`paced`] | the same, and clients that compute before they ask |
//! | [`latency`] | the same, arriving on a schedule: how long an answer takes under load |
//! | [`schedule`] | when operations arrive |
//! | [`random`] | which variable: one cheap generator for every rival |
//! | [`zipf`] | Zipf's law in O(1), exactly |

pub mod fetch_add;
pub mod latency;
pub mod operation;
pub mod own;
pub mod paced;
pub mod point;
pub mod random;
pub mod root;
pub mod schedule;
pub mod slow;
pub mod zipf;
