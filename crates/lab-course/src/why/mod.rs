//! Why a rung does not scale (L7): the time of its threads, split into what it went into.
//!
//! | module | idea |
//! |---|---|
//! | [`split`] | the time that a key takes, in parts that add up |
//! | `show` | tables, the stacked bar, sentences |
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

/// What is watched.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The rungs.
    pub rungs: Vec<&'static Rung>,
    /// Threads; each rung is run with one, too.
    pub threads: usize,
    /// Keys of each thread.
    pub share: usize,
    /// Samples of each.
    pub rounds: usize,
}

/// What was watched.
#[derive(Debug)]
pub struct Watched {
    /// Each rung alone, and with all threads.
    pub(crate) rungs: Vec<[Climbed; 2]>,
    /// The mode of most samples.
    pub(crate) mode: Mode,
}

impl Plan {
    /// Runs that it takes, those to warm up among them.
    pub fn runs(&self) -> usize {
        (self.rounds + 1) * 2 * self.rungs.len()
    }

    fn point(&self, rung: &'static Rung, threads: usize) -> Point {
        Point {
            rung,
            threads,
            share: self.share,
            parts: PARTS_OF_A_THREAD * threads,
            padding: PADDING,
            pages: Pages::Touched,
            neighbour: false,
            watched: true,
        }
    }

    /// Measures it; `None` where it was interrupted before each had a sample.
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
