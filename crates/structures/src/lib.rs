//! Building blocks of concurrent structures.
//!
//! | module | idea |
//! |---|---|
//! | [`pool`] | nodes of one type, allocated and freed by many threads |

pub mod pool;
