//! The ladder (L1–L6): keys are inserted into doubly linked lists. Each rung removes one reason
//! why two threads are not twice as fast as one.
//!
//! | module | idea |
//! |---|---|
//! | [`rungs`] | the ways to insert, a file each: the sources that `--source` shows |
//! | [`job`] | the work of a rung: keys, threads that start together, a stopwatch for each |
//! | [`nodes`] | the list, and the owners of its nodes |
//! | `heads` | the lists' heads, side by side or apart |
//! | `keys` | keys in no particular order, and the check that each is in the list once |
//! | `usage` | the kernel's counts |
//! | [`ladder`], [`show`] | the whole ladder, and its output |
//! | `words` | the sentences about the figures |
//! | [`ballpark`] | the throughput by a sum of costs, before the first run |
//! | [`flags`] | the parts of the ladder in any combination, and what each gains |
//! | `size` | the size of the runs, in words |
//! | [`climb`] | rungs measured in turn, in blocks of one mode of the machine |

pub mod ballpark;
pub mod climb;
mod elsewhere;
pub mod flags;
pub(crate) mod heads;
pub mod job;
pub(crate) mod keys;
pub mod ladder;
mod memory;
mod neighbour;
pub mod nodes;
pub mod rungs;
pub mod show;
mod size;
pub(crate) mod usage;
pub(crate) mod words;
