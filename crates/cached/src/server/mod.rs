//! The server: threads that are members of a team, each with an event loop, a listening socket and
//! a shard.
//!
//! | file | idea |
//! |---|---|
//! | `clock` | seconds as memcached counts them |
//! | `connection` | a client's connection |
//! | `reader` | does the commands that have come |
//! | `turn` | answers in order, some of which come from other shards |
//! | `event_loop` | a thread: sockets, its shard, and requests of other threads |

pub(crate) mod clock;
mod connection;
mod event_loop;
mod reader;
mod turn;

use self::clock::Clock;
use self::event_loop::{EventLoop, Service};
use crate::shard::Shard;
use crate::store::Hasher;
use corelay::{Team, Trustees};
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The settings of a server.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address that it listens on.
    pub address: SocketAddr,
    /// The number of threads.
    pub threads: usize,
    /// The bytes of memory for items and all that belongs to them.
    pub memory: usize,
    /// The most bytes of an item.
    pub largest_item: usize,
    /// The most connections at a time. Others are told so and closed.
    pub connections: usize,
    /// Whether clients may remove all items.
    pub may_flush: bool,
    /// Whether a full server evicts items. If not, it refuses new ones.
    pub evicts: bool,
    /// Whether items have cas numbers.
    pub has_cas: bool,
}

/// A listening socket for each of `threads`, all on one port. Another server's port is refused, also
/// if that one shares it among its threads.
fn listen(address: SocketAddr, threads: usize) -> io::Result<Vec<TcpListener>> {
    // Without the wish to share: it fails if anybody has the port.
    let alone = socket(address)?;
    alone.bind(&address.into())?;
    let address = alone.local_addr()?.as_socket().unwrap_or(address);
    drop(alone);
    (0..threads).map(|_| listen_shared(address)).collect()
}

fn socket(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn listen_shared(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = socket(address)?;
    socket.set_reuse_port(true)?;
    socket.bind(&address.into())?;
    socket.listen(1024)?;
    Ok(socket.into())
}

/// Serves until the process ends.
///
/// # Errors
/// No threads, no memory, or an address that is in use.
pub fn serve(settings: &Settings) -> io::Result<()> {
    // All of them before any thread accepts connections.
    let listeners = listen(settings.address, settings.threads)?;
    let team: Team = Trustees::flat(settings.threads)
        .name("cached")
        .start()
        .map_err(io::Error::other)?;
    let hasher = Hasher::default();
    let shard = |number| {
        let memory = settings.memory / settings.threads;
        let shard = Shard::new(number, hasher.clone(), memory, settings)?;
        io::Result::Ok(team.entrust_on(number, shard))
    };
    let service = Service {
        shards: (0..settings.threads)
            .map(shard)
            .collect::<io::Result<_>>()?,
        hasher: hasher.clone(),
        clock: Clock::start(),
        largest_item: settings.largest_item,
        may_flush: settings.may_flush,
        connections: AtomicUsize::new(0),
        most_connections: settings.connections,
        is_ending: AtomicBool::new(false),
    };
    // All files of all threads are opened before one accepts connections, which may take as many as
    // the system gives.
    let all_made = Barrier::new(settings.threads);
    let ended = team.run(|me| {
        let listener = listeners[me.number()].try_clone();
        let made = listener.and_then(|listener| EventLoop::new(me, &service, listener));
        if made.is_err() {
            // Release: pairs with the Acquire in EventLoop::run. None serves if one cannot.
            service.is_ending.store(true, Ordering::Release);
        }
        all_made.wait();
        made?.run()
    });
    ended.into_iter().collect()
}
