//! The CPU that a waiting client has left to its trustee, if they are on one.
//!
//! A trustee that is not pinned may be put on the CPU of its client. The client then waits by giving
//! its CPU away, the trustee answers, and polls for its next request, while the client cannot run to
//! take the answer. So an idle trustee that finds itself on such a CPU gives it back.

use corelay_sync::facade::MODEL;
use corelay_sync::facade::atomic::{AtomicUsize, Ordering};
use corelay_topology::current_cpu;

/// The number of the CPU that a client has left last, counted from 1; 0 if there is none. It is a
/// hint: all accesses are relaxed, and a trustee that misses it polls until it sleeps.
#[derive(Default)]
pub(crate) struct LeftCpu(AtomicUsize);

impl LeftCpu {
    /// Notes that this thread gives its CPU to whoever is next on it.
    pub(crate) fn leave_this(&self) {
        if let Some(cpu) = this_cpu()
            // Other clients wait, too: they write only if they are elsewhere.
            && self.0.load(Ordering::Relaxed) != cpu
        {
            self.0.store(cpu, Ordering::Relaxed);
        }
    }

    /// Whether this thread is on the CPU that a client has left, which it takes note of once.
    pub(crate) fn take_here(&self) -> bool {
        let left = self.0.load(Ordering::Relaxed);
        let is_here = left != 0 && this_cpu() == Some(left);
        if is_here {
            self.0.store(0, Ordering::Relaxed);
        }
        is_here
    }
}

/// The number of this thread's CPU, counted from 1. A model has none, and neither has the made-up
/// machine that counts lines: what they do must not depend on this computer.
fn this_cpu() -> Option<usize> {
    let has_cpus = !MODEL && !cfg!(corelay_lines);
    has_cpus.then(current_cpu).flatten().map(|cpu| cpu + 1)
}

#[cfg(all(test, not(any(corelay_loom, corelay_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_finds_the_cpu_that_was_left_to_it_once() {
        let Some(cpu) = this_cpu() else { return };
        let left = LeftCpu::default();
        assert!(!left.take_here());
        left.0.store(cpu + 1, Ordering::Relaxed);
        corelay_topology::pin_current_thread(cpu - 1).expect("the CPU that it is on");
        assert!(!left.take_here(), "another CPU");
        left.leave_this();
        assert!(left.take_here());
        assert!(!left.take_here(), "it was taken");
    }
}
