//! A cache server that speaks memcached's protocols, on delegated shards.
//!
//! Each thread is a member of a flat team (`corelay::Team`), with an event loop, a listening socket and a
//! shard: a part of the keys. A request for a key of its own shard runs at once. Requests for other shards
//! travel to their threads by delegation, those of one read of a connection together, and answers leave in
//! order. No lock is taken for an item.
//!
//! | module | idea |
//! |---|---|
//! | `batch` | the requests of one read to one shard, which travel together |
//! | [`flags`] | the command line |
//! | `protocol` | what clients write and read: text, meta commands, binary |
//! | [`server`] | threads, event loops and connections; [`server::Server`] to embed it |
//! | `shard` | runs operations on a part of the keys |
//! | `statistics` | what a server has done and has |
//! | [`store`] | items by key in bounded memory |
//! | [`tls`] | encryption |

#![forbid(unsafe_code)]

mod batch;
pub mod flags;
mod protocol;
pub mod server;
mod shard;
mod statistics;
pub mod store;
pub mod tls;
