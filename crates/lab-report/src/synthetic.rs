//! Results made up for tests: the shapes of a small machine, never measured figures.

use crate::model::{contention, residency};
use corelay_lab_measure::measure::limit;
use corelay_lab_measure::measure::stats::{harmonic_mean, quantile};
use corelay_lab_measure::method::{Kind, METHODS, Method};
use corelay_lab_measure::schema::{
    Arrivals, CacheLevel, Extra, Limit, Machine, Mode, ModeSummary, Params, Percentiles, Results,
    Run, SCHEMA, Sample,
};
use std::collections::BTreeMap;

/// A description of results to make up.
pub(super) struct Recipe {
    pub(super) cpus: usize,
    pub(super) threads: Vec<usize>,
    pub(super) vars: Vec<u64>,
    pub(super) modes: Vec<Mode>,
    pub(super) samples: usize,
    pub(super) methods: Vec<&'static str>,
    /// Mops of a method on contended and on uncontended variables.
    pub(super) mops: fn(&str) -> (f64, f64),
    /// Relative spread of the samples.
    pub(super) noise: f64,
}

/// Returns every method of fetch-add that a report judges.
pub(super) fn judged() -> Vec<&'static str> {
    let of_fetch_add = |name: &&str| METHODS.iter().any(|entry| entry.name() == *name);
    let judged = crate::method::METHODS.iter().map(|m| m.name);
    judged.filter(of_fetch_add).collect()
}

impl Default for Recipe {
    fn default() -> Self {
        Self {
            cpus: 2,
            threads: vec![2],
            vars: vec![1, 2, 8, 64, 1024, 16_384, 1 << 20],
            modes: vec![Mode::Near, Mode::Far],
            samples: 9,
            methods: judged(),
            mops: small_machine,
            noise: 0.04,
        }
    }
}

/// Returns contended and uncontended Mops in near mode, roughly as on two CPUs.
pub(super) fn small_machine(method: &str) -> (f64, f64) {
    match method {
        "atomic" => (140.0, 380.0),
        "mutex" => (32.0, 150.0),
        "parking-lot" => (47.0, 165.0),
        "ttas" => (60.0, 190.0),
        "ticket" => (41.0, 170.0),
        "mcs" => (16.0, 95.0),
        "clh" => (18.0, 100.0),
        "channel" => (4.0, 3.9),
        "channel-pipelined" => (31.0, 30.0),
        "tokio" => (2.4, 2.3),
        "trust" => (13.5, 13.3),
        "trust-then" => (225.0, 170.0),
        "trust-post" => (590.0, 420.0),
        "trust-async" => (6.0, 6.0),
        _ => (25.0, 60.0),
    }
}

impl Recipe {
    pub(super) fn make(&self) -> Results {
        let mut runs = Vec::new();
        for &threads in &self.threads {
            for &vars in &self.vars {
                for method in &self.methods {
                    runs.push(self.run(method, threads, vars));
                }
            }
        }
        Results {
            schema: SCHEMA,
            machine: self.machine(),
            commit: "0123abc".into(),
            command: "corelay compare --out report".into(),
            runs,
        }
    }

    fn machine(&self) -> Machine {
        Machine {
            model: "Made-up CPU 9000".into(),
            arch: "x86_64".into(),
            kernel: "6.1.0".into(),
            hypervisor: Some("KVM".into()),
            cpus: self.cpus,
            cores: self.cpus,
            packages: 1,
            nodes: 1,
            quota_cpus: None,
            caches: vec![
                CacheLevel {
                    level: 1,
                    bytes: 48 << 10,
                    sharers: 1,
                    instances: self.cpus,
                },
                CacheLevel {
                    level: 2,
                    bytes: 1 << 20,
                    sharers: 1,
                    instances: self.cpus,
                },
                CacheLevel {
                    level: 3,
                    bytes: 32 << 20,
                    sharers: self.cpus,
                    instances: 1,
                },
            ],
            core_ghz: None,
            rtt_min_ns: Some(104.0),
            unavailable: vec!["hardware counters: this virtual machine has none".into()],
        }
    }

