//! The clocks that the lab measures with. The boundary is measured once and used by all. As for
//! `corelay clock`, this machine's history raises it to the largest of this boot.

use super::spec::Scale;
use corelay_clock::{Calibration, Clock, History, HistoryError, Identity, Ordo};
use corelay_lab_measure::measure::mode::state_file;
use std::path::PathBuf;
use std::sync::OnceLock;

/// Makes an Ordo clock with this machine's boundary, multiplied by `scale`.
///
/// # Errors
/// The reason why the cores' clocks cannot be used here.
pub fn ordo(scale: Scale) -> Result<Ordo, String> {
    let ticks = scaled(calibration()?, scale)?;
    Ordo::try_with_boundary(ticks).map_err(|unfit| unfit.to_string())
}

/// The boundary at `scale`, in ticks of the counter and in nanoseconds; `None` if the machine has
/// none.
pub(crate) fn boundary_of(scale: Scale) -> Option<(u64, f64)> {
    let calibration = calibration().ok()?;
    let ticks = scaled(calibration, scale).ok()?;
    Some((ticks, calibration.rate.nanoseconds(ticks as f64).value))
}

/// The boundary of a calibration at `scale`, in ticks.
fn scaled(found: &Calibration, scale: Scale) -> Result<u64, String> {
    // Rounded up, so that a factor of 1 does not lose a tick.
    Ok((boundary(found)? as f64 * scale.factor()).ceil() as u64)
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

/// The calibration of the process's shared clock, between all CPUs of this process.
fn calibration() -> Result<&'static Calibration, String> {
    let shared = Ordo::shared().map_err(|why| format!("Ordo cannot be had here: {why}"))?;
    let calibration = shared.calibration();
    calibration.ok_or_else(|| "Ordo's boundary was not measured here".to_owned())
}

/// The boundary of a fresh calibration, or the larger one that the history has for this boot.
fn boundary(found: &Calibration) -> Result<u64, String> {
    static STORED: OnceLock<Result<u64, String>> = OnceLock::new();
    let stored = STORED.get_or_init(|| stored(found)).clone()?;
    Ok(found.boundary.max(stored))
}

/// The largest boundary that the history has for this boot, 0 if there is none.
fn stored(found: &Calibration) -> Result<u64, String> {
    let Ok(identity) = Identity::current() else {
        return Ok(0);
    };
    let Some(path) = history_file(&identity) else {
        return Ok(0);
    };
    match History::open(path, identity) {
        Ok(mut history) => Ok(history.clock(found.clone()).boundary()),
        Err(HistoryError::File(..)) => Ok(0),
        Err(error) => Err(format!(
            "the history of the clocks: {error} (`corelay clock --forget` deletes it)"
        )),
    }
}

/// The file of a machine's history in the user's state folder. Several machines may share the
/// folder. `None` if there is no such folder.
pub fn history_file(identity: &Identity) -> Option<PathBuf> {
    // FNV-1a, because names only have to differ.
    let hash = identity
        .machine
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
    state_file(&format!("clock-{hash:016x}.json"))
}

#[test]
fn each_machine_has_its_own_file() {
    let file = |machine: &str| {
        history_file(&Identity {
            machine: machine.to_owned(),
            boot: String::new(),
        })
    };
    assert!(file("one").is_none() || file("one") != file("another"));
    assert_eq!(file("one"), file("one"));
}
