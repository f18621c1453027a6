//! Plain sequential structures, to be put behind a trustee or a lock.
//!
//! They have no atomics and no locks, and their code has no `unsafe`. The literature measures ways
//! of sharing with structures of these layouts, so a comparison with its figures needs them. If
//! you only need a fast structure, the last column names it.
//!
//! | structure | type | to be fast, use |
//! |---|---|---|
//! | sorted linked list | [`SortedList`] | `BTreeSet` |
//! | hash table with chains | [`ChainedMap`] | `HashMap` |
//! | unbalanced binary search tree | [`SearchTree`] | `BTreeMap` |
//! | skip list | [`SkipList`] | `BTreeMap` |
//! | FIFO queue | [`VecDeque`] | the same |
//! | stack | [`Vec`] | the same |
//! | binary heap | [`BinaryHeap`] | the same |
//! | LRU map | [`LruCache`] | the same |
//!
//! The last four are not ours. Std has the queue, the stack and the heap. The nodes of a two-lock
//! queue or a Treiber stack are there so that threads can work on them at once, which a sequential
//! structure does not need; where a figure must have a node for each value, std's `LinkedList` is
//! queue and stack. The LRU map is that of the crate `lru`: a hash table that points to nodes in
//! the order of use. `get` moves an entry to the front, `push` returns the entry that it evicted,
//! and all of it takes O(1).
//!
//! ```
//! use corelay_structures::seq::{LruCache, SortedList};
//! use std::num::NonZeroUsize;
//! use std::sync::Mutex;
//!
//! let shared = Mutex::new(SortedList::new());
//! std::thread::scope(|s| {
//!     for keys in [[1, 4], [2, 3]] {
//!         let shared = &shared;
//!         s.spawn(move || shared.lock().unwrap().extend(keys));
//!     }
//! });
//! assert!(shared.into_inner().unwrap().into_iter().eq([1, 2, 3, 4]));
//!
//! let mut recent = LruCache::new(NonZeroUsize::new(2).unwrap());
//! recent.push("a", 1);
//! recent.push("b", 2);
//! assert_eq!(recent.get("a"), Some(&1));
//! assert_eq!(recent.push("c", 3), Some(("b", 2))); // "b" was used least recently
//! ```
//!
//! # Guarantees
//! * **Keys** are ordered, or compared and hashed, as `BTreeMap` and `HashMap` do: if a key changes
//!   its place, or its `Ord`, `Eq` or `Hash` contradicts itself, an answer may be wrong, a call may
//!   panic, and a search may not end. Memory stays safe.
//! * **Panics.** If a key's comparison, a closure of the caller or the drop of an entry panics, each
//!   of the others is in the structure or has been dropped, once; `len` is right.
//! * **Drop.** Long chains and degenerate trees are dropped without recursion, and to the end if the
//!   drop of one entry panics. A second panic meanwhile ends the process, as everywhere in Rust.
//!
//! [`LruCache`] makes the promises of its crate: if a key's `Hash` or `Eq` panics, it may leak the
//! entry that it was adding.

#![forbid(unsafe_code)]

pub(crate) mod chain;
pub mod chained_map;
pub mod search_tree;
pub mod skip_list;
pub mod sorted_list;

#[doc(no_inline)]
pub use lru::LruCache;
#[doc(no_inline)]
pub use std::collections::{BinaryHeap, VecDeque};

pub use chained_map::ChainedMap;
pub use search_tree::SearchTree;
pub use skip_list::SkipList;
pub use sorted_list::SortedList;