    fn run(&self, method: &str, threads: usize, vars: u64) -> Run {
        let delegated = serves(method);
        let servers = usize::from(delegated);
        let (few, many) = (self.mops)(method);
        let p = contention::probability(threads, vars);
        let here = many + (few - many) * p;
        let here =
            here * residency::resident(32 << 20, vars).powf(0.8) * (threads as f64 / 2.0).powf(0.7);
        let secs = 0.05;
        let seed = method.bytes().fold(vars ^ threads as u64, |a, b| {
            a.wrapping_mul(31) + u64::from(b)
        });
        let mut noise = Noise(seed);
        let mut samples = Vec::new();
        for i in 0..self.samples {
            for &mode in &self.modes {
                let distance = match (mode, delegated) {
                    (Mode::Far, true) => 0.3,
                    (Mode::Far, false) => 1.0 - 0.4 * p,
                    _ => 1.0,
                };
                let mops = here * distance * (1.0 + self.noise * noise.next());
                let clients = threads - servers;
                samples.push(Sample {
                    mops,
                    mode: if i == 4 && mode == Mode::Far {
                        Mode::Discarded
                    } else {
                        mode
                    },
                    rtt_ns: match mode {
                        Mode::Near => Some(110.0 + 6.0 * noise.next()),
                        Mode::Far => Some(505.0 + 20.0 * noise.next()),
                        _ => None,
                    },
                    per_thread: (0..clients)
                        .map(|c| (mops * 1e6 * secs) as u64 / clients as u64 + c as u64 * 900)
                        .collect(),
                    cpu_s: secs * threads as f64 * 0.98,
                    latency_ns: None,
                    arrivals: None,
                    fibres: None,
                    counts: None,
                    picture: None,
                    cache: None,
                });
            }
        }
        summed_up(Run {
            workload: "fetch-add".into(),
            method: method.into(),
            params: Params {
                threads,
                servers,
                vars,
                window: if method == "trust-then" || method == "trust-post" {
                    256
                } else {
                    0
                },
                secs,
                dist: "uniform".into(),
                seed: 1,
                placement: (0..threads).map(Some).collect(),
                extra: Extra::default(),
            },
            correct: true,
            median_mops: 0.0,
            harmonic_mean_mops: 0.0,
            by_mode: BTreeMap::new(),
            samples,
            trustees: Vec::new(),
            latency_ns: None,
            load: None,
            loads: None,
            not_installed: None,
            cache: None,
            notes: Vec::new(),
        })
    }
}

/// Makes results under load. Each method bears so many operations per second, with a latency that
/// grows as the load nears that.
pub(super) fn under_load(modes: &[Mode], bears: fn(&str) -> (f64, f64)) -> Vec<Run> {
    let mut runs = Vec::new();
    for entry in METHODS.iter().filter(|m| m.is_usual_on_schedule()) {
        let method = entry.name();
        for load in [10_000, 100_000, 1_000_000, 2_000_000, 5_000_000, 20_000_000] {
            let (most, least_ns) = bears(method);
            let mut run = at_load(method, load, modes, most, least_ns);
            let generator = entry.on_schedule().map_or("", |on| on.generator.name());
            let calls_back = generator == "generator-then";
            let generator = if calls_back { 1e7 } else { 2.5e7 };
            limit::attribute(&mut run, generator, 24.0);
            let borne = run.load.is_some_and(|l| l.limit == Limit::None);
            runs.push(run);
            if !borne {
                break;
            }
        }
    }
    runs
}

/// Whether one thread of the method serves the others.
fn serves(method: &str) -> bool {
    let method = Method::named(method);
    method.is_some_and(|method| matches!(method.kind(), Kind::Dedicated | Kind::Actor))
}

/// Returns the load that a method bears, in operations per second, and its latency without load,
/// in nanoseconds.
pub(super) fn small_loads(method: &str) -> (f64, f64) {
    match method {
        "mutex" => (1.2e7, 60.0),
        "channel" => (8e5, 900.0),
        "tokio" => (4e5, 2_500.0),
        "trust" => (3e6, 210.0),
        "flat-adaptive" => (3e6, 500.0),
        _ => (9e6, 320.0),
    }
}

