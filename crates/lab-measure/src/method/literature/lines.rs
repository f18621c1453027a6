//! The thesis's request lines.
//!
//! On the command line `async-lines` has the thesis's 16 lines per pair and a pending queue of 32;
//! `async-lines:N` has N lines and a queue of 2N, `async-lines:NxL` a queue of L, and
//! `async-lines:N-direct` none.
//!
//! On a schedule, each operation is issued when it is due, and the client looks at lines and queues
//! between arrivals. The callback reads the clock.

use super::servers::Servers;
use super::total;
use crate::measure::memory::available_bytes;
use crate::method::contender::Parameters;
use crate::method::trust::{answered, counting};
use crate::method::{Contender, Kind, Method};
use crate::schema::Trustee;
use crate::workload::latency::Ticket;
use crate::workload::operation::{Answer, Operation, Workload};
use crate::workload::point::Point;
use crate::workload::random::Client;
use crate::workload::root::FetchRoot;
use crate::workload::worker::{Ask, issue_each, keep};
use corelay_literature::{Asked, AsyncLines, PairLines, Shape, ShapeError};
use std::cell::RefCell;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

const NAME: &str = "async-lines";

/// The method `async-lines`.
pub const fn async_lines<W: Workload>() -> Method<W> {
    Method {
        window: 48,
        bytes_per_var: super::bytes_per_var::<W>(),
        parameters: Some(Parameters {
            forms: &[
                (
                    "async-lines:N",
                    "request lines per client and server; 16 by default",
                ),
                ("async-lines:NxL", "and a pending queue of L; 2N by default"),
                ("async-lines:N-direct", "without a pending queue"),
            ],
            read,
        }),
        // The callbacks differ: on a schedule each knows when its operation was due.
        ..Method::new(NAME, Kind::Dedicated, |w, p, _| match p.load {
            None => Lines::start(w, p, |workload, client, asking| {
                closed_loop(workload, client, asking)
            }),
            Some(_) => Lines::start(w, p, |workload, client, asking| {
                on_schedule(workload, client, asking, redeem)
            }),
        })
    }
}

/// The method with lines and queues of the given shape.
pub const fn shaped<W: Workload>(name: &'static str, shape: Shape) -> Method<W> {
    let queue = match shape.pending() {
        Some(queue) => queue,
        None => 0,
    };
    Method {
        name,
        window: shape.lines() + queue,
        lines: shape,
        ..async_lines()
    }
}

/// The method with `lines` lines and a pending queue of `queue` requests, named by both numbers,
/// which must be within bounds.
pub fn queue(lines: usize, queue: usize) -> Method {
    named(Shape::queue(lines, queue))
}

/// The method with `lines` lines that are written directly, named by that number, which must be
/// within bounds.
pub fn direct(lines: usize) -> Method {
    named(Shape::direct(lines))
}

fn named(shape: Result<Shape, ShapeError>) -> Method {
    let shape = shape.expect("lines and queues are within bounds");
    shaped(kept(format!("{NAME}:{shape}")), shape)
}

/// Makes a name static. The leak is a few bytes for each name on a command line and each point of
/// a figure.
fn kept(name: String) -> &'static str {
    String::leak(name)
}

/// The method with the lines and queues that `parameters` describe.
fn read<W: Workload>(parameters: &str) -> Result<Method<W>, String> {
    let shape = parameters.parse::<Shape>();
    let method = shape.map(|shape| shaped(NAME, shape));
    method.map_err(|why| {
        format!("{why}; write {NAME}:N, {NAME}:NxL or {NAME}:N-direct, such as {NAME}:4x8")
    })
}

/// `method`, but each operation takes `ROOTS` square roots (D10).
pub fn rooted<const ROOTS: u32>(method: Method) -> Method {
    method.built_by(|_, p, setup_limit| (async_lines().build)(FetchRoot::<ROOTS>, p, setup_limit))
}

/// A client of the protocol, with callbacks of type `C`.
type LinesClient<W, C> = corelay_literature::Client<PairLines<C>, <W as Workload>::Object>;

/// One who issues requests on the thesis's lines, and gets the answers in callbacks.
pub(super) trait Issues<T, C> {
    /// Issues an operation on object `var`.
    fn issue<O>(&mut self, var: usize, operation: O, then: C)
    where
        O: FnOnce(&mut T) -> u64 + Send + 'static;

