//! Why a rung does not scale (L7): the time of its threads, split by what it went into.
//!
//! | module | idea |
//! |---|---|
//! | [`split`] | the time for a key, in parts that add up |
//! | `show` | the output: tables, the stacked bar, sentences |
//!
//! The runs are watched: waiting for locks and the making of nodes are timed, which makes them a
//! little slower than those of the ladder.

mod show;
pub mod split;

pub use show::QUESTION;

use super::list::climb::{Climb, Climbed, Point};
use super::list::job::Pages;
use super::list::ladder::{PADDING, PARTS_OF_A_THREAD, usual};
use super::list::rungs::Rung;
use corelay_lab_measure::measure::rig::Rig;
use corelay_lab_measure::schema::Mode;

/// The rungs to watch, and the size of the runs.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The rungs to watch.
    pub rungs: Vec<&'static Rung>,
    /// Threads. Each rung also runs with one.
    pub threads: usize,
    /// Keys of each thread.
    pub share: usize,
    /// Samples of each rung.
    pub rounds: usize,
}

/// The watched runs of each rung.
#[derive(Debug)]
pub struct Watched {
    /// Each rung with one thread, and with all threads.
    pub(crate) rungs: Vec<[Climbed; 2]>,
    /// The machine's mode with the most samples.
    pub(crate) mode: Mode,
}

impl Plan {
    /// Returns the number of runs that measuring takes, warm-up included.
    pub fn runs(&self) -> usize {
        (self.rounds + 1) * 2 * self.rungs.len()
    }

    fn point(&self, rung: &'static Rung, threads: usize) -> Point {
        Point {
            rung,
            threads,
            share: self.share,
            parts: PARTS_OF_A_THREAD * threads,
            equal_shares: false,
            padding: PADDING,
            pages: Pages::Touched,
            neighbour: false,
            watched: true,
        }
    }

    /// Measures the rungs; `None` if an interrupt came before each had a sample.
    pub fn measure(
        &self,
        rig: &mut Rig,
        cpus: &[Option<usize>],
        mut tick: impl FnMut(&str),
    ) -> Option<Watched> {
        let both = |rung| [self.point(rung, 1), self.point(rung, self.threads)];
        let points = self.rungs.iter().copied().flat_map(both).collect();
        let mut climb = Climb::new(points, cpus);
        if !climb.measure(rig, self.rounds, &mut tick) {
            return None;
        }
        let all = climb.finish(rig);
        let mode = usual(&all);
        let mut all = all.into_iter().map(|mut climbed| {
            climbed.run.workload += "-why";
            climbed
        });
        let mut rungs = Vec::new();
        while let (Some(alone), Some(together)) = (all.next(), all.next()) {
            rungs.push([alone, together]);
        }
        Some(Watched { rungs, mode })
    }
}
