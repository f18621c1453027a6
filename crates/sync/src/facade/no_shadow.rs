//! The shadow of plain memory when no model checker watches it.

/// The shadow of a plain memory area: under loom each unit is a cell whose accesses are checked for
/// races. Here it is empty.
#[derive(Debug)]
pub struct Shadow;

impl Shadow {
    /// A shadow of `units` units.
    #[inline(always)]
    pub fn new(_units: usize) -> Self {
        Self
    }

    /// Says that `len` units from `at` are read now.
    #[inline(always)]
    pub fn read(&self, _at: usize, _len: usize) {}

    /// Says that `len` units from `at` are written now.
    #[inline(always)]
    pub fn write(&self, _at: usize, _len: usize) {}
}
