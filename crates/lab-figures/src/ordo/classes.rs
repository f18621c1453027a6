//! The two classes of algorithms in the slides ("Algorithms with Ordo handling uncertainty"), and
//! where ours belong.
//!
//! An algorithm that had a logical clock gets physical times instead, compares them, and defers or
//! reverts if the clock leaves the order open. One that lives by physical times takes a new one that
//! is certainly later.

/// The class of read-log-update.
pub(super) const RLU: &str = "Class on the slides: physical to logical timestamping. A section draws the time \
     now and compares it with those of commits. If the order is open, the decision is deferred: the \
     section takes the original, and the writer waits for the section.";

/// The class of transactional memory.
pub(super) const TL2: &str = "TL2 is of the same class as read-log-update. If the order of a version and the transaction is open, \
     it draws a new time and looks again at what it has read, and reverts if that has changed.";

/// The class of logs that are merged at a read.
pub(super) const OPLOG: &str = "Class on the slides: physical timestamping. An update draws a time and waits it out, so \
     that any later update, on whichever core, has a greater time. Each update pays for the boundary, and no \
     reader has to decide anything.";

/// The class of the stores.
pub(super) const STORES: &str = "Class on the slides: physical to logical timestamping. OCC draws a new time if the order is \
     open, looks again at what it has read, and reverts if that has changed. MVCC leaves nothing open: a \
     commit's time is certainly later than one drawn under its locks, for which it waits out the boundary. \
     Silo and TicToc have no clock.";
