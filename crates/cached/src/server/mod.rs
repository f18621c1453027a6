//! The server: threads that are members of a team, each with an event loop, listening sockets and a
//! shard.
//!
//! | file | idea |
//! |---|---|
//! | `binary` | does the requests of the binary protocol |
//! | `admin` | the text commands that are about the server, not about a key |
//! | `arriving` | values that have not come whole yet |
//! | `clock` | seconds as memcached counts them |
//! | `connection` | a client's connection |
//! | `ending` | the end of a server, which another thread or a signal may ask for |
//! | `event_loop` | a thread: sockets, its shard, and requests of other threads |
//! | `login` | the names and passwords of clients |
//! | `metrics` | statistics for Prometheus |
//! | `reader` | does the commands that have come |
//! | `service` | the parts of a server that all threads know |
//! | `slow` | slow requests |
//! | `stream` | sockets: TCP or Unix, encrypted or not |
//! | `turn` | answers in order, some of which come from other shards |

mod admin;
mod arriving;
mod binary;
pub(crate) mod clock;
mod connection;
mod ending;
mod event_loop;
mod login;
mod metrics;
mod reader;
pub(crate) mod service;
mod slow;
mod stream;
mod turn;

pub use self::login::Users;
pub(crate) use self::reader::{MOST_OUTPUT, MOST_WORK};

use self::ending::Ending;
use self::event_loop::EventLoop;
use self::service::Service;
use self::stream::Listener;
use crate::shard::Shard;
use crate::store::Hasher;
use crate::tls::Tls;
use corelay::{Team, Trustees};
use nix::sys::stat::{Mode, umask};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::time::Duration;

/// The version of memcached whose protocol the server speaks.
pub(crate) const VERSION: &str = "1.6.18";

/// The settings of a server.
///
/// ```
/// use corelay_cached::server::{Server, Settings};
///
/// let settings = Settings {
///     addresses: vec!["127.0.0.1:0".parse()?],
///     threads: 2,
///     ..Settings::default()
/// };
/// let server = Server::bind(settings)?;
/// let (address, handle) = (server.addresses()[0], server.handle());
/// let thread = std::thread::spawn(|| server.run());
///
/// use std::io::{Read, Write};
/// let mut client = std::net::TcpStream::connect(address)?;
/// client.write_all(b"set apple 0 0 3\r\nred\r\nget apple\r\nquit\r\n")?;
/// let mut answers = String::new();
/// client.read_to_string(&mut answers)?;
/// assert_eq!(answers, "STORED\r\nVALUE apple 0 3\r\nred\r\nEND\r\n");
///
/// handle.shut_down()?;
/// thread.join().unwrap()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Settings {
    /// The addresses that it listens on. For port 0 the system chooses one: [`Server::addresses`]. An address
    /// of IPv6 is for clients of IPv6 alone, as in memcached.
    pub addresses: Vec<SocketAddr>,
    /// The path of a Unix socket that it listens on instead.
    pub unix_socket: Option<PathBuf>,
    /// The permissions of that socket.
    pub unix_mode: u32,
    /// The number of threads.
    pub threads: usize,
    /// The bytes of memory for items and all that belongs to them.
    pub memory: usize,
    /// The most bytes of an item.
    pub largest_item: usize,
    /// The most connections at a time. Others are told so and closed.
    pub connections: usize,
    /// The number of connections that the system holds ready for a thread to accept.
    pub backlog: i32,
    /// Whether clients may remove all items.
    pub may_flush: bool,
    /// Whether clients may end the server.
    pub may_shut_down: bool,
    /// Whether a full server evicts items. If not, it refuses new ones.
    pub evicts: bool,
    /// Whether items have cas numbers.
    pub has_cas: bool,
    /// The time after which a connection is closed over which nothing comes.
    pub idle_timeout: Option<Duration>,
    /// The clients that are let in. Without it all are.
    pub users: Option<Users>,
    /// The certificate with which connections are encrypted. Without it none is.
    pub tls: Option<Tls>,
    /// The address at which statistics are given for Prometheus.
    pub metrics: Option<SocketAddr>,
    /// The time from which on a request is slow, which is told on standard error.
    pub slow: Option<Duration>,
    /// How much the server tells on standard error.
    pub verbosity: u8,
}

