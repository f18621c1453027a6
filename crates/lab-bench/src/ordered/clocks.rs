//! The clocks that the lab measures with: the boundary is measured once, and then the same for all.

use super::spec::Scale;
use corelay_clock::{Calibration, Ordo};

/// Ordo with the boundary of this machine, multiplied.
///
/// # Errors
/// Why the cores' clocks cannot be used here.
pub fn ordo(scale: Scale) -> Result<Ordo, String> {
    let ticks = calibration()?.boundary as f64 * scale.factor();
    // Rounded up: as measured is not to become a tick less.
    Ordo::try_with_boundary(ticks.ceil() as u64).map_err(|unfit| unfit.to_string())
}

/// The boundary of that scale, in nanoseconds, where there is one.
pub(crate) fn boundary_ns(scale: Scale) -> Option<f64> {
    let calibration = calibration().ok()?;
    let ticks = (calibration.boundary as f64 * scale.factor()).ceil();
    Some(calibration.rate.nanoseconds(ticks).value)
}

/// The offsets of a calibration in nanoseconds, row by row: from the row's CPU to the column's.
pub fn offsets_ns(found: &Calibration) -> Vec<Option<f64>> {
    let cpus = found.offsets.cpus();
    let ns = |ticks: i64| found.rate.nanoseconds(ticks as f64).value;
    let row = |&from: &usize| {
        cpus.iter()
            .map(move |&to| found.offsets.get(from, to).map(ns))
    };
    cpus.iter().flat_map(row).collect()
}

/// That of the process's own clock, between all CPUs of this process.
fn calibration() -> Result<&'static Calibration, String> {
    let shared = Ordo::shared().map_err(|why| format!("Ordo cannot be had here: {why}"))?;
    let calibration = shared.calibration();
    calibration.ok_or_else(|| "Ordo was not measured here".to_owned())
}
