//! A course in scalability, step by step; and effects that a program can have, made visible.
//!
//! | module | idea |
//! |---|---|
//! | [`race`] | several threads count in one number: lost updates, and what being right costs (L9) |
//! | [`list`] | the ladder: insertion into lists, and what keeps it from scaling (L1–L6) |
//! | [`why`] | where the time of the ladder's threads goes (L7) |
//! | [`timeline`] | parts of work, thread by thread (L4) |
//! | [`hash`] | an exercise: a hash table that scales, checked and marked (L8) |
//! | [`guess`] | a guess before a step is run |
//! | [`shown`] | what a step has shown, for the terminal and for the handout |
//! | [`report`] | all steps as one page, and as one file of results |
//! | [`greedy`] | a member of a flat team that asks only itself, and who gets nothing then (D13) |
//! | [`order`] | one client's requests on one request line, and on several (D14) |

#![deny(unsafe_code)]

pub mod greedy;
pub mod guess;
pub mod hash;
pub mod list;
pub mod order;
pub mod race;
pub mod report;
pub mod shown;
pub mod timeline;
pub mod why;
