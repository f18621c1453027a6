//! Runs, grouped for pictures and verdicts.

use super::method;
use super::verdict::MIN_SAMPLES;
use super::words;
use corelay_lab_measure::measure::stats::quantile;
use corelay_lab_measure::schema::{Mode, ModeSummary, Results, Run, Size};
use corelay_lab_measure::workload::{fetch_add, latency};
use std::collections::{BTreeMap, BTreeSet};

/// The modes that figures are given for, in the order in which they are shown.
pub(crate) const MODES: [Mode; 3] = [Mode::Near, Mode::Far, Mode::Unknown];

/// Returns the workload's name if it is a user's own structure and not one of the lab's.
pub(crate) fn own(results: &Results) -> Option<&str> {
    let name = results.runs.first()?.workload.as_str();
    let alone = results.runs.iter().all(|run| run.workload == name);
    (alone && is_own(name)).then_some(name)
}

fn is_own(workload: &str) -> bool {
    ![fetch_add::NAME, latency::NAME].contains(&workload)
}

/// Runs of one workload with one distribution, which one picture may show together. Runs under a
/// given load are not among them: they have [pictures of their own](super::latency).
pub(crate) struct Subject<'a> {
    pub(crate) workload: &'a str,
    pub(crate) dist: &'a str,
    pub(crate) runs: Vec<&'a Run>,
}

impl<'a> Subject<'a> {
    /// Returns the subjects of a file, in the order in which they first occur.
    pub(crate) fn all(results: &'a Results) -> Vec<Self> {
        let mut subjects: Vec<Self> = Vec::new();
        for run in results.runs.iter().filter(|run| run.load.is_none()) {
            let (workload, dist) = (run.workload.as_str(), run.params.dist.as_str());
            match subjects
                .iter_mut()
                .find(|s| s.workload == workload && s.dist == dist)
            {
                Some(subject) => subject.runs.push(run),
                None => subjects.push(Self {
                    workload,
                    dist,
                    runs: vec![run],
                }),
            }
        }
        subjects
    }

    /// Returns the name: the workload, its size and share of updates, and its distribution, as far
    /// as it has them.
    pub(crate) fn name(&self) -> String {
        let mut name = self.workload.to_owned();
        if let Some((keys, updates)) = self.keys() {
            let keys = words::count(keys, "key", "keys");
            name += &format!(", {keys}, {updates}\u{a0}% updates");
        }
        match self.dist {
            "" => name,
            dist => format!("{name}, {dist}"),
        }
    }

    /// Returns the size of the structures and the percentage of updates, if this is a structure of the
    /// lab.
    pub(crate) fn keys(&self) -> Option<(u64, u64)> {
        let extra = &self.runs.first()?.params.extra;
        match extra.size {
            Some(Size::Keys(keys)) => Some((keys, extra.updates?)),
            _ => None,
        }
    }

    /// Returns the thread counts with a right result.
    pub(crate) fn threads(&self) -> BTreeSet<usize> {
        self.right().map(|r| r.params.threads).collect()
    }

    /// Returns the numbers of variables with a right result.
    pub(crate) fn vars(&self) -> BTreeSet<u64> {
        self.right().map(|r| r.params.vars).collect()
    }

    pub(crate) fn right(&self) -> impl Iterator<Item = &'a Run> {
        self.runs.iter().copied().filter(|r| r.correct)
    }

    /// Returns the modes with a figure, in the order of [`MODES`].
    pub(crate) fn modes(&self) -> Vec<Mode> {
        modes(self.runs.iter().copied())
    }

    /// Whether this is a user's own structure, of which only the name is known.
    pub(crate) fn is_own(&self) -> bool {
        is_own(self.workload)
    }

    /// Whether a method of that form is among the runs.
    pub(crate) fn has(&self, form: method::Form) -> bool {
        self.runs
            .iter()
            .any(|run| method::form(&run.method) == Some(form))
    }

    /// Whether the contention models hold: for variables of a cache line each, chosen uniformly
    /// (D16).
    pub(crate) fn has_models(&self) -> bool {
        self.workload == fetch_add::NAME && self.dist == "uniform"
    }

    /// Returns the runs at `threads` threads.
    pub(crate) fn at(&self, threads: usize) -> Vec<&'a Run> {
        self.runs
            .iter()
            .copied()
            .filter(|r| r.params.threads == threads)
            .collect()
    }

    /// Returns the thread count that represents the subject: the most threads that have a CPU
    /// each, or the fewest if no count fits the CPUs.
    pub(crate) fn main_threads(&self, cpus: usize) -> Option<usize> {
        let threads = self.threads();
        threads
            .iter()
            .rev()
            .find(|&&t| t <= cpus.max(1))
            .or(threads.first())
            .copied()
    }
}

