//! The request lines of the thesis on asynchronous delegation (its chapter "Asynchronous
//! Delegation"): N lines for each pair of client and server, so that N requests are on their way,
//! and before them a queue of requests that wait for a line.
//!
//! ```text
//!   client                                                      server
//!   issue ──► pending queue ──► request line 0, 1, … N−1  ───►  looks at all lines in turn,
//!             (length L)        64 bytes each                   executes, answers each:
//!   callback ◄── in-flight ◄─── response  0, 1, … N−1     ◄───  16 bytes: value, toggle
//!                array
//! ```
//! *Queue.* A request goes into the queue. If that is full, the client looks at its responses one
//! by one. Each request that is answered gets its callback run, and each free line takes a request
//! from its queue. *Direct.* Without a queue each request goes to the line after the previous
//! one's. If that line is taken, the client polls until it is answered.
//!
//! A line is free if its two toggles are equal: see [the line](crate::line).
//!
//! # Order
//! With one line, a server executes a client's requests in the order in which they were issued.
//! With more it does not. It looks at lines in their order, and a client may continue at the first
//! line before the server has looked at its last one; then the client overtakes itself (the thesis,
//! section "Ordering Guarantees").
//!
//! As in the thesis, a client looks at the lines of all servers when one queue is full. We depart
//! from it in two ways. The thesis counts every free line as a response that is ready; here
//! [`Asked::ready`] counts lines that had a request in flight. And a client's responses begin on a
//! line of their own.

mod client;
mod queue;
mod shape;

pub use client::{Asked, Line};
pub use shape::{ParseShapeError, Shape, ShapeError};

use client::LinesClient;

use crate::delegation::sealed::Sealed;
use crate::delegation::{Delegation, Protocol, Server, Work};
use crate::footprint::Footprint;
use crate::line::RequestLine;
use crate::row::{Row, Rows};
use corelay_sync::facade::atomic::{AtomicU64, Ordering, load_own};
use corelay_sync::facade::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;

/// Objects behind [the thesis's lines](PairLines), with callbacks of type `C`: see
/// [`Delegation`].
///
/// ```
/// use corelay_literature::{AsyncLines, Shape};
/// use std::cell::Cell;
///
/// let shape = Shape::queue(4, 8).unwrap();
/// let (hits, mut servers) = AsyncLines::shaped(shape, 1, 1, 1, |_| 40_u64);
/// servers[0].begin();
/// let answer = Cell::new(0);
/// let mut client = hits.client(0).unwrap();
/// client.issue(0, |hits: &mut u64| *hits + 2, |hits| answer.set(hits));
/// // Put on the line, executed, and answered.
/// client.flush();
/// assert_eq!((servers[0].pass(), answer.get()), (1, 0));
/// client.flush();
/// assert_eq!(answer.get(), 42);
/// ```
pub type AsyncLines<T, C> = Delegation<PairLines<C>, T>;

impl<T, C: FnOnce(u64)> AsyncLines<T, C> {
    /// Makes a delegation like [`new`](Self::new), with lines and queues of this shape.
    pub fn shaped(
        shape: Shape,
        servers: usize,
        clients: usize,
        objects: usize,
        make: impl Fn(usize) -> T + Send + Sync + 'static,
    ) -> (Self, Vec<Server<PairLines<C>, T>>) {
        Self::with(shape, servers, clients, objects, make)
    }
}

/// The lines between a server and its clients, in the layout of the thesis.
pub struct PairLines<C> {
    shape: Shape,
    /// The request lines of each client, which the client makes.
    requests: Rows<RequestLine>,
    /// The responses to all clients in turn, which the server makes. Each client's begin on a cache
    /// line.
    responses: Row<FourResponses>,
    callback: PhantomData<fn(C)>,
}

/// The response to one request line, written by the server and read by the client.
#[derive(Debug)]
#[repr(C)]
struct Response {
    /// The answer; the toggles decide who may touch it.
    value: UnsafeCell<u64>,
    toggle: AtomicU64,
}

/// A cache line of responses.
#[derive(Debug)]
#[repr(align(64))]
struct FourResponses([Response; 4]);

// The models' atomics and cells are larger.
#[cfg(not(any(corelay_loom, corelay_shuttle)))]
const _: () = assert!(
    size_of::<Response>() == 16
        && size_of::<FourResponses>() == 64
        && align_of::<FourResponses>() == 64
);

// SAFETY: the server writes a value while the toggles differ, and the client reads it while they
// are equal.
unsafe impl Sync for Response {}

/// The lines between the server and one client, which both have made.
#[derive(Clone, Copy)]
struct Pair<'a> {
    requests: &'a [RequestLine],
    responses: &'a [FourResponses],
}

