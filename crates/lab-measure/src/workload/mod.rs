//! Workloads: what the threads do with the shared objects.
//!
//! | module | contents |
//! |---|---|
//! | [`operation`] | the traits of a workload: objects, and an operation on them |
//! | [`point`] | the parameters of a run |
//! | [`fetch_add`] | adding one to a variable chosen at random (D16) |
//! | [`own`] | a user's own structure and operation |
//! | [`root`] | adding one, and taking square roots (D10) |
//! | [`slow`] | adding one, and computing for a microsecond |
//! | [`paced`] | computing in the operation and before each request |
//! | [`raytrace`] | tracing a picture whose tiles come from a shared queue (F7) |
//! | [`latency`] | fetch-add on a schedule: how long an answer takes under load |
//! | [`schedule`] | the moments at which operations arrive |
//! | [`timed`] | the time that operations of a closed loop take |
//! | [`worker`] | clients that use their answers |
//! | [`structure`] | lists, maps, queues, a heap and a cache |
//! | [`random`] | the choice of variables, by one cheap generator for every rival |
//! | [`zipf`] | Zipf's law in O(1), exactly |

pub mod fetch_add;
pub mod latency;
pub mod operation;
pub mod own;
pub mod paced;
pub mod point;
pub mod random;
pub mod raytrace;
pub mod root;
pub mod schedule;
pub mod slow;
pub mod structure;
pub mod timed;
pub mod worker;
pub mod zipf;
