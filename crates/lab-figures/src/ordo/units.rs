//! The units of a figure's machine: the slides give the boundary in cycles.

use corelay_lab_measure::schema::Run;
use corelay_lab_report::figure::measured::Measured;
use corelay_lab_report::units::Units;

/// The sentences that define ticks and cycles.
pub(super) const MEANING: &str = "Ticks are what the clocks count, and exact. Cycles of a core are derived from the rate that \
     the kernel has reported, and the core may have run at another one.";

/// Finds the rates that the figure's file has: of the counter by a calibration or by a run's
/// boundary, and of a core by the machine.
pub(super) fn of(m: &Measured<'_>) -> Units {
    let outcome = m.outcome();
    let offsets = outcome.figure.offsets.as_ref();
    let calibrated = offsets.and_then(|offsets| offsets.samples.first()?.ticks_per_ns);
    let by_boundary = |run: &Run| {
        let extra = &run.params.extra;
        Some(extra.boundary_ticks? as f64 / extra.boundary_ns.filter(|ns| *ns > 0.0)?)
    };
    Units {
        ticks_per_ns: calibrated.or_else(|| outcome.results.runs.iter().find_map(by_boundary)),
        core_ghz: m.machine().core_ghz,
    }
}

/// Says what the units are, if both are shown.
pub(super) fn meaning(m: &Measured<'_>) -> Option<String> {
    let Units {
        ticks_per_ns,
        core_ghz,
    } = of(m);
    ticks_per_ns.and(core_ghz).map(|_| MEANING.to_owned())
}
