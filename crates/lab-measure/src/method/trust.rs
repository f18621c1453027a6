//! Delegation: a [`Trust`] per variable, dealt out to dedicated trustees in turn.
//!
//! * `trust`: `apply`, which waits for each answer.
//! * `trust-then`: `apply_then`; answers come to a callback, which counts them and sums them up.
//!   An operation counts when its callback has run.
//! * `trust-post`: `post`, without answers. An operation counts when the barrier at the end of the
//!   slice has returned.
//!
//! On a schedule, `trust-then` issues each operation when it is due and polls between arrivals; the
//! callback reads the clock.

use crate::method::{Contender, Kind, Method, SetupLimit};
use crate::schema::Trustee;
use crate::workload::operation::{Aligned, Answer, AnswerOf, LINE_BYTES, Operation, Workload};
use crate::workload::point::Point;
use crate::workload::random::Client;
use crate::workload::worker::{Ask, Worker, call_each, issue_each, keep};
use corelay::{ApplyFuture, ClientGuard, Metrics, Trust, Trustees};
use corelay_sync::Backoff;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::iter::repeat_with;
use std::ops::Range;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// The method `trust`.
pub const fn apply<W: Workload>() -> Method<W> {
    method("trust", 1, |w, p, setup_limit| {
        Ok(Box::new(Delegated::start(w, p, setup_limit, Call::Apply)?))
    })
}
/// The method `trust-then`.
pub const fn then<W: Workload>() -> Method<W> {
    method("trust-then", 0, |w, p, setup_limit| {
        Ok(Box::new(Delegated::start(w, p, setup_limit, Call::Then)?))
    })
}
/// The method `trust-post`.
pub const fn post<W: Workload>() -> Method<W> {
    method("trust-post", 0, |w, p, setup_limit| {
        Ok(Box::new(Delegated::start(w, p, setup_limit, Call::Post)?))
    })
}
/// `apply_then` with a single request in flight. For targets only.
pub const SINGLE_REQUEST: Method = method("trust-lone", 1, |w, p, setup_limit| {
    Ok(Box::new(Delegated::start(
        w,
        p,
        setup_limit,
        Call::SingleRequest,
    )?))
});
/// `apply_then` to an observed trustee, to measure the cost of reports. For targets only.
pub const METRICS: Method = method("trust-metrics", 0, |w, p, setup_limit| {
    Ok(Box::new(Delegated::start(
        w,
        p,
        setup_limit,
        Call::Observed,
    )?))
});
/// `apply_then` with 64 requests in flight. For targets only.
pub const THEN_64: Method = method("trust-then-64", 64, |w, p, setup_limit| {
    Ok(Box::new(Delegated::start(w, p, setup_limit, Call::Then)?))
});
/// `apply_async` with 64 futures in flight: before another call the oldest future is awaited. For
/// targets only.
pub const FUTURES_64: Method = method("trust-futures-64", 0, |w, p, setup_limit| {
    let call = Call::Futures { in_flight: 64 };
    Ok(Box::new(Delegated::start(w, p, setup_limit, call)?))
});
/// `apply_async` with 256 futures in flight, as [`FUTURES_64`]. For targets only.
pub const FUTURES_256: Method = method("trust-futures-256", 0, |w, p, setup_limit| {
    let call = Call::Futures { in_flight: 256 };
    Ok(Box::new(Delegated::start(w, p, setup_limit, call)?))
});

const fn method<W: Workload>(
    name: &'static str,
    window: usize,
    build: super::Build<W>,
) -> Method<W> {
    Method {
        window,
        bytes_per_var: bytes_per_var::<W>(),
        ..Method::new(name, Kind::Dedicated, build)
    }
}

/// The call that clients make.
#[derive(Clone, Copy)]
enum Call {
    Apply,
    Then,
    Post,
    SingleRequest,
    Observed,
    Futures { in_flight: usize },
}

struct Delegated<W: Workload> {
    workload: W,
    call: Call,
    clients: Range<usize>,
    // Handles are dropped before their trustees.
    variables: Variables<W>,
    /// `None` after the end.
    trustees: Option<Trustees>,
}

impl<W: Workload> Delegated<W> {
    fn start(
        workload: W,
        point: &Point,
        setup_limit: &SetupLimit,
        call: Call,
    ) -> Result<Self, String> {
        let trustees = trustees(point, matches!(call, Call::Observed))?;
        Ok(Self {
            workload,
            call,
            clients: point.servers..point.threads,
            variables: entrusted(&trustees, workload, point, setup_limit)?,
            trustees: Some(trustees),
        })
    }
}

