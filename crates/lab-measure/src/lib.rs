//! Measuring: samples of the ways of sharing, on machines that move under you.
//!
//! | module | idea |
//! |---|---|
//! | [`workload`] | what the threads do |
//! | [`method`] | the ways of sharing |
//! | [`measure`] | samples: a crew, probes around them, contenders in turn |
//! | [`schema`] | the one JSON schema of results |
//! | [`host`] | the machine that a program runs on, and Ctrl-C |
//! | [`machine`] | what machine this is, for a result file |

#![deny(unsafe_code)]

pub mod host;
pub mod machine;
pub mod measure;
pub mod method;
pub mod schema;
pub mod workload;
