//! The same bytes to corelay-cached and to memcached 1.6.18; the answers are compared byte for
//! byte.
//!
//! - The cases are in `cases/`, the notation is explained in [`case`] and [`escape`].
//! - The answers of memcached 1.6.18 are in `recorded/`. Where it is installed, its answers to the
//!   same cases are compared to the recorded ones; random sequences are sent to it directly.
//! - `CORELAY_CACHED` names another server to test, with arguments: `CORELAY_CACHED="memcached"`.
//! - `CORELAY_REFERENCE` names another reference: `CORELAY_REFERENCE="memcached -C"`.
//! - `CORELAY_CASE` selects the cases whose names contain it.
//! - `CORELAY_RECORD=1` records the reference's answers anew.
//! - `CORELAY_SEED` is the first seed of the random sequences.
//! - `CORELAY_STRESS` multiplies the number of random sequences and of splits.

mod binary;
mod case;
mod escape;
mod exchange;
mod grammar;
mod normal;
#[path = "../support/port.rs"]
mod port;
mod random;
mod recorded;
mod run;
mod sequences;
mod server;
mod suite;
