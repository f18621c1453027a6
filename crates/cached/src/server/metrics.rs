//! Statistics for Prometheus.

use super::service::Service;
use crate::statistics::Sums;
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// The most bytes of a request, and the time that it may take.
const LONGEST: usize = 8 << 10;
const PATIENCE: Duration = Duration::from_secs(1);

/// Starts a thread that answers `GET /metrics` as long as there is a server.
pub(crate) fn start(listener: TcpListener, service: &Arc<Service>) -> io::Result<()> {
    let service = Arc::downgrade(service);
    let serve = move || {
        for stream in listener.incoming() {
            if service.strong_count() == 0 {
                return;
            }
            match stream {
                // Clients that fail are their own trouble.
                Ok(stream) => drop(answer(stream, &service)),
                // No file descriptor, perhaps.
                Err(_) => std::thread::sleep(Duration::from_millis(100)),
            }
        }
    };
    std::thread::Builder::new()
        .name("cached-metrics".to_owned())
        .spawn(serve)?;
    Ok(())
}

/// Answers one request, and closes the connection.
fn answer(mut stream: TcpStream, service: &Weak<Service>) -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut request = Vec::new();
    let mut part = [0; 1024];
    while !request.windows(4).any(|four| four == b"\r\n\r\n") {
        let left = deadline.saturating_duration_since(Instant::now());
        stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        let n = stream.read(&mut part)?;
        request.extend_from_slice(&part[..n]);
        if n == 0 || request.len() > LONGEST || left.is_zero() {
            return Ok(());
        }
    }
    let mut words = request.split(|&byte| byte == b' ');
    let (method, path) = (words.next(), words.next());
    let (status, text) = match (method, path, service.upgrade()) {
        (Some(b"GET"), Some(b"/metrics"), Some(service)) => ("200 OK", page(&service)),
        (Some(b"GET"), _, _) => ("404 Not Found", "try /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", "try GET /metrics\n".to_owned()),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    )
}

