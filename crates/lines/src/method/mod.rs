//! The methods that are counted, a file each.

mod atomic;
mod literature;
mod locks;
mod trust;

use crate::window::Window;
use crate::workload::{Object, Workload};
use corelay_literature::{FfwdLines, ParseShapeError, RclLines, Shape};
use corelay_locks::{CcSynch, Clh, DsmSynch, FlatCombining, Mcs, Tas, Ticket, Ttas};
use std::fmt;
use std::rc::Rc;
use std::str::FromStr;

const LINES: &str = "async-lines";

/// The most requests of one client that may be in flight.
fn in_flight(shape: Shape) -> u64 {
    (shape.lines() + shape.pending().unwrap_or(0)) as u64
}

/// A method of sharing, by the name that it has in the lab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// A read-modify-write of the number itself: for [`Workload::FetchAdd`] only.
    Atomic,
    /// `corelay_locks::Tas`.
    Tas,
    /// `corelay_locks::Ttas`.
    Ttas,
    /// `corelay_locks::Ticket`.
    Ticket,
    /// `corelay_locks::Mcs`.
    Mcs,
    /// `corelay_locks::Clh`.
    Clh,
    /// `corelay_locks::FlatCombining`.
    FlatCombining,
    /// `corelay_locks::CcSynch`.
    CcSynch,
    /// `corelay_locks::DsmSynch`.
    DsmSynch,
    /// `corelay_literature::Ffwd`.
    Ffwd,
    /// `corelay_literature::Rcl`.
    Rcl,
    /// `corelay_literature::AsyncLines`, with lines and a queue of that shape.
    AsyncLines(Shape),
    /// `corelay_delegate::Trust::apply`.
    Trust,
    /// `corelay_delegate::Trust::apply_then`, a window of 256.
    TrustThen,
    /// `corelay_delegate::Trust::post`, a window of 256: for [`Workload::FetchAdd`] only.
    TrustPost,
}

impl Method {
    /// All methods.
    pub const ALL: [Self; 15] = [
        Self::Atomic,
        Self::Tas,
        Self::Ttas,
        Self::Ticket,
        Self::Mcs,
        Self::Clh,
        Self::FlatCombining,
        Self::CcSynch,
        Self::DsmSynch,
        Self::Ffwd,
        Self::Rcl,
        Self::AsyncLines(Shape::DEFAULT),
        Self::Trust,
        Self::TrustThen,
        Self::TrustPost,
    ];

    /// The method's name on the command line.
    pub fn name(self) -> String {
        let name = match self {
            Self::Atomic => "atomic",
            Self::Tas => "tas",
            Self::Ttas => "ttas",
            Self::Ticket => "ticket",
            Self::Mcs => "mcs",
            Self::Clh => "clh",
            Self::FlatCombining => "flat-combining",
            Self::CcSynch => "cc-synch",
            Self::DsmSynch => "dsm-synch",
            Self::Ffwd => "ffwd",
            Self::Rcl => "rcl",
            Self::AsyncLines(Shape::DEFAULT) => LINES,
            Self::AsyncLines(shape) => return format!("{LINES}:{shape}"),
            Self::Trust => "trust",
            Self::TrustThen => "trust-then",
            Self::TrustPost => "trust-post",
        };
        name.to_owned()
    }

    /// The number of threads that serve: 1 or 0.
    pub fn servers(self) -> usize {
        match self {
            Self::Ffwd
            | Self::Rcl
            | Self::AsyncLines(_)
            | Self::Trust
            | Self::TrustThen
            | Self::TrustPost => 1,
            _ => 0,
        }
    }

    /// The number of operations for each client that gives a steady count: a good value for
    /// [`Setup::operations`](crate::Setup::operations). Clients that do not wait for each operation
    /// make them in batches, and need more: otherwise the beginnings and ends of the batches would
    /// show.
    pub fn operations(self) -> u64 {
        match self {
            Self::TrustThen | Self::TrustPost => 512,
            Self::AsyncLines(shape) => 64.max(4 * in_flight(shape)),
            _ => 64,
        }
    }

