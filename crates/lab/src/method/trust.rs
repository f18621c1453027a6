//! Delegation: a [`Trust`] per variable, spread over dedicated trustees in turn.
//!
//! * `trust`: `apply`, which waits for each answer.
//! * `trust-then`: `apply_then`; answers come to a callback, which counts them and sums
//!   them up. An operation counts when its callback has run.
//! * `trust-post`: `post`; no answer is wanted, so none is measured. An operation counts
//!   when the barrier at the end of the slice has come back.
//!
//! Where operations arrive on a schedule, `trust-then` issues each when it is due and polls
//! between arrivals; the callback takes the time.

use crate::method::{Contender, Kind, Method, Patience};
use crate::schema::Trustee;
use crate::workload::fetch_add::{Counter, OBJECT_BYTES, Point};
use crate::workload::random::Client;
use corelay::{ApplyFuture, ClientGuard, Metrics, Trust, Trustees};
use corelay_sync::Backoff;
use std::cell::Cell;
use std::future::Future;
use std::iter::repeat_with;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

pub(crate) const APPLY: Method = method("trust", 1, |p, patience| {
    Ok(Box::new(Delegated::start(p, patience, How::Apply)?))
});
pub(crate) const THEN: Method = method("trust-then", 0, |p, patience| {
    Ok(Box::new(Delegated::start(p, patience, How::Then)?))
});
pub(crate) const POST: Method = method("trust-post", 0, |p, patience| {
    Ok(Box::new(Delegated::start(p, patience, How::Post)?))
});
/// `apply_then` with one request in flight: a lone asynchronous call. For targets only.
pub(crate) const LONE: Method = method("trust-lone", 1, |p, patience| {
    Ok(Box::new(Delegated::start(p, patience, How::Lone)?))
});
/// `apply_then` to a trustee that neither catches panics nor looks for poison nor counts.
/// For targets only: it says what those three cost.
pub(crate) const BARE: Method = method("trust-bare", 0, |p, patience| {
    Ok(Box::new(Delegated::start(p, patience, How::Bare)?))
});
/// `apply_then` to a trustee that is observed: what reports cost. For targets only.
pub(crate) const METRICS: Method = method("trust-metrics", 0, |p, patience| {
    Ok(Box::new(Delegated::start(p, patience, How::Metrics)?))
});
/// `apply_async` with 64 futures in flight: asked for together, awaited in order. For targets
/// only.
pub(crate) const FUTURES: Method = method("trust-futures", FLYING, |p, patience| {
    Ok(Box::new(Delegated::start(p, patience, How::Futures)?))
});

/// Futures in flight.
const FLYING: usize = 64;

/// An object on its trustee, which is the variable and its bookkeeping as the allocator
/// rounds them (four lines by the process's size at 2^20 variables); and a handle.
const BYTES_PER_VAR: u64 = 4 * OBJECT_BYTES as u64 + size_of::<Trust<Counter>>() as u64;

const fn method(name: &'static str, window: usize, build: super::Build) -> Method {
    Method {
        name,
        kind: Kind::Dedicated,
        window,
        bytes_per_var: BYTES_PER_VAR,
        build,
    }
}

#[derive(Clone, Copy)]
enum How {
    Apply,
    Then,
    Post,
    Lone,
    Bare,
    Metrics,
    Futures,
}

type Variables = Box<[Trust<Counter>]>;

struct Delegated {
    how: How,
    clients: Range<usize>,
    // Handles go before their trustees do.
    variables: Variables,
    /// Until the end.
    trustees: Option<Trustees>,
}

/// Variables given to the trustees before the clock is looked at again.
const AT_ONCE: usize = 1 << 14;

impl Delegated {
    fn start(point: &Point, patience: &Patience, how: How) -> Result<Self, String> {
        // Servers take the first places; a placement pins all threads or none.
        let places = point.placement.iter().take(point.servers);
        let trustees = Trustees::dedicated(point.servers)
            .window(point.window)
            .bare(matches!(how, How::Bare))
            .observe(matches!(how, How::Metrics))
            .pin(places.copied().flatten())
            .start()
            .map_err(|error| format!("--servers: {error}"))?;
        // This thread asks for nothing while samples are taken: the trustees need not look
        // at its channels.
        let client = ClientGuard::new();
        let mut variables = Vec::with_capacity(point.vars_len());
        while variables.len() < point.vars_len() {
            patience.check()?;
            let some = AT_ONCE.min(point.vars_len() - variables.len());
            variables.extend(trustees.entrust_all(repeat_with(Counter::default).take(some)));
        }
        drop(client);
        Ok(Self {
            how,
            clients: point.servers..point.threads,
            variables: variables.into(),
            trustees: Some(trustees),
        })
    }
}