fn at_load(method: &str, load: u64, modes: &[Mode], most: f64, least_ns: f64) -> Run {
    let servers = usize::from(serves(method));
    let (secs, offered) = (0.02, load as f64);
    let mut noise = Noise(load ^ method.len() as u64);
    let mut samples = Vec::new();
    for _ in 0..7 {
        for &mode in modes {
            let far = if mode == Mode::Far { 4.0 } else { 1.0 };
            let due = (offered * secs) as u64;
            let unserved = (due as f64 * (1.0 - most / offered).max(0.0)) as u64;
            // Like a queue with random arrivals, up to the load that is not borne.
            let busy = (offered / most).min(0.98);
            let p50 = least_ns * far * (1.0 + busy / (1.0 - busy)) * (1.0 + 0.03 * noise.next());
            let p50 = if unserved > 0 { secs * 4e8 } else { p50 };
            samples.push(Sample {
                mops: (due - unserved) as f64 / secs / 1e6,
                mode,
                rtt_ns: None,
                per_thread: vec![due - unserved],
                cpu_s: secs * 1.9,
                latency_ns: Some(Percentiles {
                    p50: p50 as u64,
                    p99: (3.0 * p50) as u64,
                    p999: (9.0 * p50) as u64,
                    max: (20.0 * p50) as u64,
                }),
                arrivals: Some(Arrivals {
                    due,
                    late: due / 50,
                    unserved,
                    waiting_s: secs * (1.0 - busy),
                    wall_s: secs,
                }),
                fibres: None,
                counts: None,
                picture: None,
                cache: None,
            });
        }
    }
    let load = limit::load(load, &samples);
    let run = Run {
        workload: "latency".into(),
        method: method.into(),
        params: Params {
            threads: 2,
            servers,
            vars: 1,
            window: 256,
            secs,
            dist: "uniform".into(),
            seed: 1,
            placement: vec![Some(0), Some(1)],
            extra: Extra::from([("load", load.offered.into())]),
        },
        correct: true,
        median_mops: 0.0,
        harmonic_mean_mops: 0.0,
        by_mode: BTreeMap::new(),
        latency_ns: samples.first().and_then(|s| s.latency_ns),
        load: Some(load),
        samples,
        trustees: Vec::new(),
        loads: None,
        not_installed: None,
        cache: None,
        notes: Vec::new(),
    };
    let mut run = summed_up(run);
    for (mode, summary) in &mut run.by_mode {
        let mut of_mode = run.samples.iter().filter(|s| s.mode == *mode);
        summary.limit = Some(limit::limit(of_mode.clone()));
        summary.latency_ns = of_mode.next().and_then(|s| s.latency_ns);
    }
    run
}

/// Fills in the medians from the samples.
pub(super) fn summed_up(mut run: Run) -> Run {
    let kept = |m: Option<Mode>| -> Vec<f64> {
        let fits = |s: &&Sample| s.mode != Mode::Discarded && m.is_none_or(|m| s.mode == m);
        run.samples.iter().filter(fits).map(|s| s.mops).collect()
    };
    let all = kept(None);
    let modes = [Mode::Near, Mode::Far, Mode::Unknown];
    let by_mode: BTreeMap<Mode, ModeSummary> = modes
        .into_iter()
        .filter_map(|mode| {
            let mops = kept(Some(mode));
            let q = |q| quantile(&mops, q);
            let summary = ModeSummary {
                median_mops: q(0.5)?,
                n: mops.len(),
                q1_mops: q(0.25)?,
                q3_mops: q(0.75)?,
                latency_ns: None,
                limit: None,
            };
            Some((mode, summary))
        })
        .collect();
    run.median_mops = quantile(&all, 0.5).unwrap_or(0.0);
    run.harmonic_mean_mops = harmonic_mean(&all).unwrap_or(0.0);
    run.by_mode = by_mode;
    run
}

/// Repeatable noise between −1 and 1.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as f64 / f64::from(1u32 << 30) - 1.0
    }
}
