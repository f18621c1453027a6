//! Concurrent algorithms whose operations a [`Clock`](corelay_clock::Clock) orders. The same code
//! runs on one shared counter and on each core's own hardware clock.
//!
//! | module | idea |
//! |---|---|
//! | [`rlu`] | read-log-update: many objects read under one snapshot, locked one by one |
//! | [`tl2`] | transactional memory: variables read and written as if nobody else did |
//! | [`oplog`] | logs of updates, one for each session, merged by time when somebody reads |
//! | [`store`] | tables of rows, read and written in transactions |

pub mod oplog;
pub mod rlu;
mod serial;
mod sleepers;
pub mod store;
pub mod tl2;
