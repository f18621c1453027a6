//! Measures rungs at some points in turn: each point once, then each once again.

use super::job::{Ended, Job, Pages};
use super::ladder::PARTS_OF_A_THREAD;
use super::memory::{free_memory, small_pages};
use super::neighbour::Neighbour;
use super::rungs::Rung;
use corelay_lab_measure::measure::cpu::process_cpu_s;
use corelay_lab_measure::measure::mode::{Bracket, tag};
use corelay_lab_measure::measure::rig::Rig;
use corelay_lab_measure::measure::session::{kept, summary};
use corelay_lab_measure::measure::stats;
use corelay_lab_measure::schema::{Extra, Mode, Params, Run, Sample};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The workload's name in results.
pub(crate) const WORKLOAD: &str = "course-list";

/// Samples of a mode that a median needs.
const MIN_MEDIAN_SAMPLES: usize = 3;

/// A rung and the conditions under which it runs.
#[derive(Clone, Debug)]
pub struct Point {
    /// The rung that runs.
    pub rung: &'static Rung,
    /// Threads that insert.
    pub threads: usize,
    /// Keys of each thread.
    pub share: usize,
    /// Parts that the keys are cut into.
    pub parts: usize,
    /// Whether each thread has one part, that of its number, instead of taking one after the other.
    pub equal_shares: bool,
    /// Bytes between the heads of two lists.
    pub padding: usize,
    /// The memory that is touched before the timed phase.
    pub pages: Pages,
    /// Whether a neighbour takes the first CPU half of the time.
    pub neighbour: bool,
    /// Whether waiting and the making of nodes are timed.
    pub watched: bool,
}

/// The figures of one point.
#[derive(Debug)]
pub struct Climbed {
    /// The point that was measured.
    pub(crate) point: Point,
    /// The run in the schema of all workloads.
    pub run: Run,
    /// Each correct run, with the mode of the machine.
    pub(crate) ended: Vec<(Mode, Ended)>,
}

/// A length of runs in seconds, in the place of a number of keys.
#[derive(Clone, Copy, Debug)]
pub struct Seconds {
    /// Time that a run inserts for, in seconds.
    pub secs: f64,
    /// The most keys that lists hold at once. More do not fit into the memory. A run that needs
    /// more fills its lists several times.
    pub most_keys: usize,
}

/// Keys of each thread in the first run that learns a point's speed.
const SHORT_SHARE: usize = 20_000;

/// Share of a run's length that the second run takes which learns a point's speed.
const OF_A_RUN: f64 = 0.1;

/// Points that are measured together.
#[derive(Debug)]
pub struct Climb {
    entries: Vec<Entry>,
    keys: Arc<[u64]>,
    seconds: Option<Seconds>,
}

#[derive(Debug)]
struct Entry {
    point: Point,
    cpus: Vec<Option<usize>>,
    taken: Vec<(Ended, f64, Option<Bracket>)>,
    fault: Option<String>,
}

impl Climb {
    /// Makes the keys of the largest point. `cpus` are those of the first, the second, … thread.
    pub fn new(points: Vec<Point>, cpus: &[Option<usize>]) -> Self {
        small_pages();
        let most = points.iter().map(|point| point.threads * point.share).max();
        let entry = |point: Point| Entry {
            cpus: cpus.iter().copied().take(point.threads).collect(),
            point,
            taken: Vec::new(),
            fault: None,
        };
        Self {
            entries: points.into_iter().map(entry).collect(),
            keys: Job::table(most.unwrap_or(0)),
            seconds: None,
        }
    }

    /// Makes runs last for so many seconds, whatever the points' number of keys. [`measure`]
    /// chooses that number.
    ///
    /// [`measure`]: Self::measure
    pub(crate) fn lasting(mut self, seconds: Option<Seconds>) -> Self {
        self.seconds = seconds;
        self
    }

    /// Runs each point once. Returns false if an interrupt ended the round early.
    pub fn round(&mut self, rig: &mut Rig, mut tick: impl FnMut(&str)) -> bool {
        for entry in &mut self.entries {
            if rig.is_interrupted() {
                return false;
            }
            if entry.fault.is_none() {
                tick(entry.point.rung.name);
                entry.sample(rig, &self.keys, self.seconds);
            }
        }
        true
    }

    /// Runs a round to warm up, then `rounds` rounds. Then repeats points that, because the
    /// machine changed its mode, have few samples of the mode that most samples have. Returns
    /// false if an interrupt came before each point had one.
    pub(crate) fn measure(
        &mut self,
        rig: &mut Rig,
        rounds: usize,
        mut tick: impl FnMut(&str),
    ) -> bool {
        match self.seconds {
            Some(seconds) => self.learn_speeds(seconds, rig, &mut tick),
            None => self.warm_up_with(rig, &mut tick),
        }
        for _ in 0..rounds {
            if !self.round(rig, &mut tick) {
                break;
            }
        }
        for _ in 0..rounds {
            self.round_of_few(rig, rounds.min(MIN_MEDIAN_SAMPLES), &mut tick);
        }
        !rig.is_interrupted() || self.fewest() > 0
    }

