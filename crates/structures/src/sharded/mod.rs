//! Structures that are split over trustees: [`ShardedMap`], and [`Sharded`] for any other.
//!
//! One trustee is one core. A structure that needs more is split into shards, each a plain
//! sequential value that one trustee owns. A call on one key goes to the trustee of its shard; a
//! batch of keys asks all shards concerned at once and waits once.
//!
//! ```
//! use corelay_delegate::Trustees;
//! use corelay_structures::sharded::ShardedMap;
//! use std::thread;
//!
//! let trustees = Trustees::dedicated(2).start()?;
//! let words = ShardedMap::new(&trustees); // a shard for each trustee
//! thread::scope(|s| {
//!     for text in ["to be or not to be", "to do is to be"] {
//!         let words = words.clone();
//!         s.spawn(move || {
//!             for word in text.split(' ') {
//!                 words.update_or_insert(word, |n| *n += 1, 1);
//!             }
//!         });
//!     }
//! });
//! assert_eq!(words.get_many(["be", "to", "question"]), [Some(3), Some(4), None]);
//! # Ok::<(), corelay_delegate::StartError>(())
//! ```
//!
//! # When not to use it
//! * A map that is mostly read, or that threads seldom want at the same time: a concurrent hash map
//!   with locks or without is cheaper. It spreads its entries over the caches; here each shard is one
//!   core's.
//! * Single calls that wait, and nothing to do meanwhile: each is a round trip between cores.
//!   Batches, callbacks, futures and fibres share round trips.
//! * Invariants over keys of several shards: nothing is atomic over shards. Keep what belongs
//!   together under one key.
//!
//! # Guarantees
//! * **One key.** Calls on one key are linearizable. Requests of one thread to one shard run in the
//!   order in which it made them; nothing is promised across threads or shards.
//! * **Batches** are atomic per shard, not over shards: items of one shard run in their order with
//!   no other call in between; another thread may find the items of one shard done and those of
//!   another not.
//! * **Whole structures.** `len`, `clear`, `retain`, `for_each` and `map_shards` take each shard at a
//!   moment of its own. While nobody writes, they are exact. While others write, every entry that
//!   is there from the call's beginning to its end is seen, once; one that is inserted or removed
//!   meanwhile may be seen or not. A key stays in its shard, so that none is seen twice.
//! * **Order.** By range, shards are in the order of their keys, so what is taken from each in order
//!   is in order over all. A key that is inserted meanwhile is missed in a shard already visited,
//!   and seen in one yet to be visited.
//! * **Panic.** A panic in [`Sharded`]'s closures poisons the shard, like any delegated object, and
//!   reaches the caller. [`ShardedMap`] is not poisoned: see there.
//! * **Waiting.** Calls that wait suspend a fibre, serve on a member of a flat team, and block any
//!   other thread. On a member, its own shard is served at once, without a request.
//! * **Nesting.** Inside a delegated closure, also one that is given to these structures, calls that
//!   wait panic with a message that names them; callbacks and posts are sent afterwards. A launched
//!   closure may wait; one that asks for the shard that it holds itself gets a
//!   [`CircularWait`](corelay_delegate::CircularWait).
//! * **Cancellation.** A wait cannot be interrupted. Dropping a future takes no request back.
//! * **Memory.** Shards are dropped by their trustees after the last handle. The tables of a map
//!   grow, and shrink only by being dropped.
//! * **Idle cost.** None.
//!
//! # How it works
//! | file | idea |
//! |---|---|
//! | `placement` | which shard a key belongs to |
//! | `handle` | the shards, and calls on all of them |
//! | `fan_out` | requests to several shards that borrow from the caller's frame; the one wait |
//! | `batch` | items grouped by shard |
//! | `later` | batches with futures and callbacks |
//! | `panics` | the first of several panics |
//! | `collection` | shards that have a length |
//! | `map` | the hash map; `map/table`: its shards |
//!
//! A map hashes a key once, on the calling thread. The highest seven bits of the hash are the table's
//! tag, those below choose the shard, the lowest choose the bucket, and the table keeps the whole
//! hash with each entry. So trustees never hash.

mod batch;
mod collection;
mod fan_out;
mod handle;
mod later;
mod map;
mod panics;
mod placement;

pub use self::collection::Collection;
pub use self::handle::Sharded;
pub use self::later::ManyFuture;
pub use self::map::ShardedMap;
pub use self::placement::{ByHash, ByRange, Placement};
