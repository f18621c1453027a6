//! The parts of a server that all threads know.

use super::Settings;
use super::arriving::Arrivals;
use super::clock::Clock;
use super::ending::Ending;
use crate::shard::Shard;
use crate::statistics::{Counters, Hottest, Sums};
use crate::store::Hasher;
use corelay::Trust;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The parts of a server that all threads know.
pub(crate) struct Service {
    /// The settings, with the addresses that it has.
    pub(crate) settings: Settings,
    pub(crate) shards: Vec<Trust<Shard>>,
    pub(crate) hasher: Hasher,
    pub(crate) clock: Clock,
    /// The counters of each thread.
    pub(crate) counters: Vec<Arc<Counters>>,
    /// The hottest keys of each shard.
    pub(crate) hottest: Vec<Arc<Hottest>>,
    /// The sums when somebody last reset them.
    before: Mutex<Sums>,
    /// The number of connections of all threads.
    pub(crate) connections: AtomicUsize,
    pub(crate) arrivals: Arrivals,
    /// The clients of each thread by place.
    clients: Vec<Mutex<Vec<Option<Arc<Client>>>>>,
    pub(crate) ending: Arc<Ending>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Service {
    pub(crate) fn new(settings: Settings, hasher: Hasher, ending: Arc<Ending>) -> Self {
        let threads = settings.threads;
        Self {
            arrivals: Arrivals::new(settings.memory),
            settings,
            shards: Vec::new(),
            hasher,
            clock: Clock::start(),
            counters: (0..threads).map(|_| Arc::default()).collect(),
            hottest: (0..threads).map(|_| Arc::default()).collect(),
            before: Mutex::default(),
            connections: AtomicUsize::new(0),
            clients: (0..threads).map(|_| Mutex::default()).collect(),
            ending,
        }
    }

    /// The sums of all threads' counters since the last reset.
    pub(crate) fn sums(&self) -> Sums {
        // First, so that a reset in between does not make it the later one.
        let before = *lock(&self.before);
        Sums::of(&self.counters).since(before)
    }

    /// Lets all sums begin anew.
    pub(crate) fn reset(&self) {
        *lock(&self.before) = Sums::of(&self.counters);
    }

    /// Makes a client of a thread known, or forgets it.
    pub(crate) fn set_client(&self, thread: usize, place: usize, client: Option<Arc<Client>>) {
        let mut clients = lock(&self.clients[thread]);
        if clients.len() <= place {
            clients.resize(place + 1, None);
        }
        clients[place] = client;
    }

    /// The clients of all threads.
    pub(crate) fn clients(&self) -> impl Iterator<Item = Arc<Client>> {
        self.clients.iter().flat_map(|clients| {
            let clients: Vec<_> = lock(clients).iter().flatten().cloned().collect();
            clients
        })
    }
}

/// The address of a client, or of the server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Peer {
    Tcp(SocketAddr),
    Unix,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "tcp:{address}"),
            Self::Unix => f.write_str("unix"),
        }
    }
}

/// The state of a client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// A command is to come.
    Reading,
    /// The rest of a value is to come.
    ReadingValue,
    /// The client does not read its answers.
    Writing,
    /// Requests are on their way to other shards.
    Waiting,
}

/// A connected client, as all threads see it.
pub(crate) struct Client {
    /// The file descriptor.
    pub(crate) number: i32,
    pub(crate) peer: Peer,
    /// The address that it came to.
    pub(crate) listening: Peer,
    state: AtomicU8,
    /// The second at which it last sent something, or took a part of an answer that had to wait.
    last_active: AtomicU32,
}

// Relaxed throughout: each is a figure by itself.
impl Client {
    pub(crate) fn new(number: i32, peer: Peer, listening: Peer, now: u32) -> Self {
        Self {
            number,
            peer,
            listening,
            state: AtomicU8::new(State::Reading as u8),
            last_active: AtomicU32::new(now),
        }
    }

    pub(crate) fn note_activity(&self, now: u32) {
        self.last_active.store(now, Ordering::Relaxed);
    }

    pub(crate) fn last_active(&self) -> u32 {
        self.last_active.load(Ordering::Relaxed)
    }

    pub(crate) fn set_state(&self, state: State) {
        self.state.store(state as u8, Ordering::Relaxed);
    }

    /// The state under memcached's name for it.
    pub(crate) fn state(&self) -> &'static str {
        let states = ["conn_read", "conn_nread", "conn_mwrite", "conn_io_queue"];
        states[usize::from(self.state.load(Ordering::Relaxed))]
    }
}
