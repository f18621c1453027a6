//! The queues of fibres that are ready to run.

pub(crate) mod inbox;
pub(crate) mod lane;
pub(crate) mod pinned;
pub(crate) mod ring;