    /// Runs each point once that has fewer samples than `few`.
    fn round_of_few(&mut self, rig: &mut Rig, few: usize, mut tick: impl FnMut(&str)) {
        let smallest = rig.smallest_ns();
        let of = |entry: &Entry, mode| {
            let taken = entry.taken.iter();
            taken
                .filter(|(.., bracket)| tag(*bracket, smallest) == mode)
                .count()
        };
        let all = |mode| {
            self.entries
                .iter()
                .map(|entry| of(entry, mode))
                .sum::<usize>()
        };
        let modes = [Mode::Near, Mode::Far, Mode::Unknown];
        let mode = modes.into_iter().max_by_key(|&mode| all(mode));
        let mode = mode.unwrap_or(Mode::Unknown);
        for entry in &mut self.entries {
            if of(entry, mode) < few && entry.fault.is_none() && !rig.is_interrupted() {
                tick(entry.point.rung.name);
                entry.sample(rig, &self.keys, self.seconds);
            }
        }
    }

    /// Learns the speed of each point by a short run and then by a longer one, and chooses the
    /// numbers of keys by it.
    fn learn_speeds(&mut self, seconds: Seconds, rig: &mut Rig, mut tick: impl FnMut(&str)) {
        for entry in &mut self.entries {
            entry.point.share = entry.point.share_of(SHORT_SHARE, seconds);
        }
        for part in [OF_A_RUN, 1.0] {
            let most = self.entries.iter().map(|entry| entry.point.keys()).max();
            if most.unwrap_or(0) > self.keys.len() {
                self.keys = Job::table(most.unwrap_or(0));
            }
            for entry in &mut self.entries {
                if rig.is_interrupted() {
                    return;
                }
                tick(entry.point.rung.name);
                entry.sample(rig, &self.keys, None);
                if let Some((ended, ..)) = entry.taken.pop() {
                    let of_a_thread = ended.mops() * 1e6 / entry.point.threads as f64;
                    let wanted = (of_a_thread * seconds.secs * part) as usize;
                    entry.point.share = entry.point.share_of(wanted, seconds);
                }
            }
        }
        let most = self.entries.iter().map(|entry| entry.point.keys()).max();
        self.keys = Job::table(most.unwrap_or(0));
    }

    /// Runs each point once without keeping a figure.
    pub fn warm_up(&mut self, rig: &mut Rig) {
        self.warm_up_with(rig, |_| {});
    }

    fn warm_up_with(&mut self, rig: &mut Rig, tick: impl FnMut(&str)) {
        self.round(rig, tick);
        self.entries
            .iter_mut()
            .for_each(|entry| entry.taken.clear());
    }

    /// Returns the smallest number of samples of any point.
    pub(crate) fn fewest(&self) -> usize {
        self.entries
            .iter()
            .map(|entry| entry.taken.len())
            .min()
            .unwrap_or(0)
    }

    /// Returns the smallest number of samples of any point in a mode, by what is known so far.
    pub fn blocks(&self, rig: &Rig, mode: Mode) -> usize {
        let smallest = rig.smallest_ns();
        let of = |entry: &Entry| {
            let is_of = |(.., bracket): &&(_, _, Option<Bracket>)| tag(*bracket, smallest) == mode;
            entry.taken.iter().filter(is_of).count()
        };
        self.entries.iter().map(of).min().unwrap_or(0)
    }

    /// Sums up the samples of each point.
    pub fn finish(self, rig: &Rig) -> Vec<Climbed> {
        let smallest = rig.smallest_ns();
        let finish = |entry: Entry| entry.finish(smallest);
        self.entries.into_iter().map(finish).collect()
    }
}

impl Point {
    /// Returns the keys of all threads.
    fn keys(&self) -> usize {
        self.threads * self.share
    }

    /// Returns the keys of a thread nearest to `wanted` that fit into the memory, and are enough
    /// for each part to have one.
    fn share_of(&self, wanted: usize, seconds: Seconds) -> usize {
        let least = self.parts.div_ceil(self.threads).max(PARTS_OF_A_THREAD);
        wanted.min(seconds.most_keys / self.threads).max(least)
    }