/// The page in Prometheus's text format. Counters count from the server's start: no reset touches them.
fn page(service: &Service) -> String {
    let sums = Sums::of(&service.counters);
    let mut clock = service.clock.clone();
    clock.tick();
    // Relaxed: a count by itself.
    let connections = service.connections.load(Ordering::Relaxed) as u64;
    let mut page = Page(String::new());
    page.one("up", "gauge", "Whether the server runs.", 1);
    page.one(
        "uptime_seconds",
        "counter",
        "Seconds since the start.",
        clock.uptime().into(),
    );
    page.one(
        "current_connections",
        "gauge",
        "Open connections.",
        connections,
    );
    page.one(
        "max_connections",
        "gauge",
        "The most connections at a time.",
        service.settings.connections as u64,
    );
    page.one(
        "limit_bytes",
        "gauge",
        "The memory that items may take.",
        service.settings.memory as u64,
    );
    page.head(
        "commands_total",
        "counter",
        "Operations on keys by outcome.",
    );
    for (command, status, n) in [
        ("get", "hit", sums.get_hits),
        ("get", "miss", sums.get_misses),
        ("set", "hit", sums.cmd_set),
        ("touch", "hit", sums.touch_hits),
        ("touch", "miss", sums.touch_misses),
        ("delete", "hit", sums.delete_hits),
        ("delete", "miss", sums.delete_misses),
        ("incr", "hit", sums.incr_hits),
        ("incr", "miss", sums.incr_misses),
        ("decr", "hit", sums.decr_hits),
        ("decr", "miss", sums.decr_misses),
        ("cas", "hit", sums.cas_hits),
        ("cas", "miss", sums.cas_misses),
        ("cas", "badval", sums.cas_badval),
        ("flush", "hit", sums.cmd_flush),
    ] {
        let labels = format!("command=\"{command}\",status=\"{status}\"");
        page.line("commands_total", &labels, n);
    }
    for (name, help, n) in [
        ("read_bytes_total", "Bytes from clients.", sums.bytes_read),
        (
            "written_bytes_total",
            "Bytes to clients.",
            sums.bytes_written,
        ),
        (
            "connections_total",
            "Connections that were let in.",
            sums.total_connections,
        ),
        (
            "connections_rejected_total",
            "Connections that were not.",
            sums.rejected_connections,
        ),
        (
            "connections_idle_total",
            "Connections that were closed because they were idle.",
            sums.idle_kicks,
        ),
        ("items_total", "Items that were written.", sums.total_items),
        (
            "items_evicted_total",
            "Items that were evicted to make room.",
            sums.evictions,
        ),
        (
            "items_evicted_unfetched_total",
            "Those of them that nobody had asked for.",
            sums.evicted_unfetched,
        ),
        (
            "items_reclaimed_total",
            "Items whose memory was taken back because they had expired.",
            sums.reclaimed,
        ),
        (
            "items_expired_unfetched_total",
            "Those of them that nobody had asked for.",
            sums.expired_unfetched,
        ),
        (
            "items_moved_total",
            "Items that were moved to free the rest of their segment.",
            sums.moved,
        ),
        (
            "too_large_total",
            "Items that were refused because of their size.",
            sums.store_too_large,
        ),
        (
            "no_memory_total",
            "Items that were refused for lack of memory.",
            sums.store_no_memory,
        ),
        ("logins_total", "Attempts to log in.", sums.auth_cmds),
        (
            "logins_failed_total",
            "Attempts that failed.",
            sums.auth_errors,
        ),
        (
            "slow_total",
            "Reads whose requests took longer than the limit.",
            sums.slow_requests,
        ),
    ] {
        page.one(name, "counter", help, n);
    }
    type Figure = (
        &'static str,
        &'static str,
        &'static str,
        fn(&crate::statistics::Counters) -> u64,
    );
    let figures: [Figure; 6] = [
        (
            "shard_requests_total",
            "counter",
            "Requests that a shard has run.",
            |c| c.requests.get(),
        ),
        (
            "shard_delegated_total",
            "counter",
            "Those of them that came from another thread.",
            |c| c.delegated.get(),
        ),
        (
            "shard_batches_total",
            "counter",
            "The batches in which those came.",
            |c| c.batches.get(),
        ),
        (
            "shard_items",
            "gauge",
            "Items of a shard. Some may have expired.",
            |c| c.curr_items.get(),
        ),
        (
            "shard_bytes",
            "gauge",
            "Memory of the items and of all that belongs to them.",
            |c| c.bytes.get(),
        ),
        (
            "shard_index_bytes",
            "gauge",
            "The index's part of it.",
            |c| c.hash_bytes.get(),
        ),
    ];
    for (name, kind, help, figure) in figures {
        page.head(name, kind, help);
        for (shard, counters) in service.counters.iter().enumerate() {
            page.line(name, &format!("shard=\"{shard}\""), figure(counters));
        }
    }
    page.head(
        "hot_key_requests_per_second",
        "gauge",
        "Requests of the hottest keys of each shard, by samples.",
    );
    for (shard, hottest) in service.hottest.iter().enumerate() {
        for share in hottest.shares() {
            let key = share.key.escape_ascii().to_string();
            let key = key.replace('\\', "\\\\").replace('"', "\\\"");
            let labels = format!("shard=\"{shard}\",key=\"{key}\"");
            page.line("hot_key_requests_per_second", &labels, share.rate as u64);
        }
    }
    page.0
}

/// A page that is being written. Writing to a string cannot fail.
struct Page(String);

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(
            self.0,
            "# HELP cached_{name} {help}\n# TYPE cached_{name} {kind}"
        );
    }

    fn line(&mut self, name: &str, labels: &str, n: u64) {
        let _ = writeln!(self.0, "cached_{name}{{{labels}}} {n}");
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, n: u64) {
        self.head(name, kind, help);
        let _ = writeln!(self.0, "cached_{name} {n}");
    }
}
