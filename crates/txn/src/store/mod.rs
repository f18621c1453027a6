//! A transactional store in memory: typed tables, and transactions over them.
//!
//! ```
//! use corelay_txn::store::{Silo, Store};
//!
//! let store = Store::new(Silo);
//! let balances = store.table::<u64, i64>("balances")?;
//! let by_owner = store.ordered::<(String, u64), ()>("by owner")?;
//! store.transact(|tx| {
//!     for (account, owner) in [(1, "ada"), (2, "bob")] {
//!         tx.insert(&balances, account, 100)?;
//!         tx.insert(&by_owner, (owner.to_owned(), account), ())?;
//!     }
//!     Ok(())
//! })?;
//!
//! // Both rows change, or none.
//! store.transact(|tx| {
//!     tx.update(&balances, &1, |cents| *cents -= 30)?;
//!     tx.update(&balances, &2, |cents| *cents += 30)
//! })?;
//! let sum = store.read_only(|tx| {
//!     Ok(tx.get(&balances, &1)?.unwrap_or(0) + tx.get(&balances, &2)?.unwrap_or(0))
//! })?;
//! assert_eq!(sum, 200);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Which protocol
//! The protocol is the store's type, and every one of them offers the same.
//!
//! | protocol | isolation | reads | take it for |
//! |---|---|---|---|
//! | [`Silo`] | strictly serializable | the newest; may be given up | most loads |
//! | [`TicToc`] | serializable | the newest; may be given up | rows that many read and some write |
//! | [`Occ`] | strictly serializable | one moment, also before an abort; may be given up | closures that must not see a mixture |
//! | [`Mvcc`] | [three to choose from](Isolation) | a snapshot; never given up | long reads beside writers |
//!
//! [`Occ`] and [`Mvcc`] draw times from a [`Clock`](corelay_clock::Clock): one counter
//! ([`Logical`](corelay_clock::Logical)), or each core's own ([`Ordo`](corelay_clock::Ordo)).
//!
//! # When not to use it
//! * One map without transactions over several keys: a concurrent map, or a delegated one, does less.
//! * Rows that must outlive the process: this store is in memory.
//! * Large values that change by a few bytes: a write copies its row. Split the row, or put the large
//!   part behind an [`Arc`](std::sync::Arc).
//! * One hot row: its writers abort each other. Delegate it.
//!
//! # Guarantees
//! * **Isolation** as in the table, phantoms included: a transaction that found a key absent, or
//!   read a range, does not commit if another one has put a row there meanwhile. Under
//!   [`Isolation::Snapshot`] write skew is possible, with phantoms too.
//! * **Mixtures.** An attempt that is going to be given up may see rows of different moments under
//!   [`Silo`] and [`TicToc`]. An error that its closure returns then, or a panic, counts for nothing:
//!   the closure is run again. A closure that loops for ever on a mixture is not interrupted. Under
//!   [`Occ`] an attempt sees one moment, except for keys that it finds absent; under [`Mvcc`] always.
//! * **Progress.** A transaction that has been aborted more than 64 times
//!   ([`Store::with_attempts`]) runs alone: all other commits wait until it has committed.
//! * **Panic.** If the closure panics, nothing is written, and the panic goes on. If a key's `Ord`,
//!   `Eq` or `Hash` panics during a commit, so does the transaction, without effect; if it panics when
//!   a removed row's key is taken out of its table, the key stays there, absent.
//! * **Keys.** `Ord`, `Eq` and `Hash` of a key must not run transactions of the same store: they are
//!   called during commits, and would wait for themselves.
//! * **Values** are handed out by clone, or shown to a closure. A value is dropped on any thread that
//!   uses the store, some transactions after it was replaced, when nobody can be reading it.
//! * **Memory.** Replaced rows are freed when every transaction has ended that could read them. A
//!   transaction that sleeps between two operations is [refused](Reason::Refused) when they take more
//!   than a limit ([`Store::with_old_versions`]), 256 MiB by default. Chunks of memory are kept until
//!   the store and its tables are gone.
//! * **Nesting.** A transaction inside the closure of another one is a transaction of its own, and
//!   commits first. Inside one that runs alone it would wait for ever, and panics instead.
//! * **Fibres.** A closure may wait; nothing is locked while it runs, unless it runs alone.
//! * **A wrong clock.** Transactions that write are checked by what they have read, not by times; a
//!   clock that breaks its promises lets [`Mvcc`]'s snapshots, and the reads of [`Occ`], be of more
//!   than one moment, and never makes memory unsafe.
//! * **Idle cost.** None; no thread of its own.
//!
//! # How it works
//! | module | idea |
//! |---|---|
//! | `record` | a record's word points to its newest version, whose value never changes |
//! | `work` | what a transaction has read, missed, and is going to write |
//! | `commit` | the steps of a commit, and why they are serializable |
//! | `protocol` | which version is seen, which stamp is drawn, what must still be true |
//! | `index` | keys to records, by hash and in order, and gaps where there is none |
//! | `pins`, `claim`, `limbo` | which memory a running transaction may still reach |
//! | `sweep` | old versions are cut off, and removed records unlinked |
//! | `slab` | memory for records and versions |
//!
//! Why it is built so, and what lost: [design note
//! 0020](https://github.com/corelay/corelay/blob/main/docs/design/0020-store.md).

mod claim;
mod commit;
// Not wired to the store yet.
#[doc(hidden)]
pub mod disk;
mod error;
mod garbage;
mod hashed;
mod index;
mod limbo;
mod ordered;
mod pins;
mod protocol;
mod range;
mod record;
mod report;
mod slab;
mod stats;
#[allow(clippy::module_inception)]
mod store;
mod sweep;
mod table;
mod tx;
mod work;

pub use error::{Abort, TableError};
pub use hashed::Hashed;
pub use index::ordered::OrderedKey;
pub use ordered::Ordered;
pub use protocol::{Isolation, Mvcc, Occ, Protocol, Silo, TicToc};
pub use report::{Aborts, Report, TableReport};
pub use stats::Reason;
pub use store::Store;
pub use table::{HashTable, OrderedTable, Table};
pub use tx::{Result, Tx};
