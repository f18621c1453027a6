//! A processor that lends itself to a thread: to a trustee's, so that closures that wait can run
//! beside its loop.

use crate::builder::Builder;
use crate::cluster::{Cluster, Shared};
use crate::processor;
use crate::stack::StackSize;
use corelay_sync::wait::{Host, Task};
use std::panic::resume_unwind;

/// Bytes of the stack that the body has in place of its thread's: as many as `std` gives threads.
/// They are touched only where they are used.
const BODY_STACK: usize = 2 << 20;
/// Of what it spawns: closures of users, which may panic with a backtrace.
const STACK: usize = 256 << 10;

/// The host for trustees that are to run closures that wait.
///
/// [`Host::run`] runs its body as a fibre of a cluster of one processor, which is the calling thread,
/// and returns when it and all fibres of that cluster have ended. The body's stack has 2 MiB, those of
/// other fibres there 256 KiB, if nothing else is asked for. Beside the calling thread there is one more, which looks after
/// deadlines and sleeps otherwise.
///
/// ```
/// use corelay_fibre::{host, spawn, yield_now};
/// use std::sync::atomic::{AtomicU32, Ordering};
///
/// static RAN: AtomicU32 = AtomicU32::new(0);
/// // SAFETY: nothing here waits inside a thread-local's initialiser or scope.
/// let host = unsafe { host() };
/// let body = || {
///     spawn(|| RAN.fetch_add(1, Ordering::Relaxed));
///     yield_now(); // the other one runs, on this thread
///     RAN.fetch_add(1, Ordering::Relaxed);
/// };
/// host.run(Box::new(body), None);
/// assert_eq!(RAN.load(Ordering::Relaxed), 2);
/// ```
///
/// # Panics
/// `Host::run` panics with the panic of the body; on a thread that is a processor already; and if the
/// system has no thread or no memory for it.
///
/// # Safety
/// The duties of [`Cluster::start`], for every fibre that runs there: the body, each closure that is
/// launched on such a trustee, and what they spawn.
pub unsafe fn host() -> Host {
    // SAFETY: `run` ends after its fibres; where they do not wait is the caller's promise.
    unsafe { Host::new(run) }
}

fn run(body: Task, stack: Option<usize>) {
    assert!(
        processor::here().is_null(),
        "corelay: this thread is a processor already, and cannot be another one's"
    );
    let size = |usual: usize| {
        let bytes = stack.unwrap_or(usual);
        let within = bytes.clamp(StackSize::MIN.bytes(), StackSize::MAX.bytes());
        StackSize::new(within).expect("within the limits")
    };
    let shared = Shared::new(1, size(STACK));
    // SAFETY: it ends with this call, which keeps the processor.
    let overflow = unsafe { shared.processors[0].watch_overflows() };
    let overflow = overflow.unwrap_or_else(|why| panic!("corelay: {why}"));
    let monitor = Cluster::of_host(&shared);
    let fibre = Builder::new(&shared)
        .name("host")
        .stack_size(size(BODY_STACK))
        .at_home(&shared.processors[0]);
    // SAFETY: one processor, which is this thread: the body does not leave it.
    let body = unsafe { fibre.spawn_here(body) };
    let body = body.unwrap_or_else(|why| panic!("corelay: {why}"));
    // From here on it is over when no fibre is left.
    shared.close();
    shared.processors[0].run();
    drop(overflow);
    drop(monitor);
    if let Err(payload) = body.join() {
        resume_unwind(payload);
    }
}
