//! The cost of single instructions, in cycles: a locked one against the plain one.

/// An instruction, and the time that it took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// The instruction in words.
    pub what: &'static str,
    /// The time of one, in nanoseconds.
    pub ns: f64,
    /// The same in cycles of the core.
    pub cycles: f64,
}

/// Measures what locked and plain instructions cost this thread, on a word that no other thread uses.
/// The list is empty where the instructions of the architecture are not known.
///
/// ```
/// for cost in corelay_lab_measure::measure::cost::costs() {
///     println!("{}: {:.1} cycles", cost.what, cost.cycles);
/// }
/// ```
pub fn costs() -> Vec<Cost> {
    #[cfg(target_arch = "x86_64")]
    let costs = super::locked::costs().into();
    #[cfg(not(target_arch = "x86_64"))]
    let costs = Vec::new();
    costs
}
