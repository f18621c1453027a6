//! Lock-free structures of the literature.
//!
//! | structure | order | source |
//! |---|---|---|
//! | [`MsQueue`] | first in, first out | Michael and Scott, PODC 1996 |
//! | [`TreiberStack`] | last in, first out | Treiber, 1986; Hendler, Shavit and Yerushalmi, SPAA 2004 |
//! | [`HarrisList`] | ascending keys | Harris, DISC 2001; Michael, SPAA 2002 |
//!
//! They are the rivals to measure delegation and combining against, and ready to use. A thread
//! that is stopped in the middle of a call, by the scheduler or for ever, does not keep others from
//! theirs; no lock can promise that. It does not follow that they are fast: a call under contention
//! moves the same lines as a lock's, and may have to begin again.
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
//! Nodes are boxes. The nodes of [`pool`](crate::pool) would need a session in each thread that
//! pushes, and come back from the collector one by one.

mod elimination;
mod list;
mod node;
mod queue;
mod stack;

pub use list::{HarrisList, IntoKeys};
pub use node::IntoIter;
pub use queue::MsQueue;
pub use stack::TreiberStack;

/// Drops what is left in `values`. If a drop panics, it drops the others before it passes that on.
fn exhaust<I: Iterator>(values: &mut I) {
    struct Rest<'a, I: Iterator>(&'a mut I);
    impl<I: Iterator> Drop for Rest<'_, I> {
        fn drop(&mut self) {
            self.0.by_ref().for_each(drop);
        }
    }
    let rest = Rest(values);
    rest.0.by_ref().for_each(drop);
}
