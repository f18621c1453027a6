//! The runs of a session: a run for each server, and the ratios between the first and the second.

use super::options::Options;
use super::process::Process;
use super::session::{Server, Session, Taken};
use super::tally::Latencies;
use corelay_lab_measure::measure::mode::tag;
use corelay_lab_measure::measure::rig::Rig;
use corelay_lab_measure::measure::session::{kept, summary};
use corelay_lab_measure::measure::stats;
use corelay_lab_measure::schema::cache::{CacheRatio, CacheRun, Counts};
use corelay_lab_measure::schema::{Extra, Mode, Params, Run, Sample};
use serde_json::Value;

/// The name of the workload.
const NAME: &str = "cache";

/// The modes whose blocks count.
const KEPT: [Mode; 3] = [Mode::Near, Mode::Far, Mode::Unknown];

/// Share of its time above which a load thread counts as busy without pause.
const BUSY: f64 = 0.97;

/// Share of its time below which a server counts as having had time to spare.
const SPARE: f64 = 0.9;

/// Share of the load that a server which bears it answers at least.
const BORNE: f64 = 0.98;

impl Session {
    /// The number of blocks of a mode that each server has.
    pub fn blocks(&self, rig: &Rig, mode: Mode) -> usize {
        let smallest = rig.smallest_ns();
        let of_mode = |server: &Server| {
            let modes = server
                .taken
                .iter()
                .map(|taken| tag(taken.bracket, smallest));
            modes.filter(|other| *other == mode).count()
        };
        self.servers.iter().map(of_mode).min().unwrap_or(0)
    }

    /// The resident memory of each server that was started, in bytes; `None` if the system does not say.
    pub fn resident_bytes(&self) -> Vec<Option<u64>> {
        let resident = |process: &Process| process.resident_bytes().map(|(now, _)| now);
        let of = |server: &Server| server.process.as_ref().and_then(resident);
        self.servers.iter().map(of).collect()
    }

    /// The CPU time that each server that was started has used, in seconds; `None` if the system does not
    /// say.
    pub fn cpu_s(&self) -> Vec<Option<f64>> {
        let of = |server: &Server| server.process.as_ref().and_then(Process::cpu_s);
        self.servers.iter().map(of).collect()
    }

    /// Ends the servers that were started, and summarizes the blocks of each.
    pub fn finish(self, rig: &Rig) -> Vec<Run> {
        let smallest = rig.smallest_ns();
        let modes = |server: &Server| -> Vec<Mode> {
            let taken = server.taken.iter();
            taken.map(|taken| tag(taken.bracket, smallest)).collect()
        };
        let all: Vec<Vec<Mode>> = self.servers.iter().map(modes).collect();
        let options = &self.plan.options;
        let first = self.plan.first_member;
        let placement: Vec<Option<usize>> = (0..options.threads)
            .map(|thread| rig.crew.cpu(first + thread))
            .collect();
        let mut runs: Vec<Run> = Vec::new();
        for (server, modes) in self.servers.iter().zip(&all) {
            let params = Params {
                placement: placement.clone(),
                secs: self.plan.block.as_secs_f64(),
                ..params(options)
            };
            let mut run = server.run(modes, params, options);
            let notes = rig.crew.notes(first + options.threads);
            run.notes.extend(notes.map(str::to_owned));
            runs.push(run);
        }
        if let ([a, b], [of_a, of_b]) = (&self.servers[..], &all[..]) {
            let ratios = ratios((a, of_a), (b, of_b));
            if let Some(cache) = &mut runs[0].cache {
                cache.against = ratios;
            }
        }
        runs
    }
}