/// Starts the trustees of a point.
pub(super) fn trustees(point: &Point, observe: bool) -> Result<Trustees, String> {
    // Servers take the first CPUs; a placement pins all threads or none.
    let places = point.placement.iter().take(point.servers);
    let started = Trustees::dedicated(point.servers)
        .window(point.window)
        .observe(observe)
        .pin(places.copied().flatten())
        .start();
    started.map_err(|error| format!("--servers: {error}"))
}

/// Ends a contender's trustees; returns the counts of each.
pub(super) fn ended(trustees: &mut Option<Trustees>) -> Vec<Trustee> {
    let counted = trustees.take().map_or_else(Vec::new, Trustees::shutdown);
    counted.iter().map(Trustee::from).collect()
}

thread_local! {
    /// The number of answers that callbacks of this thread have received, and their sum.
    static ANSWERED: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// Runs `ask`, which returns the number of operations it issued, and returns the number of
/// callbacks that have run; they must be equal.
pub(super) fn counting(ask: impl FnOnce() -> u64) -> u64 {
    ANSWERED.set((0, 0));
    let asked = ask();
    let (count, sum) = ANSWERED.get();
    std::hint::black_box(sum);
    assert_eq!(count, asked, "callbacks run and operations asked for");
    count
}

/// The callback of the closed loop: counts its answer and adds it to the sum.
#[inline(always)]
pub(super) fn answered(answer: impl Answer) {
    let (count, sum) = ANSWERED.get();
    ANSWERED.set((count + 1, sum.wrapping_add(answer.number())));
}

impl<W: Workload> Contender for Delegated<W> {
    fn clients(&self) -> Range<usize> {
        self.clients.clone()
    }

    fn client(&self, client: Client) -> u64 {
        let variables = &*self.variables;
        let mut next = client.requests(self.workload);
        match self.call {
            Call::Apply => client.call_each(self.workload, |var, operation| {
                variables[var].apply(Aligned::request(operation)).number()
            }),
            Call::Then | Call::Observed => asynchronous(self.workload, variables, client),
            Call::SingleRequest => {
                ANSWERED.set((0, 0));
                client.drive(|choice| {
                    let (var, operation) = next(choice);
                    let before = ANSWERED.get().0;
                    variables[var].apply_then(Aligned::request(operation), answered);
                    while ANSWERED.get().0 == before {
                        corelay::poll();
                    }
                    0
                })
            }
            Call::Futures { in_flight } => {
                let mut futures: Box<[_]> = repeat_with(|| None).take(in_flight).collect();
                let mut oldest = 0;
                let asked = client.drive(|choice| {
                    let (var, operation) = next(choice);
                    let asked = Some(variables[var].apply_async(Aligned::request(operation)));
                    let answered = std::mem::replace(&mut futures[oldest], asked);
                    oldest += 1;
                    if oldest == futures.len() {
                        oldest = 0;
                    }
                    answered.map_or(0, |future| block_on(future).number())
                });
                futures
                    .into_iter()
                    .flatten()
                    .for_each(|future| _ = block_on(future));
                asked
            }
            Call::Post => {
                if let Some(mut worker) = self.workload.worker(&client) {
                    return post_each(&mut *worker, variables);
                }
                let asked = client.drive(|choice| {
                    let (var, operation) = next(choice);
                    let request = Aligned::request(operation);
                    variables[var].post(move |line| _ = request(line));
                    0
                });
                settle();
                asked
            }
        }
    }

    fn total(&self) -> Result<u64, String> {
        total(self.workload, &self.variables)
    }

    fn end(&mut self) -> Vec<Trustee> {
        self.variables = Box::default();
        ended(&mut self.trustees)
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
            rings: counted.rings,
            panics: counted.panics,
            asked: None,
        }
    }
}

/// Handles of all variables.
pub(super) type Variables<W> = Box<[Trust<Aligned<<W as Workload>::Object>>]>;

/// Bytes per variable: the object on its trustee and a handle. The object takes the variable and
/// its bookkeeping, as the allocator rounds them (four lines for fetch-add, measured by the
/// process's size at 2^20 variables).
pub(super) const fn bytes_per_var<W: Workload>() -> u64 {
    let object = size_of::<Aligned<W::Object>>() + 3 * LINE_BYTES;
    (object + size_of::<Trust<Aligned<W::Object>>>()) as u64
}

