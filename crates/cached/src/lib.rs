//! A cache server that speaks memcached's protocol, on delegated shards. It is not finished: so far
//! there is the [`store`] of a shard.

#![forbid(unsafe_code)]

pub mod store;
