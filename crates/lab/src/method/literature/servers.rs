//! The servers' threads.

use crate::schema::Trustee;
use crate::workload::point::Point;
use corelay_literature::{Protocol, Served, Server};
use corelay_sync::facade::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;

/// Threads that serve until this is dropped, or ended.
pub(super) struct Servers {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Served>>,
}

impl Servers {
    /// Servers take the first places of the placement and count among the threads.
    pub(super) fn start<P, T>(
        name: &str,
        servers: Vec<Server<P, T>>,
        point: &Point,
    ) -> Result<Self, String>
    where
        P: Protocol + 'static,
        T: Send + 'static,
    {
        let mut running = Self {
            stop: Arc::default(),
            threads: Vec::with_capacity(servers.len()),
        };
        let cpus = point
            .placement
            .iter()
            .copied()
            .chain(std::iter::repeat(None));
        for ((number, mut server), cpu) in servers.into_iter().enumerate().zip(cpus) {
            let stop = Arc::clone(&running.stop);
            let thread = std::thread::Builder::new()
                .name(format!("{name}-{number}"))
                .spawn(move || {
                    // The crew's threads of these places report a failure to pin.
                    let _ = cpu.map(corelay_topology::pin_current_thread);
                    server.run(&stop);
                    server.served()
                })
                .map_err(|error| format!("--servers: a thread could not be started: {error}"))?;
            running.threads.push(thread);
        }
        Ok(running)
    }

    /// Ends them; says what each has counted.
    pub(super) fn end(&mut self) -> Vec<Trustee> {
        // Release: pairs with the Acquire in `Server::run`; it has nothing to hand over but
        // what clients have asked for before.
        self.stop.store(true, Ordering::Release);
        let threads = self.threads.drain(..);
        threads
            // A panic of a server has shown itself as a wrong result.
            .filter_map(|thread| thread.join().ok())
            .map(|served| Trustee::from(&served))
            .collect()
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.end();
    }
}

impl From<&Served> for Trustee {
    fn from(served: &Served) -> Self {
        Self {
            requests: served.requests,
            batches: served.batches,
            passes: served.passes,
            passes_with_work: served.passes_with_work,
            // Neither exists in the literature.
            sleeps: 0,
            panics: 0,
        }
    }
}
