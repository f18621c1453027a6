//! Contenders that share structures. Those of one workload are measured in turn.

use super::declare::{Panel, Work};
use super::measure::{Pace, entries, sharing};
use corelay_lab_measure::measure::rig::Rig;
use corelay_lab_measure::schema::Run;
use corelay_lab_measure::workload::structure::{Structure, Visitor, visit};

/// Measures all contenders that share structures.
pub(super) fn all(
    panels: &[Panel],
    pace: Pace,
    rig: &mut Rig,
    tick: &dyn Fn(),
    missing: &mut Vec<String>,
) -> Vec<Run> {
    let mut all = All {
        panels,
        pace,
        rig,
        tick,
        missing,
        runs: Vec::new(),
    };
    visit(&mut all);
    all.runs
}

struct All<'a> {
    panels: &'a [Panel],
    pace: Pace,
    rig: &'a mut Rig,
    tick: &'a dyn Fn(),
    missing: &'a mut Vec<String>,
    runs: Vec<Run>,
}

impl Visitor for All<'_> {
    fn visit<S: Structure>(&mut self) {
        let entries = entries(self.panels, Work::structure::<S>);
        for alike in entries.chunk_by(|a, b| a.item.workload == b.item.workload) {
            if self.rig.is_interrupted() {
                return;
            }
            let items = alike.iter().map(|entry| entry.with(&entry.item.item));
            self.runs.extend(sharing(
                alike[0].item.workload,
                items.collect(),
                self.pace,
                self.rig,
                self.tick,
                self.missing,
            ));
        }
    }
}