    /// Looks at all lines once.
    fn look(&mut self);

    /// Waits until all callbacks have run.
    fn barrier(&mut self);
}

impl<T, C: FnOnce(u64)> Issues<T, C> for corelay_literature::Client<PairLines<C>, T> {
    #[inline]
    fn issue<O>(&mut self, var: usize, operation: O, then: C)
    where
        O: FnOnce(&mut T) -> u64 + Send + 'static,
    {
        corelay_literature::Client::issue(self, var, operation, then);
    }

    fn look(&mut self) {
        self.flush();
    }

    fn barrier(&mut self) {
        corelay_literature::Client::barrier(self);
    }
}

struct Lines<W: Workload, C: FnOnce(u64), D> {
    workload: W,
    clients: Range<usize>,
    delegation: AsyncLines<W::Object, C>,
    servers: Servers,
    /// The counts of all clients, by server.
    asked: Mutex<Vec<Asked>>,
    /// The loop of a client; returns the number of its operations.
    drive: D,
}

impl<W, C, D> Lines<W, C, D>
where
    W: Workload,
    C: FnOnce(u64) + 'static,
    D: Fn(W, Client, &mut LinesClient<W, C>) -> u64 + Send + Sync + 'static,
{
    fn start(workload: W, point: &Point, drive: D) -> Result<Box<dyn Contender>, String> {
        let clients = point.servers..point.threads;
        check_memory(point.lines, point.servers * clients.len())?;
        let make = move |_| workload.object();
        let (servers, vars) = (point.servers, point.vars as usize);
        let (delegation, servers) =
            AsyncLines::shaped(point.lines, servers, clients.len(), vars, make);
        Ok(Box::new(Self {
            workload,
            clients,
            delegation,
            asked: Mutex::new(vec![Asked::default(); servers.len()]),
            servers: Servers::start(NAME, servers, point)?,
            drive,
        }))
    }
}

/// Issues operations as soon as there is room; an operation counts when its callback has run.
pub(super) fn closed_loop<W: Workload>(
    workload: W,
    client: Client,
    asking: &mut impl Issues<W::Object, fn(u64)>,
) -> u64 {
    if let Some(mut worker) = workload.worker(&client) {
        return issue_each(&mut *worker, |ask| match ask {
            Some(Ask { var, operation, .. }) => {
                let run = move |object: &mut W::Object| operation.run(object).number();
                asking.issue(var, run, keep);
            }
            None => asking.look(),
        });
    }
    let mut next = client.requests(workload);
    counting(|| {
        let asked = client.drive(|choice| {
            let (var, operation) = next(choice);
            let run = move |object: &mut W::Object| operation.run(object).number();
            asking.issue(var, run, answered);
            0
        });
        asking.barrier();
        asked
    })
}

/// Issues each operation when it is due.
pub(super) fn on_schedule<W: Workload, C: FnOnce(u64)>(
    workload: W,
    client: Client,
    asking: &mut impl Issues<W::Object, C>,
    redeem: impl Fn(Ticket) -> C,
) -> u64 {
    let mut next = client.requests(workload);
    let asking = RefCell::new(asking);
    client.issue(
        |choice, ticket| {
            let (var, operation) = next(choice);
            let run = move |object: &mut W::Object| operation.run(object).number();
            asking.borrow_mut().issue(var, run, redeem(ticket));
        },
        || asking.borrow_mut().look(),
        || asking.borrow_mut().barrier(),
    )
}

/// The callback of an operation on a schedule: it reads the clock.
pub(super) fn redeem(ticket: Ticket) -> impl FnOnce(u64) + 'static {
    move |answer| {
        std::hint::black_box(answer);
        ticket.answered();
    }
}

/// Checks that lines and queues of all pairs fit into half of the available memory.
pub(super) fn check_memory(shape: Shape, pairs: usize) -> Result<(), String> {
    let queue = shape.pending().unwrap_or(0);
    let pairs = pairs as u64;
    // Per line: the request, its response, and the client's state. Per queue entry: a request.
    let bytes = pairs * (shape.lines() * (64 + 16 + 40) + queue * 88) as u64;
    match available_bytes() {
        Some(available) if bytes > available / 2 => Err(format!(
            "--method: {} request lines and a queue of {queue} for each of {pairs} pairs would \
             take {} MiB, and {} MiB are available; use fewer lines or threads",
            shape.lines(),
            bytes >> 20,
            available >> 20
        )),
        _ => Ok(()),
    }
}

