//! Measures ways of sharing data between threads, on machines whose speed changes meanwhile.
//!
//! | module | contents |
//! |---|---|
//! | [`workload`] | what the threads do with the shared objects |
//! | [`method`] | the ways of sharing |
//! | [`measure`] | samples: a crew of threads, probes around each sample, contenders in turn |
//! | [`check`] | whether structures shared by the methods are linearizable |
//! | [`schema`] | the one JSON schema of results |
//! | [`host`] | the machine that the program runs on, and Ctrl-C |
//! | [`machine`] | the description of the machine for a result file |

#![deny(unsafe_code)]

pub mod check;
pub mod host;
pub mod machine;
pub mod measure;
pub mod method;
pub mod schema;
pub mod workload;