    /// Runs the point once, or until it has inserted for so many seconds.
    pub(crate) fn run_for(
        &self,
        cpus: &[Option<usize>],
        keys: &Arc<[u64]>,
        seconds: Option<Seconds>,
        is_interrupted: impl Fn() -> bool,
    ) -> Ended {
        let mut ended = self.run(cpus, keys);
        let secs = seconds.map_or(0.0, |seconds| seconds.secs);
        // A further pass follows if that brings the run closer to its length.
        while ended.fault.is_none()
            && ended.wall().as_secs_f64() * (1.0 + 0.5 / f64::from(ended.passes)) < secs
            && !is_interrupted()
        {
            ended = ended.followed_by(self.run(cpus, keys));
        }
        ended
    }

    /// Runs the point once.
    pub(crate) fn run(&self, cpus: &[Option<usize>], keys: &Arc<[u64]>) -> Ended {
        let job = Job {
            threads: self.threads,
            share: self.share,
            parts: self.parts,
            equal_shares: self.equal_shares,
            padding: self.padding,
            pages: self.pages,
            cpus: cpus.to_vec(),
            watched: self.watched,
            keys: Arc::clone(keys),
        };
        free_memory();
        let first = cpus.first().copied().flatten();
        let neighbour = self.neighbour.then(|| Neighbour::on(first)).transpose();
        match neighbour {
            Ok(_works_meanwhile) => self.rung.run(&job),
            Err(error) => Ended::failed(format!("the system gave no thread: {error}")),
        }
    }

    fn params(&self, cpus: &[Option<usize>]) -> Params {
        let mut extra = Extra::default();
        let mut add =
            |name: &str, value: serde_json::Value| extra.other.insert(name.to_owned(), value);
        add("keys", self.share.into());
        add("pages", self.pages.name().into());
        if self.rung.takes_parts {
            let parts = if self.equal_shares {
                self.threads
            } else {
                self.parts
            };
            add("parts", parts.into());
        }
        if self.rung.is_padded {
            add("padding", self.padding.into());
        }
        if self.neighbour {
            add("neighbour", true.into());
        }
        Params {
            threads: self.threads,
            vars: 1,
            placement: cpus.to_vec(),
            extra,
            ..Params::default()
        }
    }
}

impl Entry {
    fn sample(&mut self, rig: &mut Rig, keys: &Arc<[u64]>, seconds: Option<Seconds>) {
        let before = rig.distance();
        let cpu = process_cpu_s();
        let is_interrupted = || rig.is_interrupted();
        let ended = self
            .point
            .run_for(&self.cpus, keys, seconds, is_interrupted);
        let cpu_s = cpu
            .zip(process_cpu_s())
            .map_or(0.0, |(before, after)| after - before);
        let after = rig.distance();
        let bracket = rig.bracket(before, after);
        if ended.fault.is_some() {
            self.fault = ended.fault;
        } else if !rig.is_interrupted() {
            self.taken.push((ended, cpu_s, bracket));
        }
    }

    fn finish(self, smallest: Option<f64>) -> Climbed {
        let correct = self.fault.is_none();
        let sample = |(ended, cpu_s, bracket): &(Ended, f64, Option<Bracket>)| Sample {
            mops: ended.mops(),
            mode: tag(*bracket, smallest),
            rtt_ns: bracket.map(Bracket::larger_ns),
            per_thread: ended.laps.iter().map(|lap| lap.keys).collect(),
            cpu_s: *cpu_s,
            latency_ns: None,
            arrivals: None,
            fibres: None,
            counts: None,
            picture: None,
            cache: None,
        };
        let samples: Vec<Sample> = self.taken.iter().map(sample).collect();
        let by_mode = match correct {
            true => kept(&samples),
            false => BTreeMap::new(),
        };
        let all: Vec<f64> = by_mode.values().flatten().copied().collect();
        let mut notes: Vec<String> = self.fault.into_iter().collect();
        if correct && all.is_empty() {
            notes.push("no sample could be used".to_owned());
        }
        let run = Run {
            workload: WORKLOAD.to_owned(),
            method: self.point.rung.name.to_owned(),
            params: self.point.params(&self.cpus),
            correct,
            median_mops: stats::median(&all).unwrap_or(0.0),
            harmonic_mean_mops: stats::harmonic_mean(&all).unwrap_or(0.0),
            by_mode: by_mode
                .into_iter()
                .filter_map(|(mode, mops)| Some((mode, summary(&mops)?)))
                .collect(),
            samples,
            trustees: Vec::new(),
            latency_ns: None,
            load: None,
            loads: None,
            not_installed: None,
            cache: None,
            notes,
        };
        let modes: Vec<Mode> = run.samples.iter().map(|sample| sample.mode).collect();
        let ended = self.taken.into_iter().map(|(ended, ..)| ended);
        Climbed {
            point: self.point,
            run,
            ended: modes.into_iter().zip(ended).collect(),
        }
    }
}
