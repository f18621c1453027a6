//! A method (a way of sharing), and a contender (the method set up for one point of a sweep).

use crate::schema::{ConflictCounts, MemoryLoads, Trustee};
use crate::workload::fetch_add::FetchAdd;
use crate::workload::point::Point;
use crate::workload::random::Client;
use corelay_literature::Shape;
use corelay_sync::facade::atomic::{AtomicBool, Ordering};
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

/// A method set up for one point of the sweep. It can be sampled again and again.
pub trait Contender: Send + Sync {
    /// The numbers of the crew's threads that run [`client`](Self::client).
    fn clients(&self) -> Range<usize>;

    /// Runs operations on variables of the client's choice until its stop flag is set; returns
    /// how many. All of them are answered or, for a method without answers, done.
    fn client(&self, client: Client) -> u64;

    /// The number of operations that all variables together have seen, by their own account. Called
    /// while no client runs.
    ///
    /// # Errors
    /// A sentence that says what is wrong with a variable.
    fn total(&self) -> Result<u64, String>;

    /// MemoryLoads from memory per operation over all slices, if they are counted.
    fn loads(&self) -> Option<MemoryLoads> {
        None
    }

    /// The counts of the clients since the last call, for methods that count.
    fn counts(&self) -> Option<ConflictCounts> {
        None
    }

    /// Ends the threads that serve the clients; returns each trustee's counts. No other method is
    /// called afterwards.
    fn end(&mut self) -> Vec<Trustee> {
        Vec::new()
    }
}

/// The use that a method makes of its threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Every thread is a client.
    Direct,
    /// One thread is the only client, and nothing is shared.
    Alone,
    /// One thread is the actor, the others are clients.
    Actor,
    /// `servers` threads are trustees, the others are clients.
    Dedicated,
    /// Every thread is client and trustee.
    Flat,
}

/// The limits on the time of a set-up.
#[derive(Clone, Debug, Default)]
pub struct SetupLimit {
    /// The set-up ends at this moment, at the latest.
    pub(crate) until: Option<Instant>,
    /// The set-up ends when this flag is true.
    pub(crate) interrupted: Arc<AtomicBool>,
}

