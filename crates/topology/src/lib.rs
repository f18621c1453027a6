//! corelay-topology
