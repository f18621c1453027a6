//! The store of a shard against models.

mod hits;
mod large;
mod model;
