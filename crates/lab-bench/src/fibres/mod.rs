//! The five benchmarks of fibres (C2–C7), for corelay's fibres and for other runtimes.
//!
//! | module | contents |
//! |---|---|
//! | [`spec`] | the parameters of a run, and the checks of its result |
//! | [`method`] | the runtimes: corelay's fibres that stay or migrate, and peers |
//! | [`session`] | samples of all methods, interleaved and bracketed by the probe |
//! | `own` | runs on corelay's fibres: `team` starts and ends them, a file has each loop |
//! | `chains` | migrations that follow one another |
//! | `migrate` | fibres that stay and fibres that migrate |

mod chains;
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
