//! Statistics: what a server has done and has, under memcached's names.
//!
//! | file | idea |
//! |---|---|
//! | `counters` | the counters of a thread, which all threads can read |
//! | `hottest` | the hottest keys of a shard, by samples |

mod counters;
mod hottest;

pub(crate) use self::counters::{Counters, Sums};
pub(crate) use self::hottest::{Hottest, Sampler};

use crate::server::VERSION;
use crate::server::clock::Clock;
use crate::server::service::{Client, Peer, Service};
use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeVal;
use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;

/// The place that a name and its value go to.
pub(crate) type Sink<'a> = &'a mut dyn FnMut(&dyn Display, &dyn Display);

/// A page of statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Page {
    General,
    Settings,
    Items,
    Slabs,
    Sizes,
    Connections,
    /// The requests and the hottest keys of each shard. memcached has no such page.
    Shards,
}

impl Page {
    /// The page of a name. The page without a name is the general one.
    pub(crate) fn named(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"" => Self::General,
            b"settings" => Self::Settings,
            b"items" => Self::Items,
            b"slabs" => Self::Slabs,
            b"sizes" => Self::Sizes,
            b"conns" => Self::Connections,
            b"shards" => Self::Shards,
            _ => return None,
        })
    }

    /// Hands the page's names and values to `sink`, in memcached's order.
    pub(crate) fn write(self, service: &Service, clock: &Clock, sink: Sink<'_>) {
        match self {
            Self::General => general(service, clock, sink),
            Self::Settings => settings(service, sink),
            Self::Items => items(service, sink),
            Self::Slabs => slabs(service, sink),
            Self::Sizes => sink(&"sizes_status", &"disabled"),
            Self::Connections => connections(service, clock, sink),
            Self::Shards => shards(service, sink),
        }
    }
}

/// A time with microseconds, as memcached writes it.
struct Seconds(TimeVal);

impl Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:06}", self.0.tv_sec(), self.0.tv_usec())
    }
}

fn general(service: &Service, clock: &Clock, sink: Sink<'_>) {
    let settings = &service.settings;
    let all = Sums::of(&service.counters);
    let sums = service.sums();
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok();
    let time = |time: fn(&Usage) -> TimeVal| usage.as_ref().map(|usage| Seconds(time(usage)));
    // Relaxed: a count by itself.
    let connections = service.connections.load(Ordering::Relaxed);
    sink(&"pid", &std::process::id());
    sink(&"uptime", &clock.uptime());
    sink(&"time", &clock.time());
    sink(&"version", &VERSION);
    sink(&"corelay_version", &env!("CARGO_PKG_VERSION"));
    sink(&"pointer_size", &usize::BITS);
    for (name, value) in [
        ("rusage_user", time(Usage::user_time)),
        ("rusage_system", time(Usage::system_time)),
    ] {
        if let Some(value) = value {
            sink(&name, &value);
        }
    }
    let numbers = [
        ("max_connections", settings.connections as u64),
        ("curr_connections", connections as u64),
        ("total_connections", sums.total_connections),
        ("rejected_connections", sums.rejected_connections),
        ("connection_structures", connections as u64),
        ("cmd_get", sums.get_hits + sums.get_misses),
        ("cmd_set", sums.cmd_set),
        ("cmd_flush", sums.cmd_flush),
        ("cmd_touch", sums.touch_hits + sums.touch_misses),
        // That version of memcached counts meta commands only among the others.
        ("cmd_meta", 0),
        ("get_hits", sums.get_hits),
        ("get_misses", sums.get_misses),
        ("get_expired", sums.get_expired),
        // A flush removes items at once: none is found that has been flushed.
        ("get_flushed", 0),
        ("delete_misses", sums.delete_misses),
        ("delete_hits", sums.delete_hits),
        ("incr_misses", sums.incr_misses),
        ("incr_hits", sums.incr_hits),
        ("decr_misses", sums.decr_misses),
        ("decr_hits", sums.decr_hits),
        ("cas_misses", sums.cas_misses),
        ("cas_hits", sums.cas_hits),
        ("cas_badval", sums.cas_badval),
        ("touch_hits", sums.touch_hits),
        ("touch_misses", sums.touch_misses),
        ("store_too_large", sums.store_too_large),
        ("store_no_memory", sums.store_no_memory),
        ("auth_cmds", sums.auth_cmds),
        ("auth_errors", sums.auth_errors),
        ("idle_kicks", sums.idle_kicks),
        ("bytes_read", sums.bytes_read),
        ("bytes_written", sums.bytes_written),
        ("limit_maxbytes", settings.memory as u64),
        (
            "accepting_conns",
            u64::from(connections <= settings.connections),
        ),
        ("threads", settings.threads as u64),
        ("hash_bytes", all.hash_bytes),
        ("bytes", all.bytes),
        ("curr_items", all.curr_items),
        ("total_items", sums.total_items),
        ("expired_unfetched", sums.expired_unfetched),
        ("evicted_unfetched", sums.evicted_unfetched),
        ("evictions", sums.evictions),
        ("reclaimed", sums.reclaimed),
        ("moved", sums.moved),
        ("delegated", sums.delegated),
        ("batches", sums.batches),
        ("slow_requests", sums.slow_requests),
    ];
    for (name, number) in numbers {
        sink(&name, &number);
    }
}