thread_local! {
    /// Answers that callbacks of this thread have got, and their sum.
    static ANSWERED: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// What a callback does with its answer.
#[inline(always)]
fn answered(old: u64) {
    let (count, sum) = ANSWERED.get();
    ANSWERED.set((count + 1, sum.wrapping_add(old)));
}

impl Contender for Delegated {
    fn clients(&self) -> Range<usize> {
        self.clients.clone()
    }

    fn client(&self, client: Client) -> u64 {
        let variables = &*self.variables;
        match self.how {
            How::Apply => client.drive(|var| variables[var].apply(Counter::add_one)),
            How::Then | How::Bare | How::Metrics if client.has_schedule() => client.issue(
                |var, ticket| {
                    let then = move |old| {
                        std::hint::black_box::<u64>(old);
                        ticket.answered();
                    };
                    variables[var].apply_then(Counter::add_one, then);
                },
                corelay::poll,
                settle,
            ),
            How::Then | How::Bare | How::Metrics => {
                ANSWERED.set((0, 0));
                let asked = client.drive(|var| {
                    variables[var].apply_then(Counter::add_one, answered);
                    0
                });
                settle();
                let (count, sum) = ANSWERED.get();
                std::hint::black_box(sum);
                assert_eq!(count, asked, "callbacks run and operations asked for");
                count
            }
            How::Lone => {
                ANSWERED.set((0, 0));
                client.drive(|var| {
                    let before = ANSWERED.get().0;
                    variables[var].apply_then(Counter::add_one, answered);
                    while ANSWERED.get().0 == before {
                        corelay::poll();
                    }
                    0
                })
            }
            How::Futures => {
                let mut flying = Vec::with_capacity(FLYING);
                let asked = client.drive(|var| {
                    flying.push(variables[var].apply_async(Counter::add_one));
                    if flying.len() == FLYING {
                        flying.drain(..).map(block_on).fold(0, u64::wrapping_add)
                    } else {
                        0
                    }
                });
                flying.into_iter().for_each(|future| _ = block_on(future));
                asked
            }
            How::Post => {
                let asked = client.drive(|var| {
                    variables[var].post(|counter| _ = counter.add_one());
                    0
                });
                settle();
                asked
            }
        }
    }

    fn total(&self) -> u64 {
        // Not one `apply` after the other: a million round trips take seconds.
        ANSWERED.set((0, 0));
        for variable in &self.variables {
            variable.apply_then(|counter| counter.count, answered);
        }
        settle();
        ANSWERED.get().1
    }

    fn end(&mut self) -> Vec<Trustee> {
        self.variables = Box::default();
        let counted = self
            .trustees
            .take()
            .map_or_else(Vec::new, Trustees::shutdown);
        counted.iter().map(Trustee::from).collect()
    }
}

impl From<&Metrics> for Trustee {
    fn from(counted: &Metrics) -> Self {
        Self {
            requests: counted.requests,
            batches: counted.batches,
            passes: counted.passes,
            passes_with_work: counted.passes_with_work,
            sleeps: counted.sleeps,
            panics: counted.panics,
        }
    }
}

/// The smallest executor: it looks again and again, and nobody needs to wake it.
#[inline(always)]
fn block_on(mut future: ApplyFuture<u64>) -> u64 {
    let mut context = Context::from_waker(Waker::noop());
    let mut backoff = Backoff::new();
    loop {
        match Pin::new(&mut future).poll(&mut context) {
            Poll::Ready(result) => return result.expect("no delegated closure panics"),
            Poll::Pending => backoff.wait(),
        }
    }
}

/// All that this thread asked for is done, or the run is wrong.
fn settle() {
    corelay::barrier().expect("no delegated closure panics");
}