/// Variables entrusted between two checks of the set-up's limit.
const ENTRUSTED_PER_CHECK: usize = 1 << 14;

/// Entrusts the point's variables to the trustees in turn.
pub(super) fn entrusted<W: Workload>(
    trustees: &Trustees,
    workload: W,
    point: &Point,
    setup_limit: &SetupLimit,
) -> Result<Variables<W>, String> {
    // The guard closes this thread's channels when it is dropped: the thread makes no requests
    // while samples are taken, so the trustees need not look at its channels.
    let _client = ClientGuard::new();
    let mut variables = Vec::with_capacity(point.vars_len());
    while variables.len() < point.vars_len() {
        setup_limit.check()?;
        let some = ENTRUSTED_PER_CHECK.min(point.vars_len() - variables.len());
        let objects = repeat_with(|| Aligned(workload.object()));
        variables.extend(trustees.entrust_all(objects.take(some)));
    }
    Ok(variables.into())
}

/// Issues operations by `apply_then`; each counts when its callback has run. On a schedule each is
/// issued when it is due, and the client polls for answers between arrivals.
#[inline]
pub(super) fn asynchronous<W: Workload>(
    workload: W,
    variables: &[Trust<Aligned<W::Object>>],
    client: Client,
) -> u64 {
    asynchronous_with(workload, variables, client, || {})
}

/// Does the same as [`asynchronous`], and in the closed loop calls `after` after each request.
pub(super) fn asynchronous_with<W: Workload>(
    workload: W,
    variables: &[Trust<Aligned<W::Object>>],
    client: Client,
    mut after: impl FnMut(),
) -> u64 {
    if let Some(mut worker) = workload.worker(&client) {
        return issue_each(&mut *worker, |ask| match ask {
            Some(Ask { var, operation, .. }) => {
                let then = |answer: AnswerOf<W>| keep(answer.number());
                variables[var].apply_then(Aligned::request(operation), then);
            }
            None => corelay::poll(),
        });
    }
    let mut next = client.requests(workload);
    if client.has_schedule() {
        return client.issue(
            |choice, ticket| {
                let (var, operation) = next(choice);
                let then = move |answer: AnswerOf<W>| {
                    std::hint::black_box(answer.number());
                    ticket.answered();
                };
                variables[var].apply_then(Aligned::request(operation), then);
            },
            corelay::poll,
            settle,
        );
    }
    counting(|| {
        let asked = client.drive(|choice| {
            let (var, operation) = next(choice);
            variables[var].apply_then(Aligned::request(operation), answered);
            after();
            0
        });
        settle();
        asked
    })
}

/// Runs a worker that posts each request of which it needs no answer, and calls for the others.
fn post_each<T: Send + 'static, O: Operation<T>>(
    worker: &mut dyn Worker<O>,
    variables: &[Trust<Aligned<T>>],
) -> u64 {
    let asked = call_each(worker, |ask| {
        let (variable, request) = (&variables[ask.var], Aligned::request(ask.operation));
        if ask.needs_answer {
            return variable.apply(request).number();
        }
        variable.post(move |line| _ = request(line));
        0
    });
    settle();
    asked
}

/// The sum of the workload's checks over all variables, for [`Contender::total`].
pub(super) fn total<W: Workload>(
    workload: W,
    variables: &[Trust<Aligned<W::Object>>],
) -> Result<u64, String> {
    let total = Rc::new(RefCell::new(Ok(0)));
    // Not one `apply` after the other: a million round trips would take seconds.
    for variable in variables {
        let total = Rc::clone(&total);
        let check = move |line: &mut Aligned<W::Object>| workload.check(&line.0);
        variable.apply_then(check, move |seen| {
            let mut total = total.borrow_mut();
            *total = total.clone().and_then(|sum| seen.map(|seen| sum + seen));
        });
    }
    settle();
    total.replace(Ok(0))
}

/// Runs a future to its end. This smallest of executors polls in a loop and needs no waker.
#[inline(always)]
fn block_on<R>(mut future: ApplyFuture<R>) -> R {
    let mut context = Context::from_waker(Waker::noop());
    let mut backoff = None;
    loop {
        match Pin::new(&mut future).poll(&mut context) {
            Poll::Ready(result) => return result.expect("no delegated closure panics"),
            Poll::Pending => backoff.get_or_insert_with(Backoff::new).wait(),
        }
    }
}

/// Waits until all requests of this thread are done; panics if one of them panicked.
fn settle() {
    corelay::barrier().expect("no delegated closure panics");
}
