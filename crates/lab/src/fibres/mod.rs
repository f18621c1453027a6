//! The five benchmarks of fibres (C2–C7), for corelay's own and for others.
//!
//! | module | idea |
//! |---|---|
//! | [`spec`] | what is asked, and what came of it |

pub mod spec;
