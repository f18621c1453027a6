//! The facade: `std`, or a model checker or a made-up machine in its place.
//!
//! corelay's protocols take their atomics, cells, threads, thread-locals and spin
//! hints from here, never from `std`:
//!
//! * ordinarily this is `std` and costs nothing;
//! * with `--cfg corelay_loom` and the feature `loom` it is `loom`, which runs every interleaving and every
//!   permitted stale read of a small test;
//! * with `--cfg corelay_shuttle` and the feature `shuttle` it is `shuttle`, which runs random schedules of
//!   larger ones (interleavings only: it does not see weak memory);
//! * with `--cfg corelay_lines` it is a made-up machine of up to 512 hardware threads, which
//!   counts the cache lines that move between them. `corelay-lines` sets it, for packages of its
//!   own that have the same sources.
//!
//! Under `--cfg corelay_tsan` stand-alone fences become read-modify-writes on one word, because
//! ThreadSanitizer does not understand fences. Under `--cfg corelay_tsan` and `--cfg corelay_asan`
//! the sanitizers are told of the switches of [coroutines](crate::wait::CoroutineState).

#[cfg(corelay_lines)]
mod lines;
#[cfg(corelay_loom)]
mod loom;
#[cfg(not(corelay_loom))]
mod no_shadow;
#[cfg(not(any(corelay_loom, corelay_lines)))]
mod plain_cell;
#[cfg(corelay_shuttle)]
mod shuttle;
#[cfg(not(any(corelay_loom, corelay_shuttle, corelay_lines)))]
mod std;
#[cfg(not(corelay_lines))]
mod unwatched;

#[cfg(corelay_lines)]
pub use self::lines::*;
#[cfg(corelay_loom)]
pub use self::loom::*;
#[cfg(not(corelay_loom))]
pub use self::no_shadow::Shadow;
#[cfg(corelay_shuttle)]
pub use self::shuttle::*;
#[cfg(not(any(corelay_loom, corelay_shuttle, corelay_lines)))]
pub use self::std::*;
/// Accesses to plain memory, by address. Only the facade that counts lines uses them.
#[cfg(not(corelay_lines))]
pub mod memory {
    pub use super::unwatched::{prefetch, read, write};
}

/// Whether this build is for a model checker, so that spin budgets and sizes shrink. It is false in
/// builds that count lines, which run with the shipped sizes.
pub const MODEL: bool = cfg!(any(corelay_loom, corelay_shuttle));
