//! The ways of sharing that the lab compares, a file each.
//!
//! | name | what | threads |
//! |---|---|---|
//! | `atomic` | `fetch_add` on the variable itself | all are clients |
//! | `mutex`, `parking-lot`, `ttas`, `ticket`, `mcs`, `clh` | a lock per variable, on its line ([`lock`]) | all are clients |
//! | `channel` | an actor behind crossbeam channels, one call at a time ([`channel`]) | 1 actor, the others are clients |
//! | `channel-pipelined` | the same with 64 calls outstanding | 1 actor, the others are clients |
//! | `tokio` | an actor task behind `mpsc`, answers by `oneshot`, 64 tasks ([`tokio`]) | all are workers of the runtime |
//! | `trust`, `trust-then`, `trust-post` | delegation to dedicated trustees ([`trust`]) | `servers` trustees, the others are clients |
//! | `trust-fibre` | delegation by fibres of client threads, each of which waits for its answer ([`fibres`]) | `servers` trustees, the others are clients |
//! | `flat-adaptive`, `flat-queue`, `flat-blocked`, `flat-fast-path`, `flat-bound`, `flat-doorbell` | delegation among members of a team, by policy ([`flat`]) | all are clients and trustees |
//! | `ffwd`, `rcl`, `async-lines` | delegation as the literature has it ([`literature`]) | `servers` servers, the others are clients |
//!
//! Where operations arrive on a schedule (the workload `latency`), [`ON_SCHEDULE`] lists the
//! methods that can.
//!
//! All but `atomic` take any [`Workload`]: N ways × M structures, each way written once.
//! Types are erased where a method is set up for a point of the sweep ([`Contender`]),
//! never per operation: each method's loop is compiled for itself and the workload.

pub mod atomic;
#[cfg(test)]
pub(crate) mod broken;
pub mod channel;
pub mod counted;
pub mod fibres;
pub mod flat;
pub mod literature;
pub mod load;
pub mod lock;
pub(crate) mod noop;
pub(crate) mod on_schedule;
pub mod tokio;
pub mod trust;

pub use on_schedule::{ON_SCHEDULE, OnSchedule, any_on_schedule};

use crate::schema::{Counts, Loads, Trustee};
use crate::workload::fetch_add::FetchAdd;
use crate::workload::operation::Workload;
use crate::workload::point::Point;
use crate::workload::random::Client;
use corelay_literature::Shape;
use corelay_sync::facade::atomic::{AtomicBool, Ordering};
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

/// A method set up for one point of the sweep: it can be sampled again and again.
pub trait Contender: Send + Sync {
    /// The threads of the crew that run [`client`](Self::client), by number.
    fn clients(&self) -> Range<usize>;

    /// Does operations on variables of the client's choice until it is told to stop;
    /// returns how many, all of them answered (or, for a method without answers, done).
    fn client(&self, client: Client) -> u64;

    /// How many operations all variables together have seen by their own account, read
    /// while no client runs.
    ///
    /// # Errors
    /// A sentence that says what is wrong with one of them.
    fn total(&self) -> Result<u64, String>;

    /// Loads from memory per operation of all slices together, where they are counted.
    fn loads(&self) -> Option<Loads> {
        None
    }

    /// What the clients have counted since this was asked last, where they count anything.
    fn counts(&self) -> Option<Counts> {
        None
    }

    /// Ends what serves the clients, and says what each trustee has counted. Nothing is
    /// asked of the contender afterwards.
    fn end(&mut self) -> Vec<Trustee> {
        Vec::new()
    }
}

/// How a method uses its threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Every thread is a client.
    Direct,
    /// One thread is the actor, the others are clients.
    Actor,
    /// `servers` threads are trustees, the others are clients.
    Dedicated,
    /// Every thread is client and trustee.
    Flat,
}

/// How long a set-up may take.
#[derive(Clone, Debug, Default)]
pub struct Patience {
    /// Not beyond this moment.
    pub(crate) until: Option<Instant>,
    /// Not once this is true.
    pub(crate) interrupted: Arc<AtomicBool>,
}

impl Patience {
    /// Fine as long as the set-up may go on.
    ///
    /// # Errors
    /// Why it may not.
    pub(crate) fn check(&self) -> Result<(), String> {
        // Relaxed: the flag carries no data.
        if self.interrupted.load(Ordering::Relaxed) {
            return Err("interrupted".to_owned());
        }
        match self.until {
            Some(until) if Instant::now() > until => {
                Err("setting it up would take too long".to_owned())
            }
            _ => Ok(()),
        }
    }
}

