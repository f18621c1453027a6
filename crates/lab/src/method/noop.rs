//! Operations that do nothing: what the generator of a load can issue by itself.
//!
//! Each runs the loop that its methods run, with all looks at the clock and all counting,
//! around nothing. They are no rivals: they tell a saturated method from a saturated
//! generator.

use crate::method::{Contender, Kind, Method};
use crate::workload::fetch_add::Point;
use crate::workload::random::Client;
use corelay_sync::facade::atomic::{AtomicU64, Ordering};
use std::ops::Range;

/// For methods that wait for each answer.
pub(super) const WAITS: Method = method("generator", |p, _| Ok(Box::new(Noop::new(p, false))));
/// For methods whose answers come to a callback.
pub(super) const CALLS_BACK: Method =
    method("generator-then", |p, _| Ok(Box::new(Noop::new(p, true))));

const fn method(name: &'static str, build: super::Build) -> Method {
    Method {
        name,
        // The threads that are servers or actors elsewhere are left out.
        kind: Kind::Dedicated,
        window: 1,
        bytes_per_var: 0,
        build,
    }
}

struct Noop {
    clients: Range<usize>,
    calls_back: bool,
    done: AtomicU64,
}

impl Noop {
    fn new(point: &Point, calls_back: bool) -> Self {
        Self {
            clients: point.servers..point.threads,
            calls_back,
            done: AtomicU64::new(0),
        }
    }
}

impl Contender for Noop {
    fn clients(&self) -> Range<usize> {
        self.clients.clone()
    }

    fn client(&self, client: Client) -> u64 {
        let done = if self.calls_back {
            client.issue(
                |var, ticket| {
                    std::hint::black_box(var);
                    ticket.answered();
                },
                || {},
                || {},
            )
        } else {
            client.drive(|var| std::hint::black_box(var) as u64)
        };
        // Relaxed: it is read when the clients have been joined.
        self.done.fetch_add(done, Ordering::Relaxed);
        done
    }

    fn total(&self) -> u64 {
        // Relaxed: the clients have been joined.
        self.done.load(Ordering::Relaxed)
    }
}