    /// The number of operations for each client after which operations take no step that an earlier
    /// one has not taken. Clients that do not wait for each operation must have gone around their
    /// rings by then, which grow meanwhile.
    pub(crate) fn warm_up(self) -> u64 {
        match self {
            Self::TrustThen | Self::TrustPost => 2048,
            Self::AsyncLines(shape) => 64.max(2 * in_flight(shape)),
            _ => 32,
        }
    }

    /// Whether clients can make the operations of `workload` by this method. An atomic instruction
    /// only adds to a number, and a post, which nobody waits for, cannot look anything up.
    pub fn serves(self, workload: Workload) -> bool {
        workload == Workload::FetchAdd || !matches!(self, Self::Atomic | Self::TrustPost)
    }

    /// Runs the clients, and the server if there is one, to their ends. They share `object`.
    pub(crate) fn run<O: Object>(self, object: O, window: &Rc<Window>) {
        match self {
            Self::Atomic => atomic::run(window),
            Self::Tas => locks::run(Tas::new(object), window),
            Self::Ttas => locks::run(Ttas::new(object), window),
            Self::Ticket => locks::run(Ticket::new(object), window),
            Self::Mcs => locks::run(Mcs::new(object), window),
            Self::Clh => locks::run(Clh::new(object), window),
            Self::FlatCombining => locks::run(FlatCombining::new(object), window),
            Self::CcSynch => locks::run(CcSynch::new(object), window),
            Self::DsmSynch => locks::run(DsmSynch::new(object), window),
            Self::Ffwd => literature::blocking::<FfwdLines, O>(object, window),
            Self::Rcl => literature::blocking::<RclLines, O>(object, window),
            Self::AsyncLines(shape) => literature::lines(shape, object, window),
            Self::Trust => trust::apply(object, window),
            Self::TrustThen => trust::apply_then(object, window),
            Self::TrustPost => trust::post(object, window),
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

impl FromStr for Method {
    type Err = MethodError;

    fn from_str(text: &str) -> Result<Self, MethodError> {
        if let Some(shape) = text
            .strip_prefix(LINES)
            .and_then(|rest| rest.strip_prefix(':'))
        {
            let shape = shape.parse().map(Self::AsyncLines);
            return shape.map_err(|why| MethodError::Shape(text.to_owned(), why));
        }
        let found = Self::ALL.into_iter().find(|method| method.name() == text);
        found.ok_or_else(|| match text {
            "mutex" | "parking-lot" => MethodError::NotOnTheFacade(text.to_owned()),
            _ => MethodError::Unknown(text.to_owned()),
        })
    }
}

/// The reason why a name is not that of a [`Method`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MethodError {
    /// The lab has this method, but its source is not corelay's and does not go through the facade,
    /// so it cannot be counted.
    NotOnTheFacade(String),
    /// No method that can be counted has this name.
    Unknown(String),
    /// The shape of the request lines is impossible.
    Shape(String, ParseShapeError),
}

impl fmt::Display for MethodError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOnTheFacade(name) => write!(
                f,
                "`{name}` is not corelay's own source, and what it does with memory is not seen"
            ),
            Self::Unknown(name) => write!(f, "`{name}` is not counted here"),
            Self::Shape(name, why) => write!(
                f,
                "`{name}`: {why}; write {LINES}:N, {LINES}:NxL or {LINES}:N-direct, such as {LINES}:4x8"
            ),
        }
    }
}

impl std::error::Error for MethodError {}

/// Runs `client` for each client, with the client's number, on a thread of its own, and waits for
/// all of them.
fn clients(window: &Rc<Window>, client: impl Fn(usize, &Rc<Window>) + 'static) {
    let client = Rc::new(client);
    let start = |number| {
        let (window, client) = (Rc::clone(window), Rc::clone(&client));
        corelay_coherence::spawn(move || client(number, &window))
    };
    let threads: Vec<_> = (0..window.clients()).map(start).collect();
    for thread in threads {
        if let Err(payload) = thread.join() {
            std::panic::resume_unwind(payload);
        }
    }
}
