//! What is shown rather than measured: effects that a program can have, made visible.
//!
//! | module | idea |
//! |---|---|
//! | [`greedy`] | a member of a flat team that asks only itself, and who gets nothing then (D13) |

pub mod greedy;
