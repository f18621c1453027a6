//! A cache server that speaks memcached's protocol, on delegated shards. It is not finished.

#![forbid(unsafe_code)]

mod batch;
pub mod flags;
mod protocol;
pub mod server;
mod shard;
mod statistics;
pub mod store;
pub mod tls;
