//! The ladder (L1–L6): keys are inserted into doubly linked lists, and from rung to rung one reason
//! falls why two threads are not twice as fast as one.
//!
//! | module | idea |
//! |---|---|
//! | [`rungs`] | the ways to insert, a file each: the sources that `--source` shows |
//! | [`job`] | what they are given: keys, threads that start together, a stopwatch for each |
//! | [`nodes`] | the list, and where its nodes come from |
//! | `heads` | the lists' heads, beside each other or apart |
//! | `keys` | keys without an order, and the check that each is there once |
//! | `usage` | what the kernel has counted |
//! | [`ladder`], [`show`] | the whole of it, and what it shows |
//! | [`climb`] | rungs measured in turn, in blocks of one mode of the machine |

pub mod climb;
pub(crate) mod heads;
pub mod job;
pub(crate) mod keys;
pub mod ladder;
mod memory;
mod mi;
mod neighbour;
pub mod nodes;
pub mod rungs;
pub mod show;
pub(crate) mod usage;
