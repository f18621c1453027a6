//! Lock-free structures of the literature.
//!
//! | structure | order | source |
//! |---|---|---|
//! | [`BlockQueue`] | first in, first out | Yang and Mellor-Crummey, PPoPP 2016; Morrison and Afek, PPoPP 2013 |
//! | [`MsQueue`] | first in, first out | Michael and Scott, PODC 1996 |
//! | [`TreiberStack`] | last in, first out | Treiber, 1986; Hendler, Shavit and Yerushalmi, SPAA 2004 |
//! | [`HarrisList`] | ascending keys | Harris, DISC 2001; Michael, SPAA 2002 |
//!
//! They are the rivals to measure delegation and combining against, and ready to use. A thread
//! that is stopped in the middle of a call, by the scheduler or for ever, does not keep others from
//! theirs; no lock can promise that. It does not follow that they are fast: a call under contention
//! moves the same lines as a lock's, and may have to begin again.
//!
//! To use a queue, take [`BlockQueue`]; [`MsQueue`] is the one that the literature compares with.
//!
//! # Memory
//! A node that a call unlinks may still be read by others. It is *retired*: freed after every call
//! that was under way at that time has ended, on any structure of this module, on any thread. That
//! is done by `crossbeam-epoch`, whose collector is one for the whole process; a thread that makes
//! calls frees some of what any thread has retired. So:
//!
//! * a thread that stops inside a call keeps all memory that is retired after that;
//! * nodes of a structure that is gone may still be there for a while, and at the end of the
//!   program. They have no values, except for the keys of a [`HarrisList`];
//! * calls may be made anywhere, also in destructors of thread-locals.
//!
//! A [`BlockQueue`] does without epochs: it [frees its blocks](BlockQueue#guarantees) itself.
//!
//! Nodes are boxes. Nodes of the [`pool`](crate::pool) would cost less, but each thread that pushes
//! would need a session of the pool, which a method of a shared structure cannot ask for.
//!
//! # Speed
//! Nanoseconds for a push and a pop, medians of 40 rounds of the example `rivals`, on two virtual
//! CPUs of an AMD EPYC that had other work as well:
//!
//! | | 1 thread | 2 threads, each pushes and pops | 2 threads, one pushes and one pops |
//! |---|---|---|---|
//! | [`MsQueue`] | 69 | 90 | 185 |
//! | `crossbeam_queue::SegQueue` | 19 | 22 | 43 |
//! | `Mutex<VecDeque>` | 12 | 43 | 74 |
//! | [`TreiberStack`] without slots | 71 | 108 | 177 |
//! | [`TreiberStack`] | 73 | 94 | 176 |
//! | `Mutex<Vec>` | 11 | 44 | 84 |
//!
//! Most of that is the node: to allocate it, retire and free it takes 61 ns, and 23 ns from the
//! pool. With two threads elimination makes no difference beyond the spread.
//!
//! In instructions a push and a pop on one thread take 74 with [`BlockQueue`], 145 with `SegQueue` and
//! 519 with [`MsQueue`], allocation and reclamation included (callgrind). Three of the 74 are atomic
//! read-modify-writes.

mod block_queue;
mod elimination;
mod list;
mod node;
mod queue;
mod stack;

pub use block_queue::{BlockQueue, IntoValues};
pub use list::{HarrisList, IntoKeys};
pub use node::IntoIter;
pub use queue::MsQueue;
pub use stack::TreiberStack;
