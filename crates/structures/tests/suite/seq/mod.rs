//! The plain structures against those of std, and what a drop leaves.

mod drops;
mod list;
mod lru;
mod maps;
