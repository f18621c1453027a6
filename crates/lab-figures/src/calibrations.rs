//! Offsets between the CPUs' clocks, as samples of a figure. The boundary is measured again and
//! again between every ordered pair of CPUs, and all samples are kept.
//!
//! This figure has no contenders and takes no turns, because it measures the machine itself. A
//! sample is a calibration: each pair's *smallest* difference over many rounds. Each is an upper
//! bound of the offset. So the smallest of several samples is an upper bound, too, and the
//! closest.

use super::measure::Pace;
use corelay_clock::{CalibrateError, Calibration, Calibrator};
use corelay_lab_bench::ordered::clocks::offsets_ns;
use corelay_lab_measure::measure::rig::Rig;
use corelay_lab_report::figure::offsets::{Offsets, Sample};
use corelay_topology::CpuSet;
use std::ops::ControlFlow;
use std::time::Duration;

/// The most rounds of a pair in a sample. More would not make the smallest difference smaller.
const ROUNDS: u64 = 1_000_000;
/// The most rounds of a pair in a short run, which only shows that everything runs.
const ROUNDS_SHORT: u64 = 10_000;

/// Rounds after which a pair may end when its time is up: see [`Calibrator::at_most`].
const LEAST_ROUNDS: u64 = 1_000;

/// Time of a round between two CPUs that are far apart. Used for the estimate only.
const ROUND_TIME: Duration = Duration::from_nanos(600);

fn rounds(short: bool) -> u64 {
    if short { ROUNDS_SHORT } else { ROUNDS }
}

/// Estimates the time of the samples on so many CPUs. Disjoint pairs are measured at the same
/// time.
pub(super) fn expected(cpus: usize, short: bool, pace: Pace) -> Duration {
    let all = ROUND_TIME.as_secs_f64() * rounds(short) as f64;
    let least = ROUND_TIME.as_secs_f64() * LEAST_ROUNDS as f64;
    let of_pair = all.min(pace.secs.max(least));
    Duration::from_secs_f64(of_pair * cpus.saturating_sub(1) as f64 * pace.samples as f64)
}

/// Takes the samples. If there are none, returns `None` and adds the reason to `missing`.
pub(super) fn measure(
    cpus: &CpuSet,
    short: bool,
    pace: Pace,
    rig: &Rig,
    tick: &dyn Fn(),
    missing: &mut Vec<String>,
) -> Option<Offsets> {
    let rounds = rounds(short);
    let by = Calibrator::new()
        .cpus(cpus.clone())
        .rounds(rounds)
        .looks(1)
        .at_most(Duration::from_secs_f64(pace.secs));
    let mut samples = Vec::new();
    for _ in 0..pace.samples {
        let found = by.run_with(|_| match rig.is_interrupted() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        });
        match found {
            Ok(found) => samples.push(sample(&found)),
            Err(CalibrateError::Stopped) => break,
            Err(why) => {
                missing.push(format!("Sample {}: {why}.", samples.len() + 1));
                break;
            }
        }
        tick();
    }
    let offsets = Offsets {
        cpus: cpus.iter().collect(),
        rounds,
        samples,
    };
    (!offsets.samples.is_empty()).then_some(offsets)
}

/// Converts a calibration to a sample of the figure's file.
fn sample(found: &Calibration) -> Sample {
    let ns = |ticks: u64| found.rate.nanoseconds(ticks as f64).value;
    let n = found.offsets.cpus().len();
    Sample {
        offsets_ns: offsets_ns(found).chunks(n).map(<[_]>::to_vec).collect(),
        step_ns: ns(found.step),
        boundary_ns: ns(found.boundary),
        ticks_per_ns: Some(found.rate.ticks_per_ns),
        took_s: found.took.as_secs_f64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_cpus_take_longer_and_a_short_pace_does_not() {
        let seconds = |cpus, short, pace| expected(cpus, short, pace).as_secs_f64();
        let (source, fast) = (Pace::SOURCE, Pace::SHORT);
        assert!((seconds(2, false, source) - 6.0).abs() < 1e-9);
        assert!((seconds(240, false, source) - 239.0 * 6.0).abs() < 1e-6);
        assert!(seconds(2, true, fast) < 0.1);
        assert!(seconds(1, true, fast) < 1e-9);
    }
}
