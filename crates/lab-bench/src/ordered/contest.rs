//! A contest: contenders of several workloads or sizes, sampled in turn.

use super::method::entry;
use super::spec::Spec;
use corelay_lab_measure::measure::plan::Item;
use corelay_lab_measure::measure::rig::Rig;
use corelay_lab_measure::measure::session::{Session, Timing};
use corelay_lab_measure::method::{Method, SetupLimit};
use corelay_lab_measure::schema::{Mode, Run};
use corelay_lab_measure::workload::point::Point;
use std::time::{Duration, Instant};

/// A planned contender of a contest.
#[derive(Clone, Debug)]
pub struct Entrant {
    /// The workload.
    pub spec: Spec,
    /// The method.
    pub method: Method<Spec>,
    /// The threads and other parameters.
    pub point: Point,
    /// Remarks for the reader of the contender's figures.
    pub notes: Vec<String>,
}

/// Contenders in one session for each [`Spec`]. One sample of each is taken in turn, across
/// sessions.
#[derive(Debug, Default)]
pub struct Contest {
    sessions: Vec<(Spec, Session<Spec>)>,
    /// The session of each entrant, in the order in which they were added.
    order: Vec<usize>,
}

impl Contest {
    /// Sets up a contender.
    ///
    /// # Errors
    /// A sentence that says what could not be had.
    pub fn add(&mut self, entrant: Entrant, setup_limit: &SetupLimit) -> Result<(), String> {
        let Entrant {
            spec,
            method,
            point,
            notes,
        } = entrant;
        let known = self.sessions.iter().position(|(of, _)| *of == spec);
        let session = known.unwrap_or_else(|| {
            self.sessions.push((spec, Session::of(spec)));
            self.sessions.len() - 1
        });
        let item = Item {
            method,
            point,
            notes,
        };
        self.sessions[session].1.add(item, setup_limit)?;
        self.order.push(session);
        Ok(())
    }

    /// Runs each contender for `time` without keeping a figure.
    pub fn warm_up(&mut self, rig: &Rig, time: Duration, mut tick: impl FnMut()) {
        for (_, session) in &mut self.sessions {
            session.warm_up(rig, time, &mut tick);
        }
    }

    /// Takes one sample of each contender. Returns false if an interrupt or `deadline` ended the
    /// round early.
    pub fn round(
        &mut self,
        rig: &mut Rig,
        timing: Timing,
        deadline: Option<Instant>,
        mut tick: impl FnMut(),
    ) -> bool {
        let mut sessions = self.sessions.iter_mut();
        sessions.all(|(_, session)| session.round(rig, timing, deadline, &mut tick))
    }

    /// The number of samples of `mode` that each contender has at least, as far as modes are known.
    pub fn blocks(&self, rig: &Rig, mode: Mode) -> usize {
        let blocks = self.sessions.iter().map(|(_, s)| s.blocks(rig, mode));
        blocks.min().unwrap_or(0)
    }

    /// Checks all contenders and summarizes their samples, in the order in which they were added.
    pub fn finish(self, rig: &Rig, timing: Timing) -> Vec<Run> {
        let finish = |(spec, session): (Spec, Session<Spec>)| {
            let runs = session.finish(rig, timing).into_iter();
            runs.map(move |run| note_boundary(run, spec))
        };
        let mut sessions: Vec<_> = self.sessions.into_iter().map(finish).collect();
        let run = |session: usize| sessions[session].next();
        self.order.into_iter().filter_map(run).collect()
    }
}

/// Notes the boundary in the run, and a warning if it was too small to be one (O10).
fn note_boundary(mut run: Run, spec: Spec) -> Run {
    let Ok(entry) = entry(spec.bench, &run.method) else {
        return run;
    };
    if !entry.has_boundary {
        return run;
    }
    let extra = &mut run.params.extra;
    extra.boundary_scale = Some(spec.scale.factor());
    (extra.boundary_ticks, extra.boundary_ns) = entry.boundary(spec).unzip();
    if spec.scale.is_too_small() {
        extra.no_longer_correct = Some(true);
        let note = format!(
            "the boundary × {} is below the measured offset: the order of times is no longer correct",
            spec.scale
        );
        run.notes.push(note);
    }
    run
}
