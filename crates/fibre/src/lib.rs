//! Fibres: user-level threads, many on few processors, whose waits are cheap.

mod builder;
mod clockwork;
mod cluster;
mod counters;
mod fibre;
mod header;
mod help;
mod idle;
mod join;
#[cfg(any(corelay_loom, corelay_shuttle))]
#[doc(hidden)]
pub mod model;
mod park;
mod processor;
mod ready;
mod seam;
mod semaphore;
mod stack;
mod switch;
mod timers;
mod wait;
mod waiter;

pub use builder::{Builder, ClusterBuilder, SpawnError};
pub use cluster::{Cluster, StartError};
pub use counters::Counters;
pub use fibre::{Fibre, current, is_cancelled, park, processor, sleep, spawn, yield_now};
pub use join::JoinHandle;
pub use semaphore::{BinarySemaphore, Semaphore};
pub use stack::{StackError, StackSize, StackSizeError};
pub use wait::{Cancelled, Interrupted};
