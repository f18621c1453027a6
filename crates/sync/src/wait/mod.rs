//! The waiting seam.
