//! Flat delegation: every thread is client and trustee, by each policy.
//!
//! The variables are dealt out to the members in turn; `bench fetch-add` rounds their number up to
//! a multiple of the threads (D18). Members call `apply_then`, as in `trust-then`, for their own
//! variables, too.
//!
//! A [`Pattern`] of requests says which variables a member uses and how steadily. All but the
//! uniform one are for targets only.
//!
//! The threads of the crew only hand their clients over and sleep: the team's members, on the same
//! CPUs, do the work.

use crate::method::pattern::{Pattern, pause};
use crate::method::trust::{
    Variables, asynchronous, asynchronous_with, bytes_per_var, entrusted, total,
};
use crate::method::{Contender, Kind, Method, SetupLimit};
use crate::schema::{ClientCounts, Trustee};
use crate::workload::operation::{Aligned, Answer, Workload};
use crate::workload::point::Point;
use crate::workload::random::Client;
use corelay::report::TrusteeReport;
use corelay::{Policy, Team, Trustees};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Requests between two serving passes of `flat-bound`.
pub const BOUND: u32 = 64;

/// The method `flat-queue`.
pub const fn queue<W: Workload>() -> Method<W> {
    method("flat-queue", |w, p, setup_limit| {
        start(w, p, setup_limit, Policy::Queue, Pattern::Uniform)
    })
}
/// The method `flat-blocked`.
pub const fn blocked<W: Workload>() -> Method<W> {
    method("flat-blocked", |w, p, setup_limit| {
        start(w, p, setup_limit, Policy::Blocked, Pattern::Uniform)
    })
}
/// The method `flat-fast-path`.
pub(crate) const fn fast_path<W: Workload>() -> Method<W> {
    method("flat-fast-path", |w, p, setup_limit| {
        start(w, p, setup_limit, Policy::FastPath, Pattern::Uniform)
    })
}
/// The method `flat-bound`.
pub const fn bound<W: Workload>() -> Method<W> {
    method("flat-bound", |w, p, setup_limit| {
        start(w, p, setup_limit, Policy::Bound(BOUND), Pattern::Uniform)
    })
}
/// The method `flat-doorbell`.
pub const fn doorbell<W: Workload>() -> Method<W> {
    method("flat-doorbell", |w, p, setup_limit| {
        start(w, p, setup_limit, Policy::Doorbell, Pattern::Uniform)
    })
}
/// The method `flat-adaptive`.
pub const fn adaptive<W: Workload>() -> Method<W> {
    method("flat-adaptive", |w, p, setup_limit| {
        start(w, p, setup_limit, Policy::Adaptive, Pattern::Uniform)
    })
}

/// The method `flat-apply`: each member waits for each answer, and serves meanwhile. For checks only.
pub(crate) const fn waiting<W: Workload>() -> Method<W> {
    let method = method("flat-apply", |w, p, setup_limit| {
        let what = (Policy::Adaptive, Pattern::Uniform);
        let flat = Flat::start(w, p, setup_limit, what, false)?;
        Ok(Box::new(Flat {
            waits: true,
            ..flat
        }))
    });
    Method {
        window: 1,
        ..method
    }
}

/// A method called `name` that runs in a flat team.
pub const fn method<W: Workload>(name: &'static str, build: super::Build<W>) -> Method<W> {
    Method {
        window: 0,
        bytes_per_var: bytes_per_var::<W>(),
        ..Method::new(name, Kind::Flat, build)
    }
}

/// Sets up a flat team with a policy and a pattern of requests.
///
/// # Errors
/// A sentence that says what could not be had.
pub fn start<W: Workload>(
    workload: W,
    point: &Point,
    setup_limit: &SetupLimit,
    policy: Policy,
    pattern: Pattern,
) -> Result<Box<dyn Contender>, String> {
    let flat = Flat::start(workload, point, setup_limit, (policy, pattern), false)?;
    Ok(Box::new(flat))
}

/// Sets up an observed flat team: it counts how long requests take and how often a look finds an
/// answer (D12). For figures only; other teams do not pay for the counting.
pub fn observed<W: Workload>(
    workload: W,
    point: &Point,
    setup_limit: &SetupLimit,
    policy: Policy,
) -> Result<Box<dyn Contender>, String> {
    let what = (policy, Pattern::Uniform);
    let flat = Flat::start(workload, point, setup_limit, what, true)?;
    Ok(Box::new(flat))
}

struct Flat<W: Workload> {
    workload: W,
    pattern: Pattern,
    /// Whether a member waits for each answer.
    waits: bool,
    // Handles are dropped before their trustees.
    variables: Variables<W>,
    /// For each member the variables that it uses; empty if all members use all variables.
    chosen: Vec<Variables<W>>,
    /// `None` after the end.
    team: Option<Team>,
    exchange: Mutex<Exchange>,
    is_over: Condvar,
}

/// The place where the crew's threads hand their clients over and get their counts back.
#[derive(Default)]
struct Exchange {
    clients: Vec<Option<Client>>,
    arrived: usize,
    /// Slices that are over.
    slices: u64,
    counts: Vec<u64>,
    /// Whether a client has panicked in the last slice.
    panicked: bool,
}

