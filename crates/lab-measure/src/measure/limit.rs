//! Decides whether an offered load was borne, and if not, what prevented it.
//!
//! A load is *borne* if at least 19 of 20 operations that were due in a sample were issued before
//! the sample ended. If fewer were issued, the queue grew with every second, and latencies say
//! more about the length of the sample than about the method.
//!
//! A load can be missed because of the method or because of the generator. So the generator's own
//! rate G is measured: the same loop, with as many clients, around an operation that does nothing.
//! If a method achieved A operations a second, each took 1/A of a client's time, and 1/G of that
//! was the generator's (times the number of clients, on both sides). If A > G/2, the generator
//! took more than half, so the limit is the generator's and says nothing about the method. The
//! same holds if more than G was offered: no method could have borne it.
//!
//! The third cause is a lack of CPUs. Clients that wait for an arrival spin. If they waited for
//! longer than the process had CPU time, they were without a CPU when operations became due, and
//! the operations that were not issued say nothing about the method either.

use crate::measure::stats;
use crate::schema::{Arrivals, Limit, Load, Mode, Run, Sample};

/// The smallest share of the due operations that must be issued for a load to count as borne.
const MIN_ISSUED_SHARE: f64 = 0.95;

/// The offered and the achieved load over the kept samples, and whether it was borne.
///
/// The result never names the generator as the limit: its rate is known only when all is
/// measured, and [`attribute`] corrects the limit then.
pub fn load(offered: u64, samples: &[Sample]) -> Load {
    let kept = || samples.iter().filter(|s| s.mode != Mode::Discarded);
    let arrivals = || kept().filter_map(|s| s.arrivals);
    let due: u64 = arrivals().map(|a| a.due).sum();
    let late: u64 = arrivals().map(|a| a.late + a.unserved).sum();
    let wall_s: f64 = arrivals().map(|a| a.wall_s).sum();
    let per_wall = |seconds: f64| if wall_s > 0.0 { seconds / wall_s } else { 0.0 };
    Load {
        offered: offered as f64,
        achieved: stats::median(&kept().map(|s| s.mops * 1e6).collect::<Vec<_>>()).unwrap_or(0.0),
        generator: 0.0,
        limit: limit(kept()),
        late: share(late, due),
        cpus: per_wall(kept().map(|s| s.cpu_s).sum()),
        waiting_cpus: per_wall(arrivals().map(|a| a.waiting_s).sum()),
        stamp_ns: 0.0,
    }
}

/// [`Limit::None`] if the median sample bore its load. Otherwise [`Limit::Cpus`] if the median
/// of the samples whose clients had their CPUs did bear it, else [`Limit::Method`].
pub fn limit<'a>(samples: impl Iterator<Item = &'a Sample> + Clone) -> Limit {
    let served = |a: Arrivals| 1.0 - share(a.unserved, a.due);
    let borne = |with_crowded: bool| {
        let counts =
            |s: &&Sample| with_crowded || !s.arrivals.is_some_and(|a| lacked(a.waiting_s, s.cpu_s));
        let arrivals = samples.clone().filter(counts).filter_map(|s| s.arrivals);
        stats::median(&arrivals.map(served).collect::<Vec<_>>())
            .is_none_or(|m| m >= MIN_ISSUED_SHARE)
    };
    match (borne(true), borne(false)) {
        (true, _) => Limit::None,
        (false, true) => Limit::Cpus,
        (false, false) => Limit::Method,
    }
}

fn share(part: u64, all: u64) -> f64 {
    part as f64 / all.max(1) as f64
}

/// Whether other programs, or other threads of this process, took the clients' CPUs. Clients
/// that wait for an arrival spin; so if they waited for longer than the whole process had CPU
/// time, they did not have a CPU.
pub fn crowded(load: &Load) -> bool {
    lacked(load.waiting_cpus, load.cpus)
}

/// Whether clients waited without a CPU; false if the system does not report CPU time.
fn lacked(waiting: f64, had: f64) -> bool {
    had > 0.0 && waiting > CROWDED_RATIO * had
}

/// Waiting time over CPU time that is too high to be an inaccuracy of the clocks.
const CROWDED_RATIO: f64 = 1.1;

