//! Somebody else's program on one of the CPUs: it works for a millisecond, sleeps for another, and so
//! makes one of the threads slow. Machines that are shared have such neighbours unasked.

use corelay_sync::facade::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long it works, and how long it sleeps then.
const SHIFT: Duration = Duration::from_millis(1);

/// Works until it is dropped.
#[derive(Debug)]
pub(super) struct Neighbour {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Neighbour {
    /// Moves in on this CPU.
    ///
    /// # Errors
    /// Where the system gives no thread.
    pub(super) fn on(cpu: Option<usize>) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let work = move || {
            if let Some(cpu) = cpu {
                // Anywhere, then.
                let _ = corelay_topology::pin_current_thread(cpu);
            }
            // Relaxed: the flag carries no data.
            while !told.load(Ordering::Relaxed) {
                let begin = Instant::now();
                while begin.elapsed() < SHIFT {
                    std::hint::spin_loop();
                }
                std::thread::sleep(SHIFT);
            }
        };
        let thread = std::thread::Builder::new()
            .name("neighbour".to_owned())
            .spawn(work)?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        // Relaxed: the flag carries no data.
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It does nothing that could panic.
            let _ = thread.join();
        }
    }
}
