//! What is shown rather than measured: effects that a program can have, made visible.
//!
//! | module | idea |
//! |---|---|
//! | [`greedy`] | a member of a flat team that asks only itself, and who gets nothing then (D13) |
//! | [`order`] | one client's requests on one request line, and on several (D14) |

pub mod greedy;
pub mod order;
