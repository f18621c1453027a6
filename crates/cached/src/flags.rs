//! The command line, with memcached's flags.

use crate::server::Settings;
use clap::Parser;
use nix::unistd::{User, geteuid, setgid, setuid};
use std::net::{IpAddr, SocketAddr};

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
    /// The address to listen on. Others than this machine's own must be asked for.
    #[arg(short = 'l', long = "listen", default_value = "127.0.0.1")]
    listen: IpAddr,
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
    /// The most bytes of an item, with k or m for KiB or MiB: 1k to 1024m.
    #[arg(short = 'I', long = "max-item-size", default_value = "1m", value_parser = item_size)]
    item: usize,
    /// Refuse new items when memory is full, instead of evicting others.
    #[arg(short = 'M', long = "disable-evictions")]
    refuses: bool,
    /// Run as this user, if started as root.
    #[arg(short = 'u', long = "user")]
    user: Option<String>,
    /// Give items no cas numbers.
    #[arg(short = 'C', long = "disable-cas")]
    no_cas: bool,
    /// Refuse `flush_all`.
    #[arg(short = 'F', long = "disable-flush-all")]
    no_flush: bool,
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
    /// Becomes the user that the flags name, if the process is root's. Called before threads start.
    ///
    /// # Errors
    /// There is no such user, or the system refuses.
    pub fn become_user(&self) -> Result<(), String> {
        let (Some(name), true) = (&self.user, geteuid().is_root()) else {
            return Ok(());
        };
        let user = User::from_name(name).ok().flatten();
        let user = user.ok_or_else(|| format!("-u {name}: there is no such user"))?;
        setgid(user.gid)
            .and_then(|()| setuid(user.uid))
            .map_err(|error| format!("-u {name}: {error}"))
    }

    /// The settings of the server that the flags ask for.
    pub fn settings(&self) -> Settings {
        Settings {
            address: SocketAddr::new(self.listen, self.port),
            threads: usize::from(self.threads),
            memory: (self.memory as usize) << 20,
            largest_item: self.item,
            connections: self.connections as usize,
            may_flush: !self.no_flush,
            evicts: !self.refuses,
            has_cas: !self.no_cas,
        }
    }
}
