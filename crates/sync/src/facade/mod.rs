//! `std`, or a model checker in its place.
//!
//! corelay's protocols take their atomics, cells, threads, thread-locals and spin
//! hints from here, never from `std`:
//!
//! * ordinarily this is `std` and costs nothing;
//! * with `--cfg corelay_loom` it is `loom`, which runs every interleaving and every
//!   permitted stale read of a small test;
//! * with `--cfg corelay_shuttle` it is `shuttle`, which runs random schedules of
//!   larger ones (interleavings only: it does not see weak memory).
//!
//! Under `--cfg corelay_tsan` stand-alone fences become read-modify-writes on one
//! word, because ThreadSanitizer does not understand fences.

#[cfg(corelay_loom)]
mod loom;
#[cfg(not(corelay_loom))]
mod plain_cell;
#[cfg(corelay_shuttle)]
mod shuttle;
#[cfg(not(any(corelay_loom, corelay_shuttle)))]
mod std;

#[cfg(corelay_loom)]
pub use self::loom::*;
#[cfg(corelay_shuttle)]
pub use self::shuttle::*;
#[cfg(not(any(corelay_loom, corelay_shuttle)))]
pub use self::std::*;

/// True where the code runs under a model checker: spin budgets shrink to one.
pub const MODEL: bool = cfg!(any(corelay_loom, corelay_shuttle));