type Build<W = FetchAdd> = fn(W, &Point, &Patience) -> Result<Box<dyn Contender>, String>;

/// A way of sharing the objects of a workload, by name.
#[derive(Clone, Copy)]
pub struct Method<W = FetchAdd> {
    name: &'static str,
    kind: Kind,
    /// Requests in flight per client: 0 for as many as the point's window says.
    window: usize,
    /// Bytes that one variable takes, for the memory estimate.
    bytes_per_var: u64,
    /// Request lines and pending queue, where it has them.
    lines: Shape,
    /// Fibres of a client, where it has them.
    fibres: usize,
    build: Build<W>,
}

/// The methods that take any workload, in the order of tables.
pub const fn any<W: Workload>() -> [Method<W>; 13] {
    [
        lock::mutex(),
        lock::parking_lot(),
        lock::ttas(),
        lock::ticket(),
        lock::mcs(),
        lock::clh(),
        channel::one(),
        channel::pipelined(),
        tokio::method(),
        trust::apply(),
        trust::then(),
        trust::post(),
        flat::adaptive(),
    ]
}

/// Those with dedicated servers that take any workload, in the order of tables.
pub const fn any_dedicated<W: Workload>() -> [Method<W>; 6] {
    [
        trust::apply(),
        trust::then(),
        trust::post(),
        literature::ffwd(),
        literature::rcl(),
        literature::async_lines(),
    ]
}

/// All methods of fetch-add, in the order of tables.
pub static METHODS: &[Method] = &{
    let mut all = [atomic::METHOD; 23];
    let (_, others) = all.split_at_mut(1);
    let (any_workload, fixed) = others.split_at_mut(13);
    any_workload.copy_from_slice(&any());
    fixed.copy_from_slice(&[
        flat::queue(),
        flat::blocked(),
        flat::fast_path(),
        flat::bound(),
        flat::doorbell(),
        literature::ffwd(),
        literature::rcl(),
        literature::async_lines(),
        fibres::method(),
    ]);
    all
};

/// Those that `compare` compares: without the fixed policies of flat teams, which concern
/// whoever chooses among them, and without the literature's channels, which concern whoever
/// builds one.
pub fn usual() -> &'static [Method] {
    METHODS.split_at(14).0
}

impl Method {
    /// The method of fetch-add of that name.
    pub fn named(name: &str) -> Option<Self> {
        METHODS.iter().find(|m| m.name == name).copied()
    }
}

impl<W> Method<W> {
    /// A method of objects that are no [`Workload`]'s.
    pub const fn of_its_own(name: &'static str, kind: Kind, build: Build<W>) -> Self {
        Self {
            name,
            kind,
            window: 1,
            bytes_per_var: 0,
            lines: Shape::DEFAULT,
            fibres: 0,
            build,
        }
    }

    /// Its name on the command line and in results.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// How it uses its threads.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// True where `--servers` concerns it.
    pub(crate) fn is_dedicated(&self) -> bool {
        self.kind == Kind::Dedicated
    }

    /// The fewest threads it can run with.
    pub fn least_threads(&self, servers: usize) -> usize {
        match self.kind {
            Kind::Direct | Kind::Flat => 1,
            Kind::Actor => 2,
            Kind::Dedicated => servers + 1,
        }
    }

    /// Requests in flight per client and trustee at a point; 1 means one at a time.
    pub fn window(&self, asked: usize) -> usize {
        if self.window == 0 { asked } else { self.window }
    }

    /// Its request lines and pending queue, where it has them.
    pub fn lines(&self) -> Shape {
        self.lines
    }

    /// Memory that a point of this method takes, in bytes, roughly.
    pub(crate) fn bytes(&self, vars: u64) -> u64 {
        self.bytes_per_var
            .saturating_mul(vars)
            .saturating_add(1 << 20)
    }

    /// The same, set up in another way: measured differently, or doing something else.
    pub const fn built_by(self, build: Build<W>) -> Self
    where
        W: Copy,
    {
        Self { build, ..self }
    }

    /// Sets the method up for a point.
    ///
    /// # Errors
    /// One sentence that says what could not be had (threads, memory, time).
    pub(crate) fn build(
        &self,
        workload: W,
        point: &Point,
        patience: &Patience,
    ) -> Result<Box<dyn Contender>, String> {
        patience.check()?;
        let point = Point {
            lines: self.lines,
            fibres: self.fibres,
            ..point.clone()
        };
        (self.build)(workload, &point, patience)
    }
}

impl<W> std::fmt::Debug for Method<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Method")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .finish()
    }
}
