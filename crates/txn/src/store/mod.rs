//! A transactional store: typed tables in memory, kept on disk where asked, and transactions over
//! them.
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
//! * More rows than the memory holds: tables that are kept on disk are in memory, too.
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
//! * **Keys.** `Ord`, `Eq` and `Hash` of a key must not run transactions or snapshots of the same store, nor
//!   wait for its handles: they are called during commits, and would wait for themselves. `Serialize` and
//!   `Deserialize` may.
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
//! * **Idle cost.** None; no thread of its own. A store that is kept on disk has one, which sleeps.
//!
//! # Kept on disk
//! [`Store::open`] opens a store in a directory. Its tables are in memory; those that are made by
//! [`Store::kept_table`] and [`Store::kept_ordered`] are also kept there. Every commit that changes them
//! is written to a log, together with all others of its *epoch*, by one thread (Tu and others, 2013).
//!
//! * **Durability.** The handle of [`Store::transact_durable`] says when a commit is on disk: written
//!   and confirmed by it (`fdatasync`; see [`Durability`] for less). Epochs become durable one after the
//!   other. A commit is never in an older epoch than one whose rows it has read or written over.
//! * **After a crash**, at any byte, the store opens to the end of an epoch: all commits that were
//!   answered as durable are there, and of the others a prefix, each of them whole.
//!   [`Store::recovered`] says what was dropped. In the order of serialization it is a prefix, too, by
//!   protocols that check at the commit that what was read is the newest. Under [`TicToc`] and
//!   [`Isolation::Snapshot`] a commit that is lost may be ordered before one that is there, if that only wrote
//!   over what the lost one had read.
//! * **A damaged log** does not open, unless [`Options::salvage`] says so: a torn end is what crashes
//!   leave, and anything else is not.
//! * **A disk that fails** ends all later commits to kept tables with [`Reason::Disk`]; see
//!   [`Store::disk_failure`]. It is never tried again: what the disk has lost is not known.
//! * **The log grows** until [`Store::snapshot`] replaces it. Each opening reads the newest snapshot and
//!   the log since.
//! * **Types.** A table opens with the types that it was made with, by their names
//!   ([`type_name`](std::any::type_name)). A type that was renamed, or that another compiler names
//!   otherwise, opens with a [`Codec`] of the old `tag`; for rows that live long, give a `tag` of your own
//!   from the beginning. What a type *contains* is not compared.
//! * **Tables** are never dropped from the disk, also if nobody opens them.
//! * **Limits.** A key has up to 1 MiB as bytes, a row 64 MiB, and all that a transaction writes 1 GiB.
//!
//! # How it works
//! | module | idea |
//! |---|---|
//! | `record` | a record's word points to its newest version, whose value never changes |
//! | `work` | what a transaction has read, missed, and is going to write |
//! | `run` | the loop that runs a transaction until it has committed |
//! | `commit` | the steps of a commit, and why they are serializable |
//! | `protocol` | which version is seen, which stamp is drawn, what must still be true |
//! | `index` | keys to records, by hash and in order, and gaps where there is none |
//! | `pins`, `claim`, `limbo` | which memory a running transaction may still reach |
//! | `sweep` | old versions are cut off, and removed records unlinked |
//! | `slab` | memory for records and versions |
//! | `kept` | tables that are kept on disk, and how commits get into the log |
//! | `disk` | the log, snapshots and recovery; it knows rows as bytes only |
//!
//! Why it is built so, and what lost: [design note
//! 0020](https://github.com/corelay/corelay/blob/main/docs/design/0020-store.md).

mod claim;
mod commit;
#[doc(hidden)]
pub mod disk;
mod error;
mod garbage;
mod hashed;
mod index;
mod kept;
mod limbo;
mod ordered;
mod pins;
mod protocol;
mod range;
mod record;
mod report;
mod run;
mod slab;
mod stats;
#[allow(clippy::module_inception)]
mod store;
mod sweep;
mod table;
mod tx;
mod work;

pub use disk::{
    Codec, DecodeError, DiskFailed, DiskReport, Dropped, Durability, Durable, EncodeError,
    OpenError, Options, Recovered, RecoveredSnapshot, SnapshotError, SnapshotReport,
};
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
