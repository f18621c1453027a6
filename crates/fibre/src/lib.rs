//! Fibres: user-level threads, many on few processors, whose waits are cheap.

mod barrier;
mod builder;
mod channel;
mod clockwork;
mod cluster;
mod condition;
mod counters;
mod fibre;
mod header;
mod help;
mod idle;
mod join;
mod line;
mod local;
mod mutex;
mod park;
mod processor;
mod ready;
mod scope;
mod seam;
mod semaphore;
mod spin;
mod stack;
mod switch;
mod timers;
mod wait;
mod waiter;

pub use barrier::Barrier;
pub use builder::{Builder, ClusterBuilder, SpawnError};
pub use channel::{
    Closed, Iter, Receiver, RecvUntilError, SendError, SendUntilError, Sender, TryRecvError,
    TrySendError, channel,
};
pub use cluster::{Cluster, StartError};
pub use condition::Condition;
pub use counters::Counters;
pub use fibre::{Fibre, current, is_cancelled, park, processor, sleep, spawn, yield_now};
pub use join::JoinHandle;
pub use local::{AccessError, FibreLocal};
pub use mutex::{Mutex, MutexGuard};
pub use scope::{Scope, ScopedJoinHandle, scope};
pub use semaphore::{BinarySemaphore, Semaphore};
pub use stack::{StackError, StackSize, StackSizeError};
pub use wait::{Cancelled, Interrupted};