impl Server {
    fn run(&self, modes: &[Mode], params: Params, options: &Options) -> Run {
        let sample = |(taken, mode): (&Taken, &Mode)| Sample {
            mops: taken.rate * 1e-6,
            mode: *mode,
            rtt_ns: taken.bracket.map(|bracket| bracket.larger_ns()),
            per_thread: taken.per_thread.clone(),
            cpu_s: taken.block.load_cpu_s.unwrap_or(0.0) + taken.block.server_cpu_s.unwrap_or(0.0),
            latency_ns: None,
            arrivals: None,
            fibres: None,
            counts: None,
            picture: None,
            cache: Some(taken.block),
        };
        let samples: Vec<Sample> = self.taken.iter().zip(modes).map(sample).collect();
        let kept = kept(&samples);
        let rates: Vec<f64> = kept.values().flatten().copied().collect();
        let of = |mode: Mode| {
            let blocks = self.taken.iter().zip(modes);
            blocks.filter(move |(_, m)| **m == mode).map(|(t, _)| t)
        };
        let counted = || KEPT.into_iter().flat_map(of);
        let latency = |mode| {
            let parts = of(mode).flat_map(|taken| &taken.latencies);
            Some((mode, Latencies::percentiles(parts)?))
        };
        let counts: Counts = counted().map(|taken| taken.block.counts).sum();
        let resident = self.process.as_ref().and_then(Process::resident_bytes);
        let refusal = self.drivers.iter().find_map(|driver| {
            let driver = driver.lock().unwrap_or_else(|e| e.into_inner());
            driver.refusal().map(str::to_owned)
        });
        let cache = CacheRun {
            server: self.address.to_string(),
            version: self.version.clone(),
            filled: self.filled,
            counts,
            latency_ns: Latencies::percentiles(counted().flat_map(|taken| &taken.latencies)),
            by_mode: KEPT.into_iter().filter_map(latency).collect(),
            first_refusal: refusal,
            resident_bytes: resident.map(|(now, _)| now),
            peak_bytes: resident.map(|(_, peak)| peak),
            against: Vec::new(),
        };
        let median = stats::median(&rates).unwrap_or(0.0);
        let mut notes = notes(&samples, options, median * 1e6);
        let looks = cache.counts.hit_ratio().unwrap_or(1.0);
        if looks < 0.5 && self.filled.is_none() && !options.miss_set {
            let why = "most gets missed; --warmup stores all keys first, --miss-set those that were missed";
            notes.push(why.to_owned());
        }
        if let Some(line) = &cache.first_refusal {
            notes.push(format!(
                "the server refused requests; its first answer of that kind was `{line}`"
            ));
        }
        if counts.wrong > 0 {
            let wrong = counts.wrong;
            notes.push(format!(
                "{wrong} gets found a value that this program did not give their keys; fill the server anew \
                 if other programs wrote to it"
            ));
        }
        Run {
            workload: NAME.to_owned(),
            method: self.label.clone(),
            params,
            correct: counts.wrong == 0,
            median_mops: median,
            harmonic_mean_mops: stats::harmonic_mean(&rates).unwrap_or(0.0),
            by_mode: kept
                .into_iter()
                .filter_map(|(mode, rates)| Some((mode, summary(&rates)?)))
                .collect(),
            samples,
            trustees: Vec::new(),
            latency_ns: None,
            load: None,
            loads: None,
            not_installed: None,
            cache: Some(cache),
            notes,
        }
    }
}

/// Remarks on the limit of what was measured.
fn notes(samples: &[Sample], options: &Options, per_second: f64) -> Vec<String> {
    let blocks = || samples.iter().filter_map(|sample| sample.cache.as_ref());
    let secs: f64 = blocks().map(|block| block.secs).sum();
    let threads = options.threads as f64;
    let mut notes = Vec::new();
    if let Some(load) = options.load
        && per_second < load * BORNE
    {
        notes.push(format!(
            "the load of {load} requests per second was not borne; latencies grow with the length of a block"
        ));
    }
    let busy = match options.spin || options.load.is_some() {
        true => Some(1.0 - blocks().map(|block| block.waiting_s).sum::<f64>() / (secs * threads)),
        false => {
            let cpu_s: Option<f64> = blocks().map(|block| block.load_cpu_s).sum();
            cpu_s.map(|cpu_s| cpu_s / (secs * threads))
        }
    };
    let server: Option<f64> = blocks().map(|block| block.server_cpu_s).sum();
    let server = server.map(|cpu_s| cpu_s / secs);
    let has_spare = server.is_none_or(|share| share < SPARE);
    if busy.is_some_and(|share| share > BUSY) && has_spare {
        let known = match server {
            Some(share) => format!("the server used {:.0} % of a CPU", share * 100.0),
            None => "what the server could do more is unknown".to_owned(),
        };
        notes.push(format!(
            "the load threads were busy without pause, and {known}: the load may be the limit, not the \
             server; give more --threads"
        ));
    }
    notes
}

