//! A check whether other programs used the CPUs while a figure was measured. Threads that spin
//! for each other then wait for whole time slices, and the figures say little.

use corelay_lab_measure::schema::{Run, Sample, Size};
use corelay_lab_report::plot::percent;

/// Share of the CPUs above which a run counts as undisturbed. Starting and stopping take the
/// rest.
const UNDISTURBED_SHARE: f64 = 0.9;

/// Returns a warning if the threads did not have the CPUs to themselves.
pub(super) fn note(runs: &[Run], cpus: usize) -> Option<String> {
    let of = |run: &Run| {
        let threads = run.params.threads.min(cpus.max(1));
        let samples = run.samples.iter();
        let shares = samples.filter_map(move |sample| share(sample, threads));
        shares.collect::<Vec<f64>>()
    };
    let shares: Vec<f64> = runs.iter().filter(is_busy).flat_map(of).collect();
    // Some methods sleep while they wait, so the upper quartile counts: those that spin take all
    // they get.
    let most = corelay_lab_measure::measure::stats::quantile(&shares, 0.75)?;
    (most < UNDISTURBED_SHARE).then(|| {
        format!(
            "Other programs used the CPUs too: the threads of a point had {} of the time that \
             they wanted. Threads that wait for each other then wait for whole time slices, and \
             these figures say little.",
            percent(most)
        )
    })
}

/// Whether all threads are busy all the time. Processors of fibres sleep when they have no work,
/// even with the CPUs to themselves.
fn is_busy(run: &&Run) -> bool {
    let extra = &run.params.extra;
    let is_few = matches!(&extra.size, Some(Size::Asked(size)) if size != "hi");
    !is_few && extra.flavour.is_none()
}

/// Returns the CPU time as a share of what `threads` could have used.
fn share(sample: &Sample, threads: usize) -> Option<f64> {
    let ops: u64 = sample.per_thread.iter().sum();
    let wall_s = ops as f64 / (sample.mops * 1e6);
    let share = sample.cpu_s / (wall_s * threads as f64);
    (share.is_finite() && sample.cpu_s > 0.0).then_some(share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use corelay_lab_measure::schema::Mode;

    fn sample(cpu_s: f64) -> Sample {
        Sample {
            mops: 1.0,
            mode: Mode::Near,
            rtt_ns: None,
            per_thread: vec![400_000, 600_000],
            cpu_s,
            latency_ns: None,
            arrivals: None,
            fibres: None,
            counts: None,
            picture: None,
            cache: None,
        }
    }

    #[test]
    fn a_second_of_two_threads_is_two_seconds_of_cpu() {
        assert_eq!(share(&sample(2.0), 2), Some(1.0));
        assert_eq!(share(&sample(1.0), 2), Some(0.5));
        // The system does not count CPU time.
        assert_eq!(share(&sample(0.0), 2), None);
    }
}
