//! corelay-delegate
