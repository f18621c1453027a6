//! A duration in the units of the processor beside nanoseconds: ticks of the counter, and cycles of a
//! core.
//!
//! Ticks are what the clocks of the cores count, at one rate whatever a core does. Cycles are what a
//! core executes in, and are only derived: the lab knows the rate that the kernel has reported, and
//! the core may have run at another one.

use crate::plot::significant;

/// The rates of the counter and of a core, as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Units {
    /// Ticks of the CPUs' counter per nanosecond.
    pub ticks_per_ns: Option<f64>,
    /// Cycles of a core per nanosecond, as the kernel reports the rate.
    pub core_ghz: Option<f64>,
}

impl Units {
    /// Names a duration in the known units: `715 ticks of the counter, about 720 cycles of a core at
    /// 2.60 GHz`. Empty if none is known.
    ///
    /// ```
    /// use corelay_lab_report::units::Units;
    /// let units = Units { ticks_per_ns: Some(2.0), core_ghz: Some(3.0) };
    /// let said = units.words(100.0);
    /// assert_eq!(said, "200 ticks of the counter, about 300 cycles of a core at 3.00 GHz");
    /// assert_eq!(Units::default().words(100.0), "");
    /// ```
    pub fn words(self, ns: f64) -> String {
        let ticks = self
            .ticks(ns)
            .map(|ticks| format!("{ticks} ticks of the counter"));
        let cycles = self
            .cycles(ns)
            .zip(self.core_ghz)
            .map(|(cycles, ghz)| format!("about {cycles} cycles of a core at {ghz:.2} GHz"));
        let known: Vec<String> = ticks.into_iter().chain(cycles).collect();
        known.join(", ")
    }

    /// Names a duration as `words` does, in parentheses after a space; empty if no unit is known.
    pub fn beside(self, ns: f64) -> String {
        match self.words(ns) {
            words if words.is_empty() => words,
            words => format!(" ({words})"),
        }
    }

    /// Formats a duration as ticks.
    pub fn ticks(self, ns: f64) -> Option<String> {
        Some(significant(ns * self.ticks_per_ns?))
    }

    /// Formats a duration as cycles of a core.
    pub fn cycles(self, ns: f64) -> Option<String> {
        Some(significant(ns * self.core_ghz?))
    }

    /// Returns the head of a column of cycles: they are derived from a reported rate.
    pub fn cycles_head(self) -> String {
        match self.core_ghz {
            Some(ghz) => format!("cycles at {ghz:.2} GHz"),
            None => "cycles".to_owned(),
        }
    }
}