impl<W: Workload> Flat<W> {
    fn start(
        workload: W,
        point: &Point,
        setup_limit: &SetupLimit,
        (policy, pattern): (Policy, Pattern),
        observe: bool,
    ) -> Result<Self, String> {
        // A placement pins all threads or none.
        let places = point.placement.iter().take(point.threads);
        let team = Trustees::flat(point.threads)
            .policy(policy)
            .window(point.window)
            .observe(observe)
            .pin(places.copied().flatten())
            .start()
            .map_err(|error| format!("--threads: {error}"))?;
        let variables = entrusted(&team, workload, point, setup_limit)?;
        let of = |member| {
            let vars = pattern.variables(member, team.len(), variables.len())?;
            Some(vars.iter().map(|&var| variables[var].clone()).collect())
        };
        let chosen = (0..team.len()).map_while(of).collect();
        Ok(Self {
            workload,
            pattern,
            waits: false,
            variables,
            chosen,
            team: Some(team),
            exchange: Mutex::default(),
            is_over: Condvar::new(),
        })
    }

    fn members(&self) -> usize {
        self.team.as_ref().map_or(0, |team| team.len())
    }

    fn exchange(&self) -> MutexGuard<'_, Exchange> {
        // No thread panics while it holds the lock.
        self.exchange.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the client of a member by the pattern; returns the number of operations.
    fn ask(&self, member: usize, client: Client) -> u64 {
        let (workload, all) = (self.workload, &self.variables);
        if self.waits {
            return client.call_each(workload, |var, operation| {
                all[var].apply(Aligned::request(operation)).number()
            });
        }
        match self.chosen.get(member) {
            Some(chosen) => asynchronous(workload, chosen, client.among(chosen.len())),
            None if self.pattern.has_pauses() => asynchronous_with(workload, all, client, pause()),
            None => asynchronous(workload, all, client),
        }
    }

    /// Runs a slice on the team. Called by the last thread of the crew to arrive; `None` if a
    /// client panicked.
    fn lead(&self, clients: Vec<Option<Client>>) -> Option<Vec<u64>> {
        let team = self
            .team
            .as_ref()
            .expect("the contender is not used after its end");
        let clients: Vec<_> = clients.into_iter().map(Mutex::new).collect();
        let run = || {
            team.run(|me| {
                let client = clients[me.number()].lock().ok().and_then(|mut c| c.take());
                let client = client.expect("each member has a client");
                self.ask(me.number(), client)
            })
        };
        catch_unwind(AssertUnwindSafe(run)).ok()
    }
}

impl<W: Workload> Contender for Flat<W> {
    fn clients(&self) -> Range<usize> {
        0..self.members()
    }

    fn client(&self, client: Client) -> u64 {
        let index = client.index;
        let mut exchange = self.exchange();
        exchange.clients.resize_with(self.members(), || None);
        exchange.clients[index] = Some(client);
        exchange.arrived += 1;
        if exchange.arrived < self.members() {
            let slice = exchange.slices;
            while exchange.slices == slice {
                let waited = self.is_over.wait(exchange);
                exchange = waited.unwrap_or_else(PoisonError::into_inner);
            }
        } else {
            let clients = std::mem::take(&mut exchange.clients);
            drop(exchange);
            let counts = self.lead(clients);
            exchange = self.exchange();
            exchange.arrived = 0;
            exchange.slices += 1;
            exchange.panicked = counts.is_none();
            exchange.counts = counts.unwrap_or_default();
            self.is_over.notify_all();
        }
        assert!(!exchange.panicked, "a member of the team has panicked");
        exchange.counts[index]
    }

    fn total(&self) -> Result<u64, String> {
        total(self.workload, &self.variables)
    }

    fn end(&mut self) -> Vec<Trustee> {
        self.variables = Box::default();
        self.chosen.clear();
        let Some(team) = self.team.take() else {
            return Vec::new();
        };
        let report = team.report();
        let asked = report.trustees.iter().map(asked);
        let counted = team.shutdown();
        let trustees = counted.iter().zip(asked).map(|(counted, asked)| Trustee {
            asked,
            ..Trustee::from(counted)
        });
        trustees.collect()
    }
}

/// The counts of a member's clients; `None` if the team is not observed.
fn asked(member: &TrusteeReport) -> Option<ClientCounts> {
    let gone = member.observed.as_ref()?.gone;
    let there = member.clients.iter().filter_map(|client| client.observed);
    let mut sum = ClientCounts::default();
    for counted in there.chain([gone]) {
        sum.polls += counted.polls;
        sum.ready += counted.ready;
        sum.pops += counted.pops;
        sum.failed_pops += counted.failed_pops;
        sum.failed_pushes += counted.failed_pushes;
        sum.timed += counted.latencies;
        sum.latency_ns += u64::try_from(counted.latency_total.as_nanos()).unwrap_or(u64::MAX);
    }
    Some(sum)
}
