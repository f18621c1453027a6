//! corelay-locks