/// Returns the modes in which one of `runs` has a figure.
pub(crate) fn modes<'a>(runs: impl IntoIterator<Item = &'a Run> + Clone) -> Vec<Mode> {
    let seen = |m: &Mode| {
        runs.clone()
            .into_iter()
            .any(|r| throughput(r, *m).is_some())
    };
    MODES.into_iter().filter(seen).collect()
}

/// Returns the modes of `runs` worth a picture: those in which some point has enough samples to
/// be compared. If there is none, returns all modes that occurred.
pub(crate) fn drawn_modes(runs: &[&Run]) -> Vec<Mode> {
    let all = modes(runs.iter().copied());
    let enough = |m: &Mode| {
        runs.iter()
            .any(|r| throughput(r, *m).is_some_and(|s| s.n >= MIN_SAMPLES))
    };
    let well_seen: Vec<Mode> = all.iter().copied().filter(enough).collect();
    if well_seen.is_empty() { all } else { well_seen }
}

/// The quantity on the vertical axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    /// Million operations per second of wall time.
    Throughput,
    /// Mops per CPU used: operations ÷ CPU time, trustees counted.
    PerCpu,
}

impl Measure {
    /// Returns median and quartiles of a run in a mode; `None` if it has no figure there.
    pub(crate) fn of(self, run: &Run, mode: Mode) -> Option<ModeSummary> {
        match self {
            Measure::Throughput => throughput(run, mode),
            Measure::PerCpu => per_cpu(run, mode),
        }
    }
}

fn throughput(run: &Run, mode: Mode) -> Option<ModeSummary> {
    let summary = run.by_mode.get(&mode)?;
    let numbers = [summary.median_mops, summary.q1_mops, summary.q3_mops];
    let sound = numbers.iter().all(|v| v.is_finite()) && summary.median_mops > 0.0;
    (run.correct && summary.n > 0 && sound).then_some(*summary)
}

fn per_cpu(run: &Run, mode: Mode) -> Option<ModeSummary> {
    let of = |s: &corelay_lab_measure::schema::Sample| {
        // Counts the operations themselves, not the sample's nominal length: a delayed thread
        // ends its sample late.
        let value = s.per_thread.iter().sum::<u64>() as f64 / s.cpu_s / 1e6;
        (s.mode == mode && value.is_finite() && value > 0.0).then_some(value)
    };
    let values: Vec<f64> = run.samples.iter().filter_map(of).collect();
    if !run.correct {
        return None;
    }
    Some(ModeSummary {
        median_mops: quantile(&values, 0.5)?,
        n: values.len(),
        q1_mops: quantile(&values, 0.25)?,
        q3_mops: quantile(&values, 0.75)?,
        latency_ns: None,
        limit: None,
    })
}

/// Returns the samples of a run in a mode, in Mops.
pub(crate) fn samples(run: &Run, mode: Mode) -> Vec<f64> {
    let kept = |s: &&corelay_lab_measure::schema::Sample| {
        s.mode == mode && s.mops.is_finite() && s.mops > 0.0
    };
    if !run.correct {
        return Vec::new();
    }
    run.samples.iter().filter(kept).map(|s| s.mops).collect()
}

