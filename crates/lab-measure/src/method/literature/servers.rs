//! The threads of servers.
//!
//! The papers' servers look for requests as long as the program runs. Here contenders take turns
//! on the same CPUs, so a server without clients sleeps and takes no CPU.

use crate::schema::Trustee;
use crate::workload::point::Point;
use corelay_literature::{Protocol, Served, Server};
use corelay_sync::facade::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;

/// Threads that serve while there are clients, until [`end`](Self::end) or the drop.
pub(super) struct Servers {
    gate: Arc<ClientGate>,
    threads: Vec<JoinHandle<Served>>,
}

/// The gate at which servers wait for clients.
#[derive(Default)]
struct ClientGate {
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

impl ClientGate {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps until there are clients. Returns false if the servers are to end.
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
    /// Starts the servers' threads, and waits until each has made its lines and objects. They take
    /// the first CPUs of the placement and count as threads.
    ///
    /// # Panics
    /// As a server did whose objects could not be made.
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
            gate: Arc::default(),
            threads: Vec::with_capacity(servers.len()),
        };
        let cpus = point
            .placement
            .iter()
            .copied()
            .chain(std::iter::repeat(None));
        let (has_begun, begun) = mpsc::channel();
        for ((number, mut server), cpu) in servers.into_iter().enumerate().zip(cpus) {
            // The thread begins on its CPU, as its allocator touches a page before it runs our code.
            // The crew's threads on the same CPUs report a failure to pin.
            let _pinned = cpu.map(corelay_topology::PinGuard::pin);
            let (gate, has_begun) = (Arc::clone(&running.gate), has_begun.clone());
            let thread = std::thread::Builder::new()
                .name(format!("{name}-{number}"))
                .spawn(move || {
                    server.begin();
                    let _ = has_begun.send(());
                    drop(has_begun);
                    while gate.wait() {
                        server.run(&gate.rest);
                    }
                    server.served()
                })
                .map_err(|error| format!("--servers: a thread could not be started: {error}"))?;
            running.threads.push(thread);
        }
        drop(has_begun);
        if begun.iter().take(running.threads.len()).count() < running.threads.len() {
            let panic = running.join().into_iter().find_map(Result::err);
            std::panic::resume_unwind(panic.expect("a server that has not begun has panicked"));
        }
        Ok(running)
    }

    /// Has the servers serve until the guard is dropped.
    pub(super) fn serve(&self) -> ServingGuard<'_> {
        let mut state = self.gate.state();
        state.clients += 1;
        if state.clients == 1 {
            // Relaxed: a server that sees an old `true` returns to the gate and runs again.
            self.gate.rest.store(false, Ordering::Relaxed);
            self.gate.has_changed.notify_all();
        }
        ServingGuard(&self.gate)
    }

    /// Ends the servers; returns each one's counts.
    pub(super) fn end(&mut self) -> Vec<Served> {
        // If a server panicked, the result was wrong already.
        self.join().into_iter().flatten().collect()
    }

    fn join(&mut self) -> Vec<std::thread::Result<Served>> {
        self.gate.state().has_ended = true;
        self.gate.has_changed.notify_all();
        self.threads.drain(..).map(JoinHandle::join).collect()
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.end();
    }
}

/// The presence of a client: servers run while there is at least one.
pub(super) struct ServingGuard<'a>(&'a ClientGate);

impl Drop for ServingGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.clients -= 1;
        if state.clients == 0 {
            // Release: pairs with the Acquire in `Server::run`; the clients' requests are served
            // before a server rests.
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
