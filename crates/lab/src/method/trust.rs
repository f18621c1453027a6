//! Delegation: a [`Trust`] per variable, spread over dedicated trustees in turn.
//!
//! * `trust`: `apply`, which waits for each answer.
//! * `trust-then`: `apply_then`; answers come to a callback, which counts them and sums
//!   them up. An operation counts when its callback has run.
//! * `trust-post`: `post`; no answer is wanted, so none is measured. An operation counts
//!   when the barrier at the end of the slice has come back.

use crate::method::{Contender, Kind, Method, Patience};
use crate::workload::fetch_add::{Counter, OBJECT_BYTES, Point};
use crate::workload::random::Client;
use corelay::{ApplyFuture, ClientGuard, Trust, Trustees};
use corelay_sync::Backoff;
use std::cell::Cell;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;

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
    Futures,
}

type Variables = Box<[Trust<Counter>]>;

struct Delegated {
    how: How,
    clients: Range<usize>,
    variables: Variables,
    keeper: Keeper,
}

/// The thread that started the trustees. [`Trustees`] stay on it; it sleeps until it is to
/// end them.
struct Keeper {
    // Dropping the sender ends the trustees.
    alive: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Delegated {
    fn start(point: &Point, patience: &Patience, how: How) -> Result<Self, String> {
        let (alive, over) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        let (plan, patience) = (point.clone(), patience.clone());
        let thread = std::thread::Builder::new()
            .name("trust-keeper".to_owned())
            .spawn(move || {
                match set_up(&plan, &patience, matches!(how, How::Bare)) {
                    Ok((trustees, variables)) => {
                        let _ = tell.send(Ok(variables));
                        // Nothing is ever sent: this waits for the sender's end.
                        let _ = over.recv();
                        trustees.shutdown();
                    }
                    Err(sentence) => {
                        let _ = tell.send(Err(sentence));
                    }
                }
            });
        let thread =
            thread.map_err(|e| format!("--threads: a thread could not be started: {e}"))?;
        let keeper = Keeper {
            alive: Some(alive),
            thread: Some(thread),
        };
        let lost = |_| Err("the trustees could not be set up".to_owned());
        let variables = told.recv().unwrap_or_else(lost)?;
        Ok(Self {
            how,
            clients: point.servers..point.threads,
            variables,
            keeper,
        })
    }
}

fn set_up(point: &Point, patience: &Patience, bare: bool) -> Result<(Trustees, Variables), String> {
    // Servers take the first places; a placement pins all threads or none.
    let places = point.placement.iter().take(point.servers);
    let trustees = Trustees::dedicated(point.servers)
        .window(point.window)
        .bare(bare)
        .pin(places.copied().flatten())
        .start()
        .map_err(|error| format!("--servers: {error}"))?;
    // Next to a trustee on the same CPU the keeper would wait for its turn a million times;
    // where pinning fails, it is only slower.
    let beside = point.placement.get(point.servers).copied().flatten();
    let _pinned = beside.and_then(|cpu| corelay_topology::PinGuard::pin(cpu).ok());
    // The keeper asks for nothing later: the trustees need not look at its channels.
    let client = ClientGuard::new();
    let mut variables = Vec::with_capacity(point.vars_len());
    while variables.len() < variables.capacity() {
        // Each is a round trip; a million take from a tenth of a second to many.
        if variables.len() % 1024 == 0 {
            patience.check()?;
        }
        variables.push(trustees.entrust(Counter::default()));
    }
    drop(client);
    Ok((trustees, variables.into()))
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.alive = None;
        if let Some(thread) = self.thread.take() {
            // A panic while ending has shown itself on standard error.
            let _ = thread.join();
        }
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
            How::Then | How::Bare => {
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

impl Drop for Delegated {
    fn drop(&mut self) {
        // Handles go before their trustees do.
        self.variables = Box::default();
        self.keeper.alive = None;
    }
}
