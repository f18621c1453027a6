//! Tests of fibres on hardware, in one program: each that is linked costs the gate seconds.

mod cancel;
mod channel;
mod common;
mod condvar;
mod fair;
mod join;
mod local;
#[cfg(target_os = "linux")]
mod memory;
mod mutex;
#[path = "../promise/mod.rs"]
mod promise;
mod scope;
mod seam;
mod semaphore;
#[cfg(unix)]
mod shared;
mod stress;
mod stuck;
mod thread_locals;
mod unwinding;
mod waiters;