impl SetupLimit {
    /// Checks that the set-up may go on.
    ///
    /// # Errors
    /// A clause that says why it must end.
    pub fn check(&self) -> Result<(), String> {
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

/// A function that sets a method up for a point.
pub(crate) type Build<W = FetchAdd> =
    fn(W, &Point, &SetupLimit) -> Result<Box<dyn Contender>, String>;

/// A way of sharing the objects of a workload, by name.
#[derive(Clone, Copy)]
pub struct Method<W = FetchAdd> {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// Requests in flight per client; 0 stands for the point's window.
    pub(super) window: usize,
    /// Requests in flight per client when operations arrive on a schedule, if that differs from
    /// `window`; 0 stands for the point's window.
    pub(super) window_on_schedule: Option<usize>,
    /// Bytes per variable, for the memory estimate.
    pub(super) bytes_per_var: u64,
    /// Request lines and pending queue, for methods that have them.
    pub(super) lines: Shape,
    /// Fibres per client; 0 for methods without fibres.
    pub(super) fibres: usize,
    /// The parameters that may follow the name, if any.
    pub(super) parameters: Option<Parameters<W>>,
    pub(super) build: Build<W>,
}

/// The parameters that may follow a method's name and a colon.
#[derive(Clone, Copy)]
pub(super) struct Parameters<W> {
    /// Each form of the whole name, with its meaning.
    pub(super) forms: &'static [(&'static str, &'static str)],
    /// Parses the text after the colon into the method (whose name the caller sets). Its error is
    /// a clause that says what is wrong.
    pub(super) read: fn(&str) -> Result<Method<W>, String>,
}

impl<W> Method<W> {
    /// A method called `name`: one request at a time, and no memory of its own.
    pub const fn new(name: &'static str, kind: Kind, build: Build<W>) -> Self {
        Self {
            name,
            kind,
            window: 1,
            window_on_schedule: None,
            bytes_per_var: 0,
            lines: Shape::DEFAULT,
            fibres: 0,
            parameters: None,
            build,
        }
    }

    /// The forms that the name can take with parameters, each with its meaning.
    pub fn forms(&self) -> &'static [(&'static str, &'static str)] {
        self.parameters
            .as_ref()
            .map_or(&[], |parameters| parameters.forms)
    }

    /// The method with its parameters, if `text` is this name, a colon, and parameters.
    ///
    /// # Errors
    /// A clause that says what is wrong with the parameters.
    pub(super) fn with_parameters(&self, text: &str) -> Option<Result<Self, String>> {
        let parameters = self.parameters.as_ref()?;
        let rest = text.strip_prefix(self.name)?.strip_prefix(':')?;
        let read = (parameters.read)(rest).map(|method| Self {
            // The leak is a few bytes for each name on a command line.
            name: String::leak(text.to_owned()),
            ..method
        });
        Some(read.map_err(|why| format!("`{text}`: {why}")))
    }

    /// The name on the command line and in results.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The use that the method makes of its threads.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether the method has dedicated trustees, so that `--servers` concerns it.
    pub(crate) fn is_dedicated(&self) -> bool {
        self.kind == Kind::Dedicated
    }

    /// The fewest threads that the method can run with.
    pub fn least_threads(&self, servers: usize) -> usize {
        match self.kind {
            Kind::Direct | Kind::Alone | Kind::Flat => 1,
            Kind::Actor => 2,
            Kind::Dedicated => servers + 1,
        }
    }

    /// Requests in flight per client and trustee, if `asked` are asked for; 1 is one at a time.
    pub fn window(&self, asked: usize) -> usize {
        if self.window == 0 { asked } else { self.window }
    }

    /// Requests in flight per client and trustee at `point`, whose own window was asked for.
    pub(crate) fn window_at(&self, point: &Point) -> usize {
        match self.window_on_schedule.filter(|_| point.load.is_some()) {
            Some(0) => point.window,
            Some(window) => window,
            None => self.window(point.window),
        }
    }

    /// The request lines and pending queue; a default for methods without them.
    pub fn lines(&self) -> Shape {
        self.lines
    }

    /// A rough estimate of the memory for `vars` variables, in bytes.
    pub(crate) fn bytes(&self, vars: u64) -> u64 {
        self.bytes_per_var
            .saturating_mul(vars)
            .saturating_add(1 << 20)
    }

    /// The same method with as many requests in flight as the point's window.
    #[must_use]
    pub const fn windowed(self) -> Self
    where
        W: Copy,
    {
        Self { window: 0, ..self }
    }

    /// The same method with an estimate of `bytes_per_var` bytes for each variable.
    pub const fn taking(self, bytes_per_var: u64) -> Self
    where
        W: Copy,
    {
        Self {
            bytes_per_var,
            ..self
        }
    }

    /// The same method with `bytes` more for each variable, which its object keeps elsewhere.
    pub fn with_heap(self, bytes: u64) -> Self
    where
        W: Copy,
    {
        self.taking(self.bytes_per_var.saturating_add(bytes))
    }

    /// The same method, but set up by `build`: measured differently, or doing something else.
    pub const fn built_by(self, build: Build<W>) -> Self
    where
        W: Copy,
    {
        Self { build, ..self }
    }

    /// Sets the method up for a point.
    ///
    /// # Errors
    /// A sentence that says what could not be had (threads, memory, time).
    pub(crate) fn build(
        &self,
        workload: W,
        point: &Point,
        setup_limit: &SetupLimit,
    ) -> Result<Box<dyn Contender>, String> {
        setup_limit.check()?;
        let point = Point {
            lines: self.lines,
            fibres: self.fibres,
            ..point.clone()
        };
        (self.build)(workload, &point, setup_limit)
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

impl Method {
    /// The method of fetch-add called `name`.
    pub fn named(name: &str) -> Option<Self> {
        let found = super::METHODS.iter().find(|entry| entry.name() == name);
        found.map(|entry| entry.method)
    }
}
