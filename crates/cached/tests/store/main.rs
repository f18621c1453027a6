//! The store of a shard against models.

mod expiry;
mod hits;
mod large;
mod model;
mod steps;