fn settings(service: &Service, sink: Sink<'_>) {
    let settings = &service.settings;
    let yes = |is: bool| if is { "yes" } else { "no" };
    sink(&"maxbytes", &settings.memory);
    sink(&"maxconns", &settings.connections);
    let addresses = &settings.addresses;
    sink(&"tcpport", &addresses.first().map_or(0, SocketAddr::port));
    sink(&"udpport", &0);
    let names: Vec<String> = addresses.iter().map(|a| a.ip().to_string()).collect();
    match names.as_slice() {
        [] => sink(&"inter", &"NULL"),
        names => sink(&"inter", &names.join(",")),
    }
    sink(&"verbosity", &settings.verbosity);
    sink(&"evictions", &if settings.evicts { "on" } else { "off" });
    match &settings.unix_socket {
        Some(path) => sink(&"domain_socket", &path.display()),
        None => sink(&"domain_socket", &"NULL"),
    }
    sink(&"umask", &format_args!("{:o}", settings.unix_mode));
    sink(&"shutdown_command", &yes(settings.may_shut_down));
    sink(&"num_threads", &settings.threads);
    sink(&"cas_enabled", &yes(settings.has_cas));
    sink(&"tcp_backlog", &settings.backlog);
    sink(&"binding_protocol", &"auto-negotiate");
    sink(&"auth_enabled_sasl", &"no");
    sink(&"auth_enabled_ascii", &yes(settings.users.is_some()));
    sink(&"item_size_max", &settings.largest_item);
    sink(&"maxconns_fast", &"yes");
    sink(&"flush_enabled", &yes(settings.may_flush));
    sink(&"dump_enabled", &"no");
    sink(
        &"idle_timeout",
        &settings.idle_timeout.map_or(0, |time| time.as_secs()),
    );
    sink(&"track_sizes", &"no");
    sink(&"ssl_enabled", &yes(settings.tls.is_some()));
}

/// The items of all shards, which are of one class: there are no sizes that memory is cut into.
fn items(service: &Service, sink: Sink<'_>) {
    let (all, sums) = (Sums::of(&service.counters), service.sums());
    if all.curr_items == 0 {
        return;
    }
    for (name, number) in [
        ("number", all.curr_items),
        ("mem_requested", all.bytes),
        ("evicted", sums.evictions),
        ("outofmemory", sums.store_no_memory),
        ("reclaimed", sums.reclaimed),
        ("expired_unfetched", sums.expired_unfetched),
        ("evicted_unfetched", sums.evicted_unfetched),
    ] {
        sink(&format_args!("items:1:{name}"), &number);
    }
}

fn slabs(service: &Service, sink: Sink<'_>) {
    let (all, sums) = (Sums::of(&service.counters), service.sums());
    let is_used = all.curr_items > 0;
    if is_used {
        for (name, number) in [
            ("used_chunks", all.curr_items),
            ("get_hits", sums.get_hits),
            ("cmd_set", sums.cmd_set),
            ("delete_hits", sums.delete_hits),
            ("incr_hits", sums.incr_hits),
            ("decr_hits", sums.decr_hits),
            ("cas_hits", sums.cas_hits),
            ("cas_badval", sums.cas_badval),
            ("touch_hits", sums.touch_hits),
        ] {
            sink(&format_args!("1:{name}"), &number);
        }
    }
    sink(&"active_slabs", &u32::from(is_used));
    sink(&"total_malloced", &all.bytes);
}

fn connections(service: &Service, clock: &Clock, sink: Sink<'_>) {
    let now = clock.now();
    let settings = &service.settings;
    let tcp = settings.addresses.iter().map(|&address| Peer::Tcp(address));
    let unix = settings.unix_socket.iter().map(|_| Peer::Unix);
    for (n, address) in tcp.chain(unix).enumerate() {
        sink(&format_args!("listen{n}:addr"), &address);
        sink(&format_args!("listen{n}:state"), &"conn_listening");
    }
    for client in service.clients() {
        let Client { number, .. } = *client;
        sink(&format_args!("{number}:addr"), &client.peer);
        sink(&format_args!("{number}:listen_addr"), &client.listening);
        sink(&format_args!("{number}:state"), &client.state());
        sink(
            &format_args!("{number}:secs_since_last_cmd"),
            &now.saturating_sub(client.last_active()),
        );
    }
}

fn shards(service: &Service, sink: Sink<'_>) {
    for (n, (counters, hottest)) in service.counters.iter().zip(&service.hottest).enumerate() {
        for (name, number) in [
            ("requests", counters.requests.get()),
            ("delegated", counters.delegated.get()),
            ("curr_items", counters.curr_items.get()),
            ("bytes", counters.bytes.get()),
        ] {
            sink(&format_args!("shard:{n}:{name}"), &number);
        }
        for (rank, share) in hottest.shares().iter().enumerate() {
            let key = share.key.escape_ascii();
            sink(&format_args!("shard:{n}:hot:{rank}:key"), &key);
            sink(
                &format_args!("shard:{n}:hot:{rank}:requests_per_second"),
                &(share.rate as u64),
            );
        }
    }
}
