//! A measured figure: its file, its pictures and its words.
//!
//! | module | idea |
//! |---|---|
//! | [`outcome`] | the file of a measured figure |
//! | [`offsets`] | offsets between clocks, which some figures show |
//! | [`quantity`] | the quantities on a vertical axis |
//! | [`stack`] | bars that show the parts of wholes |
//! | [`measured`] | questions about an outcome: values, peaks, knees |
//! | `tables` | the tables |
//! | [`page`] | the page |

#![forbid(unsafe_code)]

pub mod measured;
pub mod offsets;
pub mod outcome;
pub mod page;
pub mod quantity;
pub mod stack;
mod tables;