/// Sets a run's limit to the generator if the generator, not the method, was saturated.
/// `generator` is the rate in operations per second that the run's generator reaches alone,
/// `stamp_ns` the cost of reading the clock.
pub fn attribute(run: &mut Run, generator: f64, stamp_ns: f64) {
    let Some(load) = &mut run.load else { return };
    load.generator = generator;
    load.stamp_ns = stamp_ns;
    let offered = load.offered;
    let attributed = |limit, achieved| match limit {
        Limit::Method if achieved > generator / 2.0 => Limit::Generator,
        Limit::Method | Limit::Cpus if offered > generator => Limit::Generator,
        limit => limit,
    };
    load.limit = attributed(load.limit, load.achieved);
    for summary in run.by_mode.values_mut() {
        let achieved = summary.median_mops * 1e6;
        summary.limit = summary.limit.map(|limit| attributed(limit, achieved));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(due: u64, unserved: u64, mode: Mode) -> Sample {
        Sample {
            mops: (due - unserved) as f64 / 1e6,
            mode,
            rtt_ns: None,
            per_thread: vec![due - unserved],
            cpu_s: 1.5,
            latency_ns: None,
            arrivals: Some(Arrivals {
                due,
                late: due / 10,
                unserved,
                waiting_s: 0.25,
                wall_s: 1.0,
            }),
            fibres: None,
            counts: None,
            picture: None,
            cache: None,
        }
    }

    #[test]
    fn load_is_borne_if_19_of_20_operations_were_issued() {
        let near = |unserved| load(10_000, &[sample(10_000, unserved, Mode::Near)]);
        assert_eq!(near(500).limit, Limit::None);
        assert_eq!(near(501).limit, Limit::Method);
        assert_eq!((near(0).offered, near(0).achieved), (10_000.0, 10_000.0));
        assert_eq!((near(0).late, near(1000).late), (0.1, 0.2));
        assert_eq!((near(0).cpus, near(0).waiting_cpus), (1.5, 0.25));
        // No operation arrived, so none was missed.
        assert_eq!(load(1, &[sample(0, 0, Mode::Near)]).limit, Limit::None);
        assert_eq!(load(1, &[]).limit, Limit::None);
    }

    #[test]
    fn median_sample_decides_and_discarded_samples_do_not_count() {
        let bad = |mode| sample(1_000, 500, mode);
        let good = || sample(1_000, 0, Mode::Near);
        assert_eq!(
            load(1_000, &[good(), bad(Mode::Near), good()]).limit,
            Limit::None
        );
        let two = [bad(Mode::Near), good(), bad(Mode::Near)];
        assert_eq!(load(1_000, &two).limit, Limit::Method);
        let gone = [bad(Mode::Discarded), good(), bad(Mode::Discarded)];
        assert_eq!(load(1_000, &gone).limit, Limit::None);
    }

    #[test]
    fn lack_of_cpus_is_not_the_methods_limit() {
        // On a quarter of a CPU, a client waited for the whole second.
        let crowded = |unserved| {
            let mut sample = sample(1_000, unserved, Mode::Near);
            sample.cpu_s = 0.25;
            sample.arrivals.as_mut().unwrap().waiting_s = 0.9;
            sample
        };
        let alone = |unserved| sample(1_000, unserved, Mode::Near);
        let limit = |samples: &[Sample]| load(1_000, samples).limit;
        assert_eq!(limit(&[crowded(724)]), Limit::Cpus);
        assert_eq!(limit(&[crowded(724), alone(0), crowded(724)]), Limit::Cpus);
        assert_eq!(limit(&[crowded(724), alone(724)]), Limit::Method);
        assert_eq!(limit(&[crowded(0)]), Limit::None);
    }

    #[test]
    fn waiting_longer_than_cpu_time_is_crowded() {
        let load = |waiting_cpus| Load {
            cpus: 0.5,
            waiting_cpus,
            ..Load::default()
        };
        assert!(crowded(&load(1.9)) && !crowded(&load(0.5)) && !crowded(&load(0.0)));
    }

    #[test]
    fn generator_is_the_limit_if_it_takes_more_than_half() {
        let run = |unserved| Run {
            workload: "latency".into(),
            method: "mutex".into(),
            params: Default::default(),
            correct: true,
            median_mops: 0.0,
            harmonic_mean_mops: 0.0,
            by_mode: Default::default(),
            samples: vec![],
            latency_ns: None,
            load: Some(load(10_000, &[sample(10_000, unserved, Mode::Near)])),
            trustees: Vec::new(),
            loads: None,
            not_installed: None,
            cache: None,
            notes: vec![],
        };
        let limit = |unserved, generator| {
            let mut run = run(unserved);
            attribute(&mut run, generator, 24.0);
            run.load.unwrap().limit
        };
        assert_eq!(limit(5_000, 9_999.0), Limit::Generator);
        assert_eq!(limit(5_000, 10_001.0), Limit::Method);
        // A generator of 9,000 a second cannot offer 10,000, however little was achieved.
        assert_eq!(limit(9_900, 9_000.0), Limit::Generator);
        assert_eq!(limit(9_900, 10_000.0), Limit::Method);
        // A load that was borne has no limit, even if the generator could hardly offer more.
        assert_eq!(limit(0, 10_000.0), Limit::None);
    }
}
