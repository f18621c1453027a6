//! Whether an offered load was borne, and if not, what was in the way.
//!
//! *Borne*: at least 19 of 20 operations that were due in a sample were issued before it
//! ended. Where fewer were, the queue grew with every second, and latencies say more about
//! the length of the sample than about the method.
//!
//! What was in the way, the method or the generator? The generator's own cost is measured:
//! the same loop, with as many clients, around an operation that does nothing. If it can
//! issue G a second and A were achieved, then an operation took 1/A of a client's time,
//! and 1/G of that was the generator's (times the clients, on both sides). Where A > G/2,
//! that is more than half: the generator is in the way, and nothing is said of the method.
//! Nor where more than G was offered: no method could have borne it.
//!
//! Or was it neither? Clients that wait for an arrival spin. Where they waited for longer
//! than the process had a CPU, they were without one when operations became due, and what
//! such a sample did not issue says nothing either.

use crate::measure::stats;
use crate::schema::{Arrivals, Limit, Load, Mode, Run, Sample};

/// The least share of the due operations that have to be issued in time.
const BORNE: f64 = 0.95;

/// The load as offered, achieved and borne, by the samples that count.
///
/// The generator is not blamed yet: what it can do is known only when all is measured, see
/// [`tell_apart`].
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

/// [`Limit::None`] where the median sample bore its load, else [`Limit::Method`], or
/// [`Limit::Cpus`] where the median of those whose clients had their CPUs did bear it.
pub fn limit<'a>(samples: impl Iterator<Item = &'a Sample> + Clone) -> Limit {
    let served = |a: Arrivals| 1.0 - share(a.unserved, a.due);
    let borne = |crowded_too: bool| {
        let counts =
            |s: &&Sample| crowded_too || !s.arrivals.is_some_and(|a| lacked(a.waiting_s, s.cpu_s));
        let arrivals = samples.clone().filter(counts).filter_map(|s| s.arrivals);
        stats::median(&arrivals.map(served).collect::<Vec<_>>()).is_none_or(|m| m >= BORNE)
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

/// Whether others had the CPUs, other programs or threads of our own: clients that wait for
/// an arrival spin, so where they waited for longer than the whole process had a CPU, it was
/// taken from them.
pub fn crowded(load: &Load) -> bool {
    lacked(load.waiting_cpus, load.cpus)
}

/// Clients waited without a CPU; never where the system does not say how much they had.
fn lacked(waiting: f64, had: f64) -> bool {
    had > 0.0 && waiting > CROWDED * had
}

/// Waiting beyond the CPU time used by this factor is no inaccuracy of the clocks.
const CROWDED: f64 = 1.1;

/// Tells saturated methods from saturated generators: `generator` is the rate that the
/// generator of this run reaches alone, `stamp_ns` the cost of a look at the clock.
pub fn tell_apart(run: &mut Run, generator: f64, stamp_ns: f64) {
    let Some(load) = &mut run.load else { return };
    load.generator = generator;
    load.stamp_ns = stamp_ns;
    let offered = load.offered;
    let told = |limit, achieved| match limit {
        Limit::Method if achieved > generator / 2.0 => Limit::Generator,
        Limit::Method | Limit::Cpus if offered > generator => Limit::Generator,
        limit => limit,
    };
    load.limit = told(load.limit, load.achieved);
    for summary in run.by_mode.values_mut() {
        let achieved = summary.median_mops * 1e6;
        summary.limit = summary.limit.map(|limit| told(limit, achieved));
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
        }
    }

    #[test]
    fn a_load_is_borne_where_nearly_all_was_issued() {
        let near = |unserved| load(10_000, &[sample(10_000, unserved, Mode::Near)]);
        assert_eq!(near(500).limit, Limit::None);
        assert_eq!(near(501).limit, Limit::Method);
        assert_eq!((near(0).offered, near(0).achieved), (10_000.0, 10_000.0));
        assert_eq!((near(0).late, near(1000).late), (0.1, 0.2));
        assert_eq!((near(0).cpus, near(0).waiting_cpus), (1.5, 0.25));
        // Nothing arrived: nothing was too much.
        assert_eq!(load(1, &[sample(0, 0, Mode::Near)]).limit, Limit::None);
        assert_eq!(load(1, &[]).limit, Limit::None);
    }

    #[test]
    fn one_bad_sample_of_three_is_an_accident_and_discarded_ones_do_not_count() {
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
    fn what_clients_without_a_cpu_did_not_issue_is_not_the_methods_doing() {
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
    fn clients_that_waited_without_a_cpu_were_crowded_out() {
        let load = |waiting_cpus| Load {
            cpus: 0.5,
            waiting_cpus,
            ..Load::default()
        };
        assert!(crowded(&load(1.9)) && !crowded(&load(0.5)) && !crowded(&load(0.0)));
    }

    #[test]
    fn the_generator_is_in_the_way_where_it_takes_more_than_half() {
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
            notes: vec![],
        };
        let limit = |unserved, generator| {
            let mut run = run(unserved);
            tell_apart(&mut run, generator, 24.0);
            run.load.unwrap().limit
        };
        assert_eq!(limit(5_000, 9_999.0), Limit::Generator);
        assert_eq!(limit(5_000, 10_001.0), Limit::Method);
        // No generator of 9,000 a second can offer 10,000, however little is achieved.
        assert_eq!(limit(9_900, 9_000.0), Limit::Generator);
        assert_eq!(limit(9_900, 10_000.0), Limit::Method);
        // A load that was borne has no limit, however close the generator's own is.
        assert_eq!(limit(0, 10_000.0), Limit::None);
    }
}