impl Default for Settings {
    /// The settings of memcached without flags, on this machine's own address.
    fn default() -> Self {
        Self {
            addresses: vec![SocketAddr::from(([127, 0, 0, 1], 11211))],
            unix_socket: None,
            unix_mode: 0o700,
            threads: 4,
            memory: 64 << 20,
            largest_item: 1 << 20,
            connections: 1024,
            backlog: 1024,
            may_flush: true,
            may_shut_down: false,
            evicts: true,
            has_cas: true,
            idle_timeout: None,
            users: None,
            tls: None,
            metrics: None,
            slow: None,
            verbosity: 0,
        }
    }
}

/// A listening socket for each thread, all on one port. Another server's port is refused, also if that one
/// shares it among its threads.
fn listen(address: SocketAddr, settings: &Settings) -> io::Result<(SocketAddr, Vec<TcpListener>)> {
    // Without the wish to share: it fails if anybody has the port.
    let alone = socket(address)?;
    alone.bind(&address.into())?;
    let address = alone.local_addr()?.as_socket().unwrap_or(address);
    drop(alone);
    let listeners = (0..settings.threads).map(|_| listen_shared(address, settings.backlog));
    Ok((address, listeners.collect::<io::Result<_>>()?))
}

fn socket(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    if address.is_ipv6() {
        // So that all addresses of both kinds may have one port.
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn listen_shared(address: SocketAddr, backlog: i32) -> io::Result<TcpListener> {
    let socket = socket(address)?;
    socket.set_reuse_port(true)?;
    socket.bind(&address.into())?;
    socket.listen(backlog)?;
    Ok(socket.into())
}

/// A Unix socket that all threads accept clients from.
fn listen_unix(path: &Path, mode: u32) -> io::Result<UnixListener> {
    use std::os::unix::fs::FileTypeExt;
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    if is_socket && is_left(path) {
        std::fs::remove_file(path)?;
    }
    // Nobody else may connect before the permissions are set.
    let before = umask(Mode::from_bits_truncate(0o777));
    let listener = UnixListener::bind(path);
    umask(before);
    let listener = listener?;
    listener.set_nonblocking(true)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
    Ok(listener)
}

/// Whether a Unix socket is nobody's: an earlier server has left it.
fn is_left(path: &Path) -> bool {
    let connected = Socket::new(Domain::UNIX, Type::STREAM, None).and_then(|socket| {
        socket.set_nonblocking(true)?;
        socket.connect(&SockAddr::unix(path)?)
    });
    connected.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// A server that has its sockets and does not serve yet.
pub struct Server {
    /// The settings, with the addresses that it has.
    settings: Settings,
    /// The listening sockets of each thread.
    listeners: Vec<Vec<Listener>>,
    metrics: Option<TcpListener>,
    ending: Arc<Ending>,
}

impl Server {
    /// Takes the sockets of a server.
    ///
    /// # Errors
    /// An address is in use, or not this machine's, or the system has no more file descriptors. The error
    /// names the address. Or there is none.
    pub fn bind(mut settings: Settings) -> io::Result<Self> {
        let named = |name: &dyn std::fmt::Display| {
            let name = name.to_string();
            move |error: io::Error| io::Error::new(error.kind(), format!("{name}: {error}"))
        };
        let mut listeners: Vec<Vec<Listener>> = Vec::new();
        listeners.resize_with(settings.threads, Vec::new);
        let asked = std::mem::take(&mut settings.addresses);
        if let Some(path) = &settings.unix_socket {
            let socket = listen_unix(path, settings.unix_mode).map_err(named(&path.display()))?;
            for own in &mut listeners {
                let socket = mio::net::UnixListener::from_std(socket.try_clone()?);
                own.push(Listener::Unix(socket));
            }
        } else {
            for address in asked {
                let (address, sockets) = listen(address, &settings).map_err(named(&address))?;
                settings.addresses.push(address);
                for (own, socket) in listeners.iter_mut().zip(sockets) {
                    own.push(Listener::Tcp(
                        mio::net::TcpListener::from_std(socket),
                        address,
                    ));
                }
            }
            if settings.addresses.is_empty() {
                let none = "there is no address to listen on";
                return Err(io::Error::new(io::ErrorKind::InvalidInput, none));
            }
        }
        let metrics = match settings.metrics {
            Some(address) => Some(TcpListener::bind(address).map_err(named(&address))?),
            None => None,
        };
        let ending = Arc::new(Ending::new(settings.threads));
        Ok(Self {
            settings,
            listeners,
            metrics,
            ending,
        })
    }

    /// The addresses that it listens on, in the order of the settings: none if it has a Unix socket.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.settings.addresses
    }

    /// The address at which it gives statistics for Prometheus, if it does.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref()?.local_addr().ok()
    }

    /// A handle that ends the server.
    pub fn handle(&self) -> Handle {
        Handle(Arc::clone(&self.ending))
    }

    /// Serves until somebody ends it.
    ///
    /// # Errors
    /// The system gives no threads, no memory or no more file descriptors.
    pub fn run(self) -> io::Result<()> {
        let settings = &self.settings;
        let metrics_address = self.metrics_address();
        let team: Team = Trustees::flat(settings.threads)
            .name("cached")
            .start()
            .map_err(io::Error::other)?;
        let hasher = Hasher::default();
        let mut service = Service::new(settings.clone(), hasher.clone(), Arc::clone(&self.ending));
        for number in 0..settings.threads {
            let memory = settings.memory / settings.threads;
            let counters = Arc::clone(&service.counters[number]);
            let shard = Shard::new(number, hasher.clone(), memory, settings, counters)?;
            service.shards.push(team.entrust_on(number, shard));
        }
        let service = Arc::new(service);
        if let Some(listener) = self.metrics {
            metrics::start(listener, &service)?;
        }
        // Each thread takes its own.
        let listeners: Vec<_> = self.listeners.into_iter().map(Mutex::new).collect();
        // All files of all threads are opened before one accepts connections, which may take as many as
        // the system gives.
        let all_made = Barrier::new(settings.threads);
        let ended = team.run(|me| {
            let own = listeners[me.number()].lock();
            let own = std::mem::take(&mut *own.unwrap_or_else(PoisonError::into_inner));
            let made = EventLoop::new(me, &service, own);
            if made.is_err() {
                // None serves if one cannot.
                let _ = service.ending.begin();
                service.ending.leave();
            }
            all_made.wait();
            made?.run()
        });
        if let Some(path) = &settings.unix_socket {
            let _ = std::fs::remove_file(path);
        }
        drop(service);
        if let Some(address) = metrics_address {
            // The thread of metrics finds that there is no server any more, and gives the port back.
            let _ = TcpStream::connect_timeout(&address, Duration::from_secs(1));
        }
        ended.into_iter().collect()
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// A handle that ends a server.
#[derive(Clone)]
pub struct Handle(Arc<Ending>);

impl Handle {
    /// Ends the server: it accepts no more clients, answers all commands that have come, closes the
    /// connections, and [`Server::run`] returns. A client that does not send the rest of a command, or does
    /// not take its answers, is waited for 5 seconds.
    ///
    /// # Errors
    /// The system does not wake a thread. It ends when something else wakes it.
    pub fn shut_down(&self) -> io::Result<()> {
        self.0.begin()
    }
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle").finish_non_exhaustive()
    }
}
