//! The lab: measures, on the reader's own machine, which way of sharing wins.

pub mod schema;
