//! The delegation protocols of the literature, so that corelay's own channel is always measured
//! beside them.
//!
//! A *server* is the thread that owns objects; a *client* asks it for operations on them. The
//! papers differ in the lines by which requests and answers travel:
//!
//! | type | request | answer | source |
//! |---|---|---|---|
//! | [`Ffwd`] | a line per client | two lines for 15 clients, written at once | Roghanchi, Eriksson and Basu 2017 |
//! | [`Rcl`] | a line per client: lock, context, function | in the same line, and in the client's frame | Lozi and others 2012 |
//! | [`AsyncLines`] | N lines per client, a pending queue before them | 16 bytes for each line | the thesis on asynchronous delegation |
//! | [`Member`] | the same lines, and each thread is client and server | the same | its section on flat delegation |
//!
//! ```
//! use corelay_literature::Ffwd;
//! use corelay_sync::facade::atomic::{AtomicBool, Ordering};
//!
//! // Two servers with two counters each, and lines for one client.
//! let (counters, servers) = Ffwd::new(2, 1, 4, |_| 0_u64);
//! let stop = AtomicBool::new(false);
//! std::thread::scope(|s| {
//!     for mut server in servers {
//!         let stop = &stop;
//!         s.spawn(move || server.run(stop));
//!     }
//!     let mut client = counters.client(0).unwrap();
//!     for var in [0, 1, 2, 3, 3] {
//!         client.apply(var, |count: &mut u64| {
//!             *count += 1;
//!             *count
//!         });
//!     }
//!     stop.store(true, Ordering::Release);
//! });
//! let mut seen = Vec::new();
//! counters.inspect(|count| seen.push(*count)).unwrap();
//! assert_eq!(seen, [1, 1, 1, 2]);
//! ```
//!
//! # When not to use it
//! In programs: use `corelay`. These protocols are kept as small as the papers have them, to be
//! measured. A server never sleeps, the number of clients is fixed, and an answer is one word. The
//! limits of the sources hold, too: a delegated operation neither delegates nor blocks.
//!
//! # Guarantees
//! * **Requests.** Each request of a client runs once, on the server of its object, as long as that
//!   server runs. An operation and its captures take a function pointer and five words ([`Rcl`]
//!   leaves them in the client's frame, whatever their size).
//! * **Order.** The requests of a client that waits run in its order. [`AsyncLines`] keeps a
//!   client's order, for each server, with one line, and breaks it with more.
//! * **Panic.** The papers do not mention panics: an operation that panics aborts the process.
//! * **Memory.** Sizes and alignment of lines are the papers', checked at compile time. Each server
//!   makes its objects and response lines on its own thread, each client its request lines on its
//!   own, so each lies on its thread's memory node (of the kernel's default policy).
//! * **Cost.** No atomic read-modify-write for any request; one when a client comes.
//!
//! # How it works
//! Each protocol is a file: its lines, the server's pass over them, the client's half.
//! [`Delegation`] puts objects behind a protocol, and is the safe interface of all of them. Each
//! ordering is listed in `mutants.toml` with the model that fails if it is weakened.

mod delegation;
mod ffwd;
mod flat;
mod footprint;
mod line;
mod lines;
mod objects;
mod rcl;
mod request;
mod row;
mod seats;
mod wait;

pub use delegation::{Blocking, Busy, Client, Delegation, Protocol, Served, Server};
pub use ffwd::{Ffwd, FfwdLines};
pub use flat::{FlatPolicy, Member, Place, Team};
pub use footprint::Footprint;
pub use lines::{Asked, AsyncLines, Line, PairLines, ParseShapeError, Shape, ShapeError};
pub use rcl::{Rcl, RclLines};