/// Returns each client's share of the work, the smallest first. Each is the median over the
/// samples of the wanted modes. Empty if nothing is known.
pub(crate) fn shares(run: &Run, wanted: impl Fn(Mode) -> bool) -> Vec<f64> {
    let mut samples: Vec<Vec<f64>> = Vec::new();
    for sample in run.samples.iter().filter(|s| wanted(s.mode)) {
        let all: u64 = sample.per_thread.iter().sum();
        if all > 0 {
            let share = |&n: &u64| n as f64 / all as f64;
            let mut shares: Vec<f64> = sample.per_thread.iter().map(share).collect();
            shares.sort_by(f64::total_cmp);
            samples.push(shares);
        }
    }
    let clients = samples.first().map_or(0, Vec::len);
    let nth = |i: usize| -> Option<f64> {
        let values: Vec<f64> = samples.iter().filter_map(|s| s.get(i).copied()).collect();
        quantile(&values, 0.5)
    };
    (0..clients).filter_map(nth).collect()
}

/// Returns the median round trip, in nanoseconds, probed around the samples of `runs` in a mode.
pub(crate) fn round_trip(runs: &[&Run], mode: Mode) -> Option<f64> {
    let samples = runs
        .iter()
        .flat_map(|r| &r.samples)
        .filter(|s| s.mode == mode);
    let probed: Vec<f64> = samples
        .filter_map(|s| s.rtt_ns)
        .filter(|ns| ns.is_finite() && *ns > 0.0)
        .collect();
    quantile(&probed, 0.5)
}

/// One line of a picture: a method, or one variant of it.
pub(crate) struct MethodLine<'a> {
    pub(crate) method: &'a str,
    /// Number of this line among the method's lines. `label` is its name.
    pub(crate) variant: usize,
    pub(crate) label: String,
    /// One run per x, in order of x.
    pub(crate) points: Vec<(u64, &'a Run)>,
}

/// Makes the lines of a picture over `x`. A method with several runs at the same x (with
/// different windows, say) gets a line for each, named by the parameter that differs.
pub(crate) fn lines<'a>(runs: &[&'a Run], x: impl Fn(&Run) -> u64) -> Vec<MethodLine<'a>> {
    let mut methods: BTreeMap<(usize, &str), Vec<&Run>> = BTreeMap::new();
    for run in runs {
        methods
            .entry(method::rank(&run.method))
            .or_default()
            .push(run);
    }
    let mut lines = Vec::new();
    for ((_, method), runs) in methods {
        let differing = differing(&runs, &x);
        let mut variants: BTreeMap<String, BTreeMap<u64, &Run>> = BTreeMap::new();
        for run in runs {
            let all = parameters(run);
            let words = differing
                .iter()
                .filter_map(|k| all.get(k).map(|v| format!("{k} {v}")));
            let name = words.collect::<Vec<_>>().join(", ");
            variants.entry(name).or_default().insert(x(run), run);
        }
        for (variant, (name, points)) in variants.into_iter().enumerate() {
            let label = if name.is_empty() {
                method.to_owned()
            } else {
                format!("{method}, {name}")
            };
            lines.push(MethodLine {
                method,
                variant,
                label,
                points: points.into_iter().collect(),
            });
        }
    }
    lines
}

/// Returns the names of the parameters in which runs of one method at the same x differ.
fn differing(runs: &[&Run], x: impl Fn(&Run) -> u64) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut first: BTreeMap<u64, BTreeMap<String, String>> = BTreeMap::new();
    for run in runs {
        let all = parameters(run);
        let Some(known) = first.get(&x(run)) else {
            first.insert(x(run), all);
            continue;
        };
        let keys = known.keys().chain(all.keys());
        names.extend(keys.filter(|k| known.get(*k) != all.get(*k)).cloned());
    }
    names
}

/// Returns the parameters that may tell two runs of a method apart. Variables and threads are
/// axes; workload and distribution tell subjects apart.
fn parameters(run: &Run) -> BTreeMap<String, String> {
    let p = &run.params;
    let own = [
        ("servers", p.servers.to_string()),
        ("window", p.window.to_string()),
        ("secs", p.secs.to_string()),
        ("seed", p.seed.to_string()),
    ];
    let extra = match serde_json::to_value(&p.extra) {
        Ok(serde_json::Value::Object(extra)) => extra,
        _ => serde_json::Map::new(),
    };
    let extra = extra.into_iter().map(|(k, v)| match v {
        serde_json::Value::String(s) => (k, s),
        v => (k, v.to_string()),
    });
    own.into_iter()
        .map(|(k, v)| (k.to_owned(), v))
        .chain(extra)
        .collect()
}
