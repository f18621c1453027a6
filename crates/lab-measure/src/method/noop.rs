//! Generators: operations that do nothing, to measure what the generator of a load can issue.
//!
//! Each runs the loop that its methods run, with all reads of the clock and all counting, around an
//! operation that does nothing. Generators are no rivals: they show whether a method or its
//! generator was saturated.

use crate::method::{Contender, Kind, Method};
use crate::workload::operation::Workload;
use crate::workload::point::Point;
use crate::workload::random::Client;
use corelay_sync::facade::atomic::{AtomicU64, Ordering};
use std::ops::Range;

/// The generator for methods that wait for each answer.
pub const fn waits<W: Workload>() -> Method<W> {
    method("generator", |w, p, _| Ok(Box::new(Noop::new(w, p, false))))
}
/// The generator for methods whose answers come to a callback.
pub const fn calls_back<W: Workload>() -> Method<W> {
    method("generator-then", |w, p, _| {
        Ok(Box::new(Noop::new(w, p, true)))
    })
}

const fn method<W>(name: &'static str, build: super::Build<W>) -> Method<W> {
    // Dedicated, so that the threads which are servers of the method are left out here, too.
    Method::new(name, Kind::Dedicated, build)
}

struct Noop<W> {
    workload: W,
    clients: Range<usize>,
    calls_back: bool,
    done: AtomicU64,
}

impl<W> Noop<W> {
    fn new(workload: W, point: &Point, calls_back: bool) -> Self {
        Self {
            workload,
            clients: point.servers..point.threads,
            calls_back,
            done: AtomicU64::new(0),
        }
    }
}

impl<W: Workload> Contender for Noop<W> {
    fn clients(&self) -> Range<usize> {
        self.clients.clone()
    }

    fn client(&self, client: Client) -> u64 {
        let mut next = client.requests(self.workload);
        let done = if self.calls_back {
            client.issue(
                |choice, ticket| {
                    std::hint::black_box(next(choice));
                    ticket.answered();
                },
                || {},
                || {},
            )
        } else {
            client.drive(|choice| std::hint::black_box(next(choice)).0 as u64)
        };
        // Relaxed: read after the clients have been joined.
        self.done.fetch_add(done, Ordering::Relaxed);
        done
    }

    fn total(&self) -> Result<u64, String> {
        // Relaxed: the clients have been joined.
        Ok(self.done.load(Ordering::Relaxed))
    }
}