/// The parameters for the result file.
fn params(options: &Options) -> Params {
    let mut extra = Extra::default();
    let mut add = |name: &str, value: Value| extra.other.insert(name.to_owned(), value);
    add("connections", options.connections.into());
    add("pipeline", options.pipeline.into());
    add("get_ratio", options.get_ratio.into());
    add("key_size", options.key_size.into());
    add("value_size", options.value_size.to_string().into());
    add("miss_set", options.miss_set.into());
    add("idle_connections", options.idle_connections.into());
    add("spin", options.spin.into());
    if options.hot > 0.0 {
        add("hot", options.hot.into());
    }
    if let Some(load) = options.load {
        add("load", load.into());
        add("arrivals", "poisson".into());
    }
    if let Some(scan) = options.scan {
        add("scan_every", scan.every.into());
        add("scan_length", scan.length.into());
    }
    Params {
        threads: options.threads,
        vars: options.keys,
        window: options.pipeline,
        seed: options.seed,
        dist: match options.zipf > 0.0 {
            true => format!("zipf:{}", options.zipf),
            false => "uniform".to_owned(),
        },
        extra,
        ..Params::default()
    }
}

/// A server and the modes of its blocks.
type Tagged<'a> = (&'a Server, &'a [Mode]);

/// A figure of a block; `None` if the block has none.
type Figure = fn(&Taken) -> Option<f64>;

/// The figures that are compared, and their names.
const FIGURES: [(&str, Figure); 6] = [
    ("ops/s", |taken| Some(taken.rate)),
    ("ops/CPU s", |taken| {
        let cpu_s = taken.block.server_cpu_s.filter(|cpu_s| *cpu_s > 0.0)?;
        Some(taken.block.counts.operations() as f64 / cpu_s)
    }),
    ("p50", |taken| Some(taken.block.latency_ns?.p50 as f64)),
    ("p99", |taken| Some(taken.block.latency_ns?.p99 as f64)),
    ("p99.9", |taken| Some(taken.block.latency_ns?.p999 as f64)),
    ("hits", |taken| {
        let hits = taken.block.counts.hit_ratio();
        hits.filter(|hits| *hits > 0.0)
    }),
];

/// The first server compared with the second, in each mode that both have met.
fn ratios((a, of_a): (&Server, &Vec<Mode>), (b, of_b): (&Server, &Vec<Mode>)) -> Vec<CacheRatio> {
    let mut ratios = Vec::new();
    for mode in KEPT {
        for (name, figure) in FIGURES {
            let values = |(server, modes): Tagged<'_>| -> Vec<f64> {
                let blocks = server.taken.iter().zip(modes);
                let of_mode = blocks.filter(|(_, m)| **m == mode);
                of_mode.filter_map(|(taken, _)| figure(taken)).collect()
            };
            let (x, y) = (values((a, of_a)), values((b, of_b)));
            ratios.extend(stats::ratio_ci(&x, &y).map(|ci| CacheRatio {
                of: b.label.clone(),
                figure: name.to_owned(),
                mode,
                blocks: x.len().min(y.len()),
                low: ci.low,
                ratio: ci.ratio,
                high: ci.high,
            }));
        }
    }
    ratios
}
