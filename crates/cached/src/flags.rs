//! The command line, with memcached's flags.

use crate::server::{Settings, Users};
use crate::tls::Tls;
use clap::Parser;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::{User, chown, geteuid, initgroups, setgid, setuid};
use std::ffi::CString;
use std::fmt::Display;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

/// The largest `-m`, in MiB: 16 TiB.
const MOST_MEMORY: u64 = 16 << 20;

/// A cache server that speaks memcached's protocol, on delegated shards.
///
/// Exit codes: 0 after SIGTERM, 1 if it could not serve, 2 bad usage.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "corelay-cached",
    version,
    args_override_self = true,
    allow_negative_numbers = true
)]
pub struct Flags {
    /// The TCP port.
    #[arg(short = 'p', long = "port", default_value_t = 11211)]
    port: u16,
    /// The addresses to listen on, or names that have one, with commas between them. Each may have a port of
    /// its own. Others than this machine's own must be asked for.
    #[arg(
        short = 'l',
        long = "listen",
        value_name = "ADDRESS[:PORT]",
        value_delimiter = ',',
        default_value = "127.0.0.1"
    )]
    listen: Vec<String>,
    /// The UDP port. There is no UDP: only 0 is taken.
    #[arg(short = 'U', long = "udp-port", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..1))]
    udp: u16,
    /// Memory for items and all that belongs to them, in MiB.
    #[arg(short = 'm', long = "memory-limit", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=MOST_MEMORY))]
    memory: u64,
    /// The most connections at a time. Others are told so and closed.
    #[arg(short = 'c', long = "conn-limit", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..))]
    connections: u32,
    /// The number of threads, each with a shard.
    #[arg(short = 't', long = "threads", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: u16,
    /// The most bytes of an item, with k or m for KiB or MiB: 1k to 1024m, and half of `-m` at most. Without
    /// it: 1m, or half of `-m` if that is less.
    #[arg(short = 'I', long = "max-item-size", value_name = "SIZE", value_parser = item_size)]
    item: Option<usize>,
    /// Refuse new items when memory is full, instead of evicting others.
    #[arg(short = 'M', long = "disable-evictions")]
    refuses: bool,
    /// Listen on a Unix socket at this path, and on no port.
    #[arg(short = 's', long = "unix-socket", value_name = "PATH")]
    unix_socket: Option<PathBuf>,
    /// The permissions of the Unix socket, in octal.
    #[arg(short = 'a', long = "unix-mask", default_value = "700", value_parser = mode)]
    unix_mode: u32,
    /// The number of connections that the system holds ready for a thread to accept.
    #[arg(short = 'b', long = "listen-backlog", default_value_t = 1024, value_parser = clap::value_parser!(i32).range(1..))]
    backlog: i32,
    /// Run in the background.
    #[arg(short = 'd', long = "daemon")]
    daemon: bool,
    /// Write the number of the process into this file, which goes when the server ends.
    #[arg(short = 'P', long = "pidfile", value_name = "FILE")]
    pid_file: Option<PathBuf>,
    /// Tell more on standard error. Twice: each connection, too.
    #[arg(short = 'v', long = "verbose", action = clap::ArgAction::Count)]
    verbosity: u8,
    /// Let clients end the server by `shutdown`.
    #[arg(short = 'A', long = "enable-shutdown")]
    may_shut_down: bool,
    /// Let only those clients in that log in with a `name:password` of this file.
    #[arg(short = 'Y', long = "auth-file", value_name = "FILE")]
    users: Option<PathBuf>,
    /// Encrypt connections. `-o` names the certificate and the key.
    #[arg(short = 'Z', long = "enable-ssl")]
    encrypts: bool,
    /// More options, with commas between them: idle_timeout=SECONDS, ssl_chain_cert=FILE, ssl_key=FILE.
    #[arg(short = 'o', long = "extended", value_name = "OPTIONS")]
    options: Option<Options>,
    /// Give statistics for Prometheus at this address, under `/metrics`.
    #[arg(long = "metrics", value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
    /// Tell on standard error of requests that take longer than so many milliseconds.
    #[arg(long = "slow", value_name = "MS", value_parser = clap::value_parser!(u64).range(1..))]
    slow: Option<u64>,
    /// Run as this user, if started as root.
    #[arg(short = 'u', long = "user")]
    user: Option<String>,
    /// Give items no cas numbers.
    #[arg(short = 'C', long = "disable-cas")]
    no_cas: bool,
    /// Refuse to dump keys. It is always so: there is no such command.
    #[arg(short = 'X', long = "disable-dumping", hide = true)]
    _no_dumping: bool,
    /// Refuse `watch`. It is always so: there is no such command.
    #[arg(short = 'W', long = "disable-watch", hide = true)]
    _no_watching: bool,
    /// Refuse `flush_all`.
    #[arg(short = 'F', long = "disable-flush-all")]
    no_flush: bool,
}

