//! corelay-corelay
