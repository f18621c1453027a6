//! The whole ladder: every rung over the numbers of threads, and two sweeps beside it.

use super::ballpark::Costs;
use super::climb::{Climb, Climbed, Point, Seconds};
use super::job::Pages;
use super::rungs::{self, Rung};
use corelay_lab_measure::measure::rig::Rig;
use corelay_lab_measure::schema::{Mode, ModeSummary};
use std::collections::BTreeMap;

/// Parts for each thread, by default. The source says that this is enough against stragglers.
pub const PARTS_OF_A_THREAD: usize = 4;

/// Bytes between two heads, by default: two lines, because some processors fetch lines in pairs.
pub const PADDING: usize = 128;

/// The plan of the ladder: the points to measure, and their samples.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The rungs to measure.
    pub rungs: Vec<&'static Rung>,
    /// Numbers of threads, ascending.
    pub threads: Vec<usize>,
    /// Keys of each thread.
    pub share: usize,
    /// The length of a run in the place of a number of keys, if it is given.
    pub seconds: Option<Seconds>,
    /// Numbers of parts to sweep with the most threads, each at least the number of threads.
    pub parts: Vec<usize>,
    /// Paddings to sweep with the most threads: bytes between two heads.
    pub paddings: Vec<usize>,
    /// The memory that is touched before the timed phase.
    pub pages: Pages,
    /// Samples of each point.
    pub rounds: usize,
}

/// The figures of the ladder.
#[derive(Debug)]
pub struct Ladder {
    /// Every rung with every number of threads, ordered by rung and then by threads.
    pub(crate) rungs: Vec<Climbed>,
    /// `padded` with the most threads, by bytes between two heads.
    pub(crate) paddings: Vec<Climbed>,
    /// `padded` with the most threads, by parts: alone, then with a neighbour.
    pub(crate) parts: Vec<[Climbed; 2]>,
    /// The machine's mode with the most samples. Comparisons are made within it.
    pub(crate) mode: Mode,
    /// The costs of an insertion's steps, measured before the first run.
    pub(crate) costs: Costs,
    /// The length that runs were to have, if they were to have one.
    pub(crate) seconds: Option<Seconds>,
}

impl Plan {
    /// Returns the numbers of parts worth a sweep with so many threads.
    pub fn usual_parts(threads: usize) -> Vec<usize> {
        [1, 2, PARTS_OF_A_THREAD, 16, 64]
            .map(|n| n * threads)
            .to_vec()
    }

    /// Returns the largest number of threads.
    pub fn most(&self) -> usize {
        self.threads.iter().copied().max().unwrap_or(1)
    }

    /// Returns the number of runs that measuring takes, warm-up included.
    pub fn runs(&self) -> usize {
        let sweeps = self.paddings.len() + 2 * self.parts.len();
        let before = if self.seconds.is_some() { 2 } else { 1 };
        (self.rounds + before) * (self.rungs.len() * self.threads.len() + sweeps)
    }

    fn point(&self, rung: &'static Rung, threads: usize) -> Point {
        Point {
            rung,
            threads,
            share: self.share,
            parts: PARTS_OF_A_THREAD * threads,
            equal_shares: false,
            padding: PADDING,
            pages: self.pages,
            neighbour: false,
            watched: false,
        }
    }

    fn points(&self) -> Vec<Point> {
        let padded = rungs::named("padded").expect("it is a rung");
        let most = self.point(padded, self.most());
        let rungs = self.rungs.iter();
        let mut points: Vec<Point> = rungs
            .flat_map(|rung| {
                self.threads
                    .iter()
                    .map(|&threads| self.point(rung, threads))
            })
            .collect();
        let padding = |&padding: &usize| Point {
            padding,
            ..most.clone()
        };
        points.extend(self.paddings.iter().map(padding));
        for &parts in &self.parts {
            for neighbour in [false, true] {
                points.push(Point {
                    parts,
                    neighbour,
                    ..most.clone()
                });
            }
        }
        points
    }

    /// Measures the ladder; `None` if an interrupt came before each point had a sample.
    pub fn measure(
        &self,
        rig: &mut Rig,
        cpus: &[Option<usize>],
        mut tick: impl FnMut(&str),
    ) -> Option<Ladder> {
        let costs = Costs::measure(rig);
        let mut climb = Climb::new(self.points(), cpus).lasting(self.seconds);
        if !climb.measure(rig, self.rounds, &mut tick) {
            return None;
        }
        let all = climb.finish(rig);
        let mode = usual(&all);
        let mut all = all.into_iter();
        let rungs = self.rungs.len() * self.threads.len();
        let rungs = all.by_ref().take(rungs).collect();
        let paddings: Vec<Climbed> = all.by_ref().take(self.paddings.len()).collect();
        let mut parts = Vec::new();
        while let (Some(alone), Some(beside)) = (all.next(), all.next()) {
            parts.push([alone, beside]);
        }
        let mut ladder = Ladder {
            rungs,
            paddings,
            parts,
            mode,
            costs,
            seconds: self.seconds,
        };
        ladder.name_sweeps();
        Some(ladder)
    }
}

/// Returns the machine's mode with the most samples.
pub(crate) fn usual(all: &[Climbed]) -> Mode {
    let mut counts: BTreeMap<Mode, usize> = BTreeMap::new();
    for (mode, _) in all.iter().flat_map(|climbed| &climbed.ended) {
        *counts.entry(*mode).or_default() += usize::from(*mode != Mode::Discarded);
    }
    let most = counts.into_iter().max_by_key(|&(_, count)| count);
    most.map_or(Mode::Unknown, |(mode, _)| mode)
}

impl Climbed {
    /// Returns `mode` if the point has samples in it, else a mode in which it has some.
    pub(crate) fn mode_of(&self, mode: Mode) -> Option<Mode> {
        let modes = &self.run.by_mode;
        let known = modes.contains_key(&mode).then_some(mode);
        known.or_else(|| modes.keys().next().copied())
    }

    /// Returns the summary of the samples in that mode.
    pub(crate) fn best(&self, mode: Mode) -> Option<ModeSummary> {
        self.run.by_mode.get(&self.mode_of(mode)?).copied()
    }

    /// Returns the median of these samples, in Mops.
    pub(crate) fn mops(&self, mode: Mode) -> Option<f64> {
        self.best(mode).map(|summary| summary.median_mops)
    }
}

impl Ladder {
    /// Returns a rung with so many threads.
    pub(crate) fn rung(&self, name: &str, threads: usize) -> Option<&Climbed> {
        let is_it = |c: &&Climbed| c.point.rung.name == name && c.point.threads == threads;
        self.rungs.iter().find(is_it)
    }

    /// Returns how many times as fast a rung is with so many threads as with one.
    pub(crate) fn speed_up(&self, name: &str, threads: usize) -> Option<f64> {
        let mops = |threads| self.rung(name, threads)?.mops(self.mode);
        Some(mops(threads)? / mops(1)?)
    }

    /// Returns every measured point.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Climbed> {
        let sweeps = self.paddings.iter().chain(self.parts.iter().flatten());
        self.rungs.iter().chain(sweeps)
    }

    /// Makes the sweeps workloads of their own: as part of the ladder they would be points of one
    /// line.
    fn name_sweeps(&mut self) {
        for climbed in &mut self.paddings {
            climbed.run.workload += "-padding";
        }
        for climbed in self.parts.iter_mut().flatten() {
            climbed.run.workload += "-parts";
        }
    }
}
