//! A course in scalability, step by step, and two demonstrations of effects that a program can
//! have.
//!
//! | module | idea |
//! |---|---|
//! | [`race`] | several threads count in one number: lost updates, and what being right costs (L9) |
//! | [`list`] | the ladder: insertion into lists, and the obstacles to its scaling (L1–L6) |
//! | [`why`] | the time of the ladder's threads, split by what it went into (L7) |
//! | [`profile`] | what perf sees of a rung, function by function (L7) |
//! | [`timeline`] | parts of work, thread by thread (L4) |
//! | [`hash`] | an exercise: a hash table that the reader makes scale, checked and marked (L8) |
//! | [`guess`] | a guess that the reader makes before a step runs |
//! | `printed` | the figures that the course's source prints, beside the reader's |
//! | [`shown`] | the output of a step, for the terminal and for the handout |
//! | [`report`] | the handout: all steps as one page, and as one file of results |
//! | [`greedy`] | a demonstration: a member of a flat team that asks only itself and starves the
//! others (D13) |
//! | [`order`] | a demonstration: one client's requests on one request line, and on several (D14)
//! |

#![deny(unsafe_code)]

pub mod greedy;
pub mod guess;
pub mod hash;
pub mod list;
pub mod order;
mod printed;
pub mod profile;
pub mod race;
pub mod report;
pub mod shown;
pub mod timeline;
pub mod why;
