//! The lab: measures, on the reader's own machine, which way of sharing wins.
//!
//! | module | idea |
//! |---|---|
//! | [`cli`] | the program `corelay`: flags, bad input, exit codes |
//! | [`course`] | effects shown rather than measured |
//! | [`reach`] | the project's targets |

#![deny(unsafe_code)]

pub mod cli;
pub mod course;
pub mod figures;
pub mod reach;
