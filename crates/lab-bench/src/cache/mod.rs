//! A load for cache servers: measures any server that speaks memcached's text protocol.
//!
//! | module | contents |
//! |---|---|
//! | [`options`] | the parameters of a load, and which of them contradict each other |
//! | [`address`] | the address of a server, and streams to it |
//! | `keys` | names of keys, sizes and contents of values |
//! | `draw` | the requests of a load, drawn one by one |
//! | `request` | requests as bytes |
//! | `answer` | answers as bytes, however they are split |
//! | `connection` | a connection with its requests in flight |
//! | `drive` | the loop of a load thread, closed or open |
//! | `tally` | counts and latencies |
//! | [`process`] | a server that the lab starts and ends |
//! | `hello` | the first question: whether this is such a server at all |
//! | [`session`] | blocks of load, in turns if there are two servers |
//! | `summary` | the runs of a session |
//!
//! A load thread is one event loop (`epoll`, edge-triggered, by mio) over its connections. In a turn a
//! connection takes one read and one write: the read has all answers of the batch that was in
//! flight, and the write all requests of the next. Nothing is allocated for a request. One look at
//! the clock serves both as the time of the answers and as the time at which the next requests are
//! sent.
//!
//! Against `examples/canned.rs`, a server that only counts lines, one load thread reaches 0.20 million
//! gets per second with 64 connections, 2.7 million if each sends 16 in a write, and 7.1 million with 64
//! (each answered with 32 bytes; AMD EPYC, two virtual CPUs of a KVM guest, near, 5 s each).

pub mod address;
mod answer;
mod connection;
mod draw;
mod drive;
mod hello;
mod keys;
pub mod options;
pub mod process;
mod request;
pub mod session;
mod summary;
mod tally;

/// The reason why a load could not be measured, in a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The input is at fault: a flag, or the command of a server.
    Input(String),
    /// The server is at fault, or the system.
    Server(String),
}
