//! A figure that was measured: its file, and what is drawn and said of it.
//!
//! | module | idea |
//! |---|---|
//! | [`outcome`] | what was measured, as a file |
//! | [`offsets`] | offsets between clocks, which some figures show |
//! | [`quantity`] | what stands on a vertical axis |
//! | [`measured`] | an outcome as figures' words ask for it: values, peaks, knees |
//! | `tables` | its tables |
//! | [`page`] | its page |

#![forbid(unsafe_code)]

pub mod measured;
pub mod offsets;
pub mod outcome;
pub mod page;
pub mod quantity;
mod tables;
