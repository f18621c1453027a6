//! The lowest layer of corelay, which its other crates build on: atomics that can be model-checked,
//! barriers, waiting, time stamps and tracing.
//!
//! | module | idea |
//! |---|---|
//! | [`facade`] | atomics, cells, threads: `std`, or a model checker in its place |
//! | [`barrier`] | store-to-load order that one side gets for (almost) nothing |
//! | [`Backoff`] | how long to spin, when to yield |
//! | [`Futex`] | sleep until a word changes |
//! | [`wait`] | the waiting seam: how does the code that runs here wait? |
//! | [`Shared`], [`Session`], [`Issue`] | N ways of sharing × M structures |
//! | [`counter`] | the CPU's own counter, with as little order as asked for |
//! | [`ticks`](ticks()) | time stamps that order what different threads do |
//! | [`trace`] | what each thread did when: spans and instants on a timeline |
//! | [`CachePadded`] | one value, its own cache lines |
//!
//! The shipped source of every protocol is compiled against [`facade`], so that
//! `--cfg corelay_loom` and `--cfg corelay_shuttle` run that very source under the
//! model checkers.

// Other crates' documentation, if it is built alone, links to this one's on docs.rs.
#![doc(html_root_url = "https://docs.rs/corelay-sync/0.1.0")]

mod backoff;
pub mod barrier;
pub mod counter;
mod cpus;
pub mod facade;
mod futex;
mod prefetch;
mod shared;
mod ticks;
pub mod trace;
pub mod wait;

pub use backoff::Backoff;
pub use crossbeam_utils::CachePadded;
pub use futex::Futex;
pub use prefetch::{prefetch_read, prefetch_write};
pub use shared::{Issue, Session, Shared};
pub use ticks::{TickSource, ticks, ticks_source};
