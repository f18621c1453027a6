//! The five benchmarks of fibres (C2–C7), for corelay's own and for others.
//!
//! | module | idea |
//! |---|---|
//! | [`spec`] | what is asked, and what came of it |
//! | [`method`] | whose fibres: corelay's, those that migrate, and others' |
//! | [`session`] | samples of all methods, interleaved and bracketed by the probe |
//! | `own` | corelay's own: `team` starts and ends them, a file each holds the loop |
//! | `migrate` | whether they stay where they first ran |

mod churn;
mod cycle;
mod locality;
pub mod method;
mod migrate;
mod own;
pub mod session;
pub mod spec;
mod team;
mod transfer;
mod yield_;

use corelay_fibre as fibre;
