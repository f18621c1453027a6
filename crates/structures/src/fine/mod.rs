//! Structures with a lock for each node, bucket or end: the rivals of the literature.
//!
//! Threads use one of them at once, by `&self`, and each call locks only what it changes. They are
//! there to be compared with plain structures [behind a trustee or a lock](crate::seq), and to be
//! used where they win: on large structures, whose threads seldom want the same place.
//!
//! | type | idea | a look-up | source |
//! |---|---|---|---|
//! | [`TwoLockQueue`] | a lock at each end | | Michael and Scott 1996 |
//! | [`LazyList`] | sorted list, a lock in each node | takes no lock | Heller et al. 2005 |
//! | [`BucketMap`] | hash table, a lock for each bucket | locks the bucket | David et al. 2013 |
//! | [`OptimisticSkipList`] | skip list, a lock in each node | takes no lock | Herlihy et al. 2007 |
//! | [`ExternalTree`] | search tree, a lock for each link | takes no lock | David et al. 2015 |
//!
//! ```
//! use corelay_structures::fine::LazyList;
//!
//! let list = LazyList::new();
//! std::thread::scope(|s| {
//!     for thread in 0..3 {
//!         let list = &list;
//!         s.spawn(move || (0..10).for_each(|n| assert!(list.insert(3 * n + thread))));
//!     }
//! });
//! assert!((0..30).all(|key| list.contains(&key)));
//! ```
//!
//! # When not to use it
//! If many threads want the same few entries, or the ends of one queue: each call then waits for a
//! cache line, and delegation or a combining lock moves fewer. If there are more threads than CPUs:
//! see *progress*.
//!
//! # Guarantees
//! * **Order.** Every call on a key, and `push` and `pop`, are linearizable; the page of each
//!   type says when they take effect. `for_each` is not: it passes by while others write.
//! * **Progress.** They are lock-based: a thread that is preempted while it holds a lock holds up
//!   those that need the same place, until it runs again. A waiter spins for about a microsecond,
//!   and then yields its CPU again and again; it does not sleep. A look-up that takes no lock waits
//!   for nobody.
//! * **Where a call may be made.** Anywhere, also on a fibre and in a delegated closure: a wait there
//!   is for another thread that is in a short section, in which it runs no code of yours and is
//!   not suspended. [`BucketMap`] runs keys' `Eq` and closures in its sections, and says what they
//!   may not do.
//! * **Keys** are ordered, or compared and hashed, as `BTreeMap` and `HashMap` do. If a key's `Ord`,
//!   `Eq` or `Hash` contradicts itself, an answer may be wrong, and a call may not return. Memory
//!   stays safe.
//! * **Panics.** If a key's comparison, hash or clone, or a closure of the caller panics, no lock
//!   stays held, and the structure is as before, or the call has taken effect. No structure is
//!   poisoned.
//! * **Memory.** An entry that was removed from a list, a skip list or a tree is dropped later, by
//!   any thread, perhaps after the structure: when every thread has left the calls that may be
//!   reading it (epochs, by `crossbeam-epoch`). So their keys and values are `'static`. At the end
//!   of the process some are never dropped. While keys are compared, or a closure runs, nothing is
//!   freed: they should not wait, and a fibre must not be moved to another thread meanwhile.
//! * **Drop.** A structure drops its entries without recursion, and to the end if the drop of one
//!   panics. A panic of a removed entry's drop is not passed on, because it would come out of a call
//!   that happens to free memory; the panic hook tells of it.
//! * **Idle cost.** None: no structure owns a thread or a registration.

mod bucket_map;
mod external_tree;
mod lazy_list;
mod link;
mod lock;
mod skip_list;
mod tower;
mod two_lock_queue;

pub use bucket_map::BucketMap;
pub use external_tree::ExternalTree;
pub use lazy_list::LazyList;
pub use skip_list::OptimisticSkipList;
pub use two_lock_queue::TwoLockQueue;
