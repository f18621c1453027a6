//! Structures to share, and building blocks of concurrent ones.
//!
//! | module | idea |
//! |---|---|
//! | [`fine`] | the literature's structures with a lock for each node, bucket or end |
//! | [`lockfree`] | queues, a stack and a sorted list without locks |
//! | [`pool`] | nodes of one type, allocated by a thread for itself, freed by any |
//! | [`published`] | a read-mostly value: loads ask nobody, a trustee makes the updates |
//! | [`seq`] | plain structures, to be put behind a trustee or a lock |
//! | [`sharded`] | structures split over trustees: a hash map, and any other |
//!
//! ```
//! use corelay_structures::pool::{Pool, Pooled};
//!
//! struct Node {
//!     value: u64,
//!     next: Option<Pooled<Node>>,
//! }
//!
//! let pool = Pool::new();
//! let session = pool.session(); // this thread's own
//! let mut list = None;
//! for value in 0..3 {
//!     list = Some(session.alloc(Node { value, next: list }));
//! }
//! let mut sum = 0;
//! while let Some(node) = list {
//!     let Node { value, next } = session.take(node); // moves the value out, frees the node
//!     (sum, list) = (sum + value, next);
//! }
//! assert_eq!(sum, 3);
//! ```
//!
//! The page of each module says when not to use the structure, what it guarantees and how it works.

mod caught;
mod exhaust;
pub mod fine;
pub mod lockfree;
pub mod pool;
#[cfg(not(any(corelay_loom, corelay_shuttle)))]
pub mod published;
mod reclaim;
pub mod seq;
pub mod sharded;
mod step;

pub use self::caught::CallFuture;
