//! The servers' threads.
//!
//! The papers' servers look for requests as long as the program runs. Here contenders take
//! turns on the same CPUs, so a server without clients sleeps, and disturbs nobody.

use crate::schema::Trustee;
use crate::workload::point::Point;
use corelay_literature::{Protocol, Served, Server};
use corelay_sync::facade::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Threads that serve while there are clients, until this is ended or dropped.
pub(super) struct Servers {
    door: Arc<Door>,
    threads: Vec<JoinHandle<Served>>,
}

/// Where servers wait for clients.
#[derive(Default)]
struct Door {
    /// Servers that run return when this is true.
    rest: AtomicBool,
    state: Mutex<State>,
    has_changed: Condvar,
}

#[derive(Default)]
struct State {
    clients: usize,
    has_ended: bool,
}

impl Door {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps until there are clients; false where there will be none any more.
    fn wait(&self) -> bool {
        let mut state = self.state();
        while state.clients == 0 && !state.has_ended {
            let waited = self.has_changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        !state.has_ended
    }
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
            door: Arc::default(),
            threads: Vec::with_capacity(servers.len()),
        };
        let cpus = point
            .placement
            .iter()
            .copied()
            .chain(std::iter::repeat(None));
        for ((number, mut server), cpu) in servers.into_iter().enumerate().zip(cpus) {
            let door = Arc::clone(&running.door);
            let thread = std::thread::Builder::new()
                .name(format!("{name}-{number}"))
                .spawn(move || {
                    // The crew's threads of these places report a failure to pin.
                    let _ = cpu.map(corelay_topology::pin_current_thread);
                    while door.wait() {
                        server.run(&door.rest);
                    }
                    server.served()
                })
                .map_err(|error| format!("--servers: a thread could not be started: {error}"))?;
            running.threads.push(thread);
        }
        Ok(running)
    }

    /// Has the servers serve as long as the guard lives.
    pub(super) fn serve(&self) -> Serving<'_> {
        let mut state = self.door.state();
        state.clients += 1;
        if state.clients == 1 {
            // Relaxed: a server that sees it late comes back to the door and goes on.
            self.door.rest.store(false, Ordering::Relaxed);
            self.door.has_changed.notify_all();
        }
        Serving(&self.door)
    }

    /// Ends them; says what each has counted.
    pub(super) fn end(&mut self) -> Vec<Served> {
        self.door.state().has_ended = true;
        self.door.has_changed.notify_all();
        let threads = self.threads.drain(..);
        // A panic of a server has shown itself as a wrong result.
        threads.filter_map(|thread| thread.join().ok()).collect()
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.end();
    }
}

/// A client is there.
pub(super) struct Serving<'a>(&'a Door);

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.clients -= 1;
        if state.clients == 0 {
            // Release: pairs with the Acquire in `Server::run`; what clients have asked for is
            // served before a server rests.
            self.0.rest.store(true, Ordering::Release);
        }
    }
}

impl From<&Served> for Trustee {
    fn from(served: &Served) -> Self {
        Self {
            requests: served.requests,
            batches: served.batches,
            passes: served.passes,
            passes_with_work: served.passes_with_work,
            ..Self::default()
        }
    }
}