impl<W, C, D> Contender for Lines<W, C, D>
where
    W: Workload,
    C: FnOnce(u64),
    D: Fn(W, Client, &mut LinesClient<W, C>) -> u64 + Send + Sync,
{
    fn clients(&self) -> Range<usize> {
        self.clients.clone()
    }

    fn client(&self, client: Client) -> u64 {
        let _serving = self.servers.serve();
        let mut asking = self.delegation.client(client.index);
        let asking = asking.as_mut().expect("a client runs on one thread");
        let count = (self.drive)(self.workload, client, asking);
        let mut sums = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        sums.iter_mut()
            .zip(asking.asked())
            .for_each(|(sum, asked)| *sum += asked);
        count
    }

    fn total(&self) -> Result<u64, String> {
        total(self.workload, &self.delegation)
    }

    fn end(&mut self) -> Vec<Trustee> {
        let asked = std::mem::take(self.asked.get_mut().unwrap_or_else(PoisonError::into_inner));
        let served = self.servers.end();
        let trustees = served.iter().zip(asked).map(|(served, asked)| Trustee {
            asked: Some(asked.into()),
            ..Trustee::from(served)
        });
        trustees.collect()
    }
}

impl From<Asked> for crate::schema::ClientCounts {
    fn from(asked: Asked) -> Self {
        Self {
            polls: asked.polls,
            ready: asked.ready,
            pops: asked.pops,
            failed_pops: asked.failed_pops,
            failed_pushes: asked.failed_pushes,
            flushes: asked.flushes,
            depths: asked.depths,
            timed: asked.timed,
            latency_ns: u64::try_from(asked.latency.as_nanos()).unwrap_or(u64::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::plan::Item;
    use crate::measure::rig::Rig;
    use crate::measure::session::{Session, Timing};
    use crate::method::SetupLimit;
    use crate::workload::fetch_add::FetchAdd;
    use std::sync::Arc;
    use std::time::Duration;

    #[test]
    fn parameters_are_parsed() {
        let method = async_lines::<FetchAdd>();
        let read = |text| {
            method.with_parameters(text).map(|read| {
                read.map(|method| {
                    assert_eq!(method.name(), text);
                    let (lines, queue) = (method.lines.lines(), method.lines.pending());
                    (lines, queue, method.window(1))
                })
            })
        };
        assert_eq!(read("async-lines:4"), Some(Ok((4, Some(8), 12))));
        assert_eq!(read("async-lines:16x64"), Some(Ok((16, Some(64), 80))));
        assert_eq!(read("async-lines:1-direct"), Some(Ok((1, None, 1))));
        assert_eq!(read("async-lines:1024"), Some(Ok((1024, Some(1024), 2048))));
        assert_eq!(read("async-lines"), None);
        assert_eq!(read("async"), None);
        assert_eq!(queue(4, 8).name(), "async-lines:4x8");
        assert_eq!(direct(16).name(), "async-lines:16-direct");
        for text in [
            "", "0", "4x0", "1025", "4x", "x4", "-direct", "4-queue", "+4", "4x1025",
        ] {
            let wrong = read(String::leak(format!("async-lines:{text}"))).unwrap();
            assert!(wrong.as_ref().unwrap_err().contains("such as"), "{wrong:?}");
        }
    }

    /// Tests the counts: with one line a pass can find only one request, and direct lines never pop
    /// from a queue.
    #[test]
    fn methods_have_the_shape_in_their_name() {
        let point = Point::small(2);
        let mut rig = Rig::new(&point.placement, &[], "test", Arc::default()).unwrap();
        let mut session = Session::new();
        for method in [direct(1), queue(1, 2), async_lines()] {
            let item = Item {
                method,
                point: point.clone(),
                notes: vec![],
            };
            session.add(item, &SetupLimit::default()).unwrap();
        }
        let timing = Timing::of(Duration::from_millis(5));
        session.round(&mut rig, timing, None, || {});
        let counted = session.finish(&rig, timing).into_iter().map(|run| {
            assert!(run.correct, "{run:?}");
            let server = run.trustees[0];
            let asked = server.asked.unwrap();
            (server.requests > server.passes_with_work, asked.pops > 0)
        });
        let counted: Vec<(bool, bool)> = counted.collect();
        assert_eq!(counted, [(false, false), (false, true), (true, true)]);
    }
}
