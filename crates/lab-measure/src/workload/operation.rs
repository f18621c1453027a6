//! Workloads: a structure, and one operation on it. Every method is generic over both.
//!
//! ```text
//!   Workload ── object() ──────► one object for each variable
//!       │
//!       └── operations(random) ─► Operation ── run(&mut object) ─► Answer
//!            one client's, in        what a request carries
//!            sequence
//! ```
//!
//! A method is written once, for any workload, and compiled for each: its loop contains the
//! operation's code, and an operation without data (such as
//! [`AddOne`](super::fetch_add::AddOne)) adds nothing to a request.

use crate::method::{Entry, any};
use crate::schema::Extra;
use crate::workload::random::{Client, Random};
use crate::workload::raytrace::Picture;
use crate::workload::worker::AnyWorker;

/// A structure and an operation on it.
///
/// A workload is copied into every thread, actor and trustee. So it holds no objects, only the
/// recipe for them.
pub trait Workload: Copy + Send + Sync + 'static {
    /// The object behind one shared variable: a plain sequential type.
    type Object: Send + 'static;

    /// One operation on an object.
    type Operation: Operation<Self::Object>;

    /// The workload's name in results.
    fn name(self) -> &'static str;

    /// The workload's name in results if operations arrive on a schedule.
    fn name_under_load(self) -> &'static str {
        self.name()
    }

    /// Makes an object.
    fn object(self) -> Self::Object;

    /// The operations of one client, in sequence; they may draw from `random`.
    fn operations(self, random: Random) -> impl FnMut() -> Self::Operation + Send + 'static;

    /// The number of choices that clients draw from, if there are `vars` variables; at least 1. The
    /// distribution of a point is that of the choices.
    fn choices(self, vars: u64) -> u64 {
        vars
    }

    /// The requests of one client, in sequence: a closure from a choice, one of `choices`, to the
    /// variable and the operation that belong to it.
    #[inline(always)]
    fn requests(
        self,
        choices: u64,
        random: Random,
    ) -> impl FnMut(usize) -> (usize, Self::Operation) + Send + 'static {
        let _ = choices;
        let mut next = self.operations(random);
        move |choice| (choice, next())
    }

    /// The worker that `client` is, if the clients of this workload use their answers. Such a
    /// client ends by itself.
    fn worker(self, client: &Client) -> AnyWorker<Self::Operation> {
        let _ = client;
        None
    }

    /// The picture that the clients paint, if that is their work. A sample then lasts until it is
    /// done.
    fn picture(self) -> Option<&'static Picture> {
        None
    }

    /// The number of operations that `object` has seen, by its own account. If the workload
    /// [counts](Self::counts), the sum over all objects must equal the operations that the
    /// clients have done.
    ///
    /// # Errors
    /// A sentence that says what is wrong with the object.
    fn check(self, object: &Self::Object) -> Result<u64, String>;

    /// The methods that take this workload, in the order of tables.
    fn methods() -> Vec<Entry<Self>> {
        any()
    }

    /// Whether objects know how many operations they have seen.
    fn counts(self) -> bool {
        true
    }

    /// Whether a check would show that an operation was lost or done wrongly.
    fn checks(self) -> bool {
        true
    }

    /// The parameters of a point that only this workload has.
    fn extra(self) -> Extra {
        Extra::default()
    }
}

/// The facts that a session needs about a [`Workload`], or about a workload whose methods are not
/// generic over it (those of `corelay-lab-bench`).
pub trait WorkloadInfo: Copy + Send + Sync + 'static {
    /// The workload's name in results.
    fn name(self) -> &'static str;

    /// The workload's name in results if operations arrive on a schedule.
    fn name_under_load(self) -> &'static str {
        self.name()
    }

    /// Whether objects know how many operations they have seen.
    fn counts(self) -> bool;

    /// The number of choices that clients draw from, if there are `vars` variables.
    fn choices(self, vars: u64) -> u64 {
        vars
    }

    /// The picture that the clients paint, if that is their work. A sample then lasts until it is
    /// done.
    fn picture(self) -> Option<&'static Picture> {
        None
    }

    /// The parameters of a point that only this workload has.
    fn extra(self) -> Extra {
        Extra::default()
    }
}

impl<W: Workload> WorkloadInfo for W {
    fn name(self) -> &'static str {
        Workload::name(self)
    }

    fn name_under_load(self) -> &'static str {
        Workload::name_under_load(self)
    }

    fn counts(self) -> bool {
        Workload::counts(self)
    }

    fn choices(self, vars: u64) -> u64 {
        Workload::choices(self, vars)
    }

    fn picture(self) -> Option<&'static Picture> {
        Workload::picture(self)
    }

    fn extra(self) -> Extra {
        Workload::extra(self)
    }
}

/// The answer type of the operations of `W`.
pub(crate) type AnswerOf<W> =
    <<W as Workload>::Operation as Operation<<W as Workload>::Object>>::Answer;

/// One operation, with all data that travels with it to the object.
pub trait Operation<T>: Copy + Send + 'static {
    /// The answer that the caller gets.
    type Answer: Answer;

    /// Runs the operation on `object`.
    fn run(self, object: &mut T) -> Self::Answer;
}

/// The answer of an operation: a number, or nothing.
pub trait Answer: Send + 'static {
    /// A number that depends on the answer. Clients sum these numbers up, so that no compiler can
    /// optimize the answer away.
    fn number(self) -> u64;
}

impl Answer for u64 {
    #[inline(always)]
    fn number(self) -> u64 {
        self
    }
}

impl Answer for () {
    #[inline(always)]
    fn number(self) -> u64 {
        0
    }
}

/// Bytes of a cache line, to which objects are aligned.
pub(crate) const LINE_BYTES: usize = 64;

/// An object that begins a cache line, so that threads which use its neighbours do not slow it
/// down.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
pub struct Aligned<T>(pub T);

const _: () =
    assert!(size_of::<Aligned<u64>>() == LINE_BYTES && align_of::<Aligned<u8>>() == LINE_BYTES);

impl<T> Aligned<T> {
    /// A closure that runs the operation on an aligned object: a request.
    #[inline(always)]
    pub(crate) fn request<O: Operation<T>>(
        operation: O,
    ) -> impl FnOnce(&mut Self) -> O::Answer + Send + 'static {
        move |object| operation.run(&mut object.0)
    }
}