/// The options behind `-o`.
#[derive(Clone, Debug, Default)]
struct Options {
    idle_timeout: Option<u64>,
    chain: Option<PathBuf>,
    key: Option<PathBuf>,
}

impl FromStr for Options {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut options = Self::default();
        for option in text.split(',').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            match (name, value) {
                ("idle_timeout", value) => {
                    let seconds = value.parse().ok().filter(|&seconds| seconds <= 1 << 31);
                    let seconds: u64 = seconds.ok_or("idle_timeout=SECONDS is expected")?;
                    options.idle_timeout = (seconds > 0).then_some(seconds);
                }
                ("ssl_chain_cert" | "ssl_key", "") => {
                    return Err(format!("{name}=FILE is expected"));
                }
                ("ssl_chain_cert", file) => options.chain = Some(file.into()),
                ("ssl_key", file) => options.key = Some(file.into()),
                _ => {
                    return Err(format!(
                        "there is no option `{name}`; there are idle_timeout, ssl_chain_cert and ssl_key"
                    ));
                }
            }
        }
        Ok(options)
    }
}

/// Reads permissions.
fn mode(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).ok();
    mode.filter(|&mode| mode <= 0o777)
        .ok_or_else(|| "0 to 777 in octal is expected".to_owned())
}

/// Reads a size.
fn item_size(text: &str) -> Result<usize, String> {
    let (number, unit) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1 << 10),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 1 << 20),
        _ => (text, 1),
    };
    let bytes = number.parse().ok().and_then(|n: usize| n.checked_mul(unit));
    match bytes {
        Some(bytes @ 1024..=0x4000_0000) => Ok(bytes),
        _ => Err(String::from("1k to 1024m are allowed")),
    }
}

impl Flags {
    /// The user to become, if the flags name one and the process is root's.
    ///
    /// # Errors
    /// There is no such user.
    pub fn user(&self) -> Result<Option<User>, String> {
        let (Some(name), true) = (&self.user, geteuid().is_root()) else {
            return Ok(None);
        };
        let user = User::from_name(name).ok().flatten();
        let user = user.ok_or_else(|| format!("-u {name}: there is no such user"))?;
        Ok(Some(user))
    }

    /// Becomes a user, with that one's groups and no others, and gives the Unix socket to it. Called before
    /// threads start.
    ///
    /// # Errors
    /// The system refuses.
    pub fn become_user(&self, user: &User) -> Result<(), String> {
        let refused = |error| format!("-u {}: {error}", user.name);
        if let Some(socket) = &self.unix_socket {
            chown(socket, Some(user.uid), Some(user.gid)).map_err(refused)?;
        }
        let name = CString::new(user.name.as_str()).map_err(|_| refused(nix::Error::EINVAL))?;
        initgroups(&name, user.gid)
            .and_then(|()| setgid(user.gid))
            .and_then(|()| setuid(user.uid))
            .map_err(refused)
    }

