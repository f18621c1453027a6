//! Delegation from async code: tasks on a Tokio runtime, each of which awaits its answers
//! (`apply_async`).
//!
//! The runtime's workers are the threads that are not trustees, each pinned to its CPU. There are
//! as many tasks as the method [`tokio`](super::tokio) has, which an actor serves in the place of a
//! trustee.

use super::tokio::{TASKS, call, run_all, runtime};
use super::trust::{Variables, bytes_per_var, ended, entrusted, total, trustees};
use super::{Contender, Kind, Method, SetupLimit};
use crate::schema::Trustee;
use crate::workload::operation::{Aligned, Workload};
use crate::workload::point::Point;
use crate::workload::random::Client;
use corelay::Trustees;
use std::ops::Range;
use std::sync::Arc;
use tokio::runtime::Runtime;

/// The method `trust-async`.
pub const fn method<W: Workload>() -> Method<W> {
    Method {
        window: 0,
        bytes_per_var: bytes_per_var::<W>(),
        ..Method::new("trust-async", Kind::Dedicated, |w, p, setup_limit| {
            Ok(Box::new(Tasks::start(w, p, setup_limit)?))
        })
    }
}

struct Tasks<W: Workload> {
    workload: W,
    /// The first client: the trustees come before it.
    first: usize,
    runtime: Runtime,
    // Handles are dropped before their trustees.
    variables: Arc<Variables<W>>,
    /// `None` after the end.
    trustees: Option<Trustees>,
}

impl<W: Workload> Tasks<W> {
    fn start(workload: W, point: &Point, setup_limit: &SetupLimit) -> Result<Self, String> {
        let trustees = trustees(point, false)?;
        Ok(Self {
            workload,
            first: point.servers,
            runtime: runtime(point, point.servers..point.threads)?,
            variables: Arc::new(entrusted(&trustees, workload, point, setup_limit)?),
            trustees: Some(trustees),
        })
    }
}

impl<W: Workload> Contender for Tasks<W> {
    /// One thread of the crew, which sleeps while it waits for the tasks.
    fn clients(&self) -> Range<usize> {
        self.first..self.first + 1
    }

    fn client(&self, client: Client) -> u64 {
        let task = |client| {
            let variables = Arc::clone(&self.variables);
            let ask = move |var: usize, operation: W::Operation| {
                let answer = variables[var].apply_async(Aligned::request(operation));
                async { answer.await.expect("no delegated closure panics") }
            };
            call(self.workload, client, ask)
        };
        run_all(&self.runtime, client.split(TASKS).map(task))
    }

    fn total(&self) -> Result<u64, String> {
        total(self.workload, &self.variables)
    }

    fn end(&mut self) -> Vec<Trustee> {
        self.variables = Arc::default();
        ended(&mut self.trustees)
    }
}