impl<C> PairLines<C> {
    /// The lines of client `client`. `None` until both sides have made their own.
    #[inline(always)]
    fn pair(&self, client: usize) -> Option<Pair<'_>> {
        let len = self.shape.lines().div_ceil(4);
        Some(Pair {
            requests: self.requests.at(client).get()?,
            responses: &self.responses.get()?[client * len..][..len],
        })
    }

    /// The lines of all clients that have come. None until the server has made its own.
    #[inline(always)]
    fn pairs(&self) -> impl Iterator<Item = Pair<'_>> {
        let responses = self.responses.get().unwrap_or_default();
        let each = responses.chunks_exact(self.shape.lines().div_ceil(4));
        each.enumerate().filter_map(|(client, responses)| {
            let requests = self.requests.at(client).get()?;
            Some(Pair {
                requests,
                responses,
            })
        })
    }
}

impl<'a> Pair<'a> {
    /// The response to line `line`.
    #[inline(always)]
    fn response(self, line: usize) -> &'a Response {
        &self.responses[line / 4].0[line % 4]
    }
}

impl Response {
    /// The answer, if it is there: if the response's toggle is `toggle`. `None` if the server has
    /// not answered yet.
    ///
    /// # Safety
    /// The caller is the line's client, and `toggle` is that of its request.
    #[inline(always)]
    unsafe fn look(&self, toggle: u64) -> Option<u64> {
        // Acquire: pairs with the Release in `answer`; the value is there, what the server did
        // is seen, and both lines are the client's again.
        (self.toggle.load(Ordering::Acquire) == toggle).then(|| {
            self.value.with(|value| {
                // SAFETY: the toggles are equal, so the server leaves the value alone.
                unsafe { *value }
            })
        })
    }

    /// Writes the answer and turns the toggle.
    ///
    /// # Safety
    /// The caller is the server and has executed the line's request.
    #[inline(always)]
    unsafe fn answer(&self, value: u64) {
        self.value.with_mut(|place| {
            // SAFETY: the toggles differ, so the client leaves the value alone.
            unsafe { *place = value };
        });
        // Release: pairs with the Acquire in `look`; the value is there, and the request line
        // is its client's again.
        self.toggle
            .store(load_own(&self.toggle) ^ 1, Ordering::Release);
    }
}

impl<C> Sealed for PairLines<C> {}

// SAFETY: the pages of this module and of `line` argue who owns a line and its response.
unsafe impl<C: FnOnce(u64)> Protocol for PairLines<C> {
    type Setting = Shape;
    type Server = ();
    type Client = LinesClient<C>;

    fn new(shape: Shape, clients: usize) -> Self {
        Self {
            shape,
            requests: Rows::of(clients, shape.lines()),
            responses: Row::of(clients * shape.lines().div_ceil(4)),
            callback: PhantomData,
        }
    }

    unsafe fn server(&self) {
        let response = || Response {
            value: UnsafeCell::new(0),
            toggle: AtomicU64::new(0),
        };
        let four = |_| FourResponses(std::array::from_fn(|_| response()));
        // SAFETY: this is the server (the caller's duty).
        unsafe { self.responses.make(four) };
    }

    unsafe fn client(&self, index: usize) -> LinesClient<C> {
        let row = self.requests.at(index);
        // SAFETY: this is the only client of that number, and what earlier ones did happens before
        // this (the caller's duty).
        unsafe { row.make(|_| RequestLine::new()) };
        LinesClient::new(self.shape, index, row.get().expect("it was made just now"))
    }

    unsafe fn leave(&self, client: &mut LinesClient<C>) {
        // SAFETY: `client` made the state for these lines (the caller's duty).
        unsafe { client.leave(self) };
    }

    #[inline]
    unsafe fn pass(&self, (): &mut ()) -> Work {
        let mut work = Work::default();
        for pair in self.pairs() {
            for (number, line) in pair.requests.iter().enumerate() {
                let response = pair.response(number);
                // SAFETY: this is the server (the caller's duty), and it turns that toggle below.
                if let Some(request) = unsafe { line.look(load_own(&response.toggle)) } {
                    // SAFETY: the object is the server's (the caller's duty); the toggle is turned
                    // below, so this request is not found again.
                    let value = unsafe { request.run() };
                    // SAFETY: this is the server, which has just executed the line's request.
                    unsafe { response.answer(value) };
                    work.requests += 1;
                }
            }
        }
        // Each request is answered on its own.
        work.batches = work.requests;
        work
    }

    unsafe fn is_quiet(&self) -> bool {
        self.pairs().all(|pair| {
            let mut lines = pair.requests.iter().enumerate();
            // SAFETY: nobody is a client, and whatever clients did happens before this (the
            // caller's duties).
            lines.all(|(number, line)| unsafe {
                pair.response(number).look(line.own_toggle()).is_some()
            })
        })
    }

    fn footprint(&self) -> Footprint {
        let of_client = LinesClient::<C>::bytes(self.shape);
        Footprint {
            requests: size_of::<RequestLine>() * self.shape.lines() * self.requests.len(),
            responses: size_of::<FourResponses>() * self.responses.len(),
            server: 0,
            clients: of_client * self.requests.len(),
        }
    }
}

impl<C> fmt::Debug for PairLines<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PairLines")
            .field("shape", &self.shape)
            .finish_non_exhaustive()
    }
}