    /// Raises the number of files that the process may open, as far as the system allows, to what `-c` asks
    /// for. Returns a warning if that is less.
    pub fn raise_file_limit(&self) -> Option<String> {
        // Listening sockets, and what each thread has open for itself.
        let others = u64::from(self.threads) * (8 + self.listen.len() as u64) + 32;
        let wanted = u64::from(self.connections) + others;
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
        if soft >= wanted {
            return None;
        }
        let raised = wanted.min(hard);
        let files = match setrlimit(Resource::RLIMIT_NOFILE, raised, hard) {
            Ok(()) => raised,
            Err(_) => soft,
        };
        // Without any connection the server does not start, and says why.
        (files < wanted && files > others).then(|| {
            let most = files - others;
            format!(
                "-c {}: the system gives files for {most} connections",
                self.connections
            )
        })
    }

    /// Leaves the terminal if the flags ask for it. Called before threads start.
    ///
    /// # Errors
    /// The system refuses.
    pub fn leave_terminal(&self) -> Result<(), String> {
        if !self.daemon {
            return Ok(());
        }
        // It stays in its folder, which paths may refer to.
        let keeps_output = self.verbosity > 0 || self.slow.is_some();
        nix::unistd::daemon(true, keeps_output).map_err(|error| format!("-d: {error}"))
    }

    /// Whether the flags ask for more on standard error.
    pub fn is_verbose(&self) -> bool {
        self.verbosity > 0
    }

    /// The file for the number of the process, if the flags ask for one.
    pub fn pid_file(&self) -> Option<&Path> {
        self.pid_file.as_deref()
    }

    /// The first address of a name that it is to listen on.
    fn address(&self, listen: &str) -> Result<SocketAddr, String> {
        let refused = |why: &dyn Display| format!("-l {listen}: {why}");
        if let Ok(address) = listen.parse() {
            return Ok(SocketAddr::new(address, self.port));
        }
        let (name, port) = match listen.rsplit_once(':') {
            Some((name, port)) => (name, port.parse()),
            None => (listen, Ok(self.port)),
        };
        let port = port.map_err(|_| refused(&"after the colon a port is expected"))?;
        let inner = name
            .strip_prefix('[')
            .and_then(|name| name.strip_suffix(']'));
        let addresses = (inner.unwrap_or(name), port).to_socket_addrs();
        let first = addresses.map_err(|error| refused(&error))?.next();
        first.ok_or_else(|| refused(&"it has no address"))
    }

    /// The settings of the server that the flags ask for.
    ///
    /// # Errors
    /// A file that they name cannot be read, or flags do not belong together.
    pub fn settings(&self) -> Result<Settings, String> {
        let options = self.options.clone().unwrap_or_default();
        let tls = match (self.encrypts, &options.chain, &options.key) {
            (false, None, None) => None,
            (false, ..) => return Err("-o ssl_chain_cert and ssl_key are for -Z".to_owned()),
            (true, Some(chain), Some(key)) => Some(Tls::read(chain, key)?),
            (true, ..) => return Err("-Z needs -o ssl_chain_cert=FILE,ssl_key=FILE".to_owned()),
        };
        let users = self.users.as_deref().map(Users::read).transpose()?;
        let memory = (self.memory as usize) << 20;
        // As in memcached.
        if self.item.is_some_and(|item| item > memory / 2) {
            return Err("-I: an item may take half of -m at most".to_owned());
        }
        let addresses = self.listen.iter().map(|listen| self.address(listen));
        let addresses: Result<_, _> = addresses.collect();
        Ok(Settings {
            addresses: addresses?,
            unix_socket: self.unix_socket.clone(),
            unix_mode: self.unix_mode,
            threads: usize::from(self.threads),
            memory,
            largest_item: self.item.unwrap_or((1 << 20).min(memory / 2)),
            connections: self.connections as usize,
            backlog: self.backlog,
            may_flush: !self.no_flush,
            may_shut_down: self.may_shut_down,
            evicts: !self.refuses,
            has_cas: !self.no_cas,
            idle_timeout: options.idle_timeout.map(Duration::from_secs),
            users,
            tls,
            metrics: self.metrics,
            slow: self.slow.map(Duration::from_millis),
            verbosity: self.verbosity,
        })
    }
}
