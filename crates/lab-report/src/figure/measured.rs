//! Questions about a measured figure: values, peaks and knees, in one mode of the machine.

use super::outcome::{Drawing, Outcome, place_of};
use super::quantity::{Quantity, Value};
use crate::data::MODES;
use crate::words;
use corelay_lab_measure::schema::{ConflictCounts, Machine, Mode, Run, TimeOfParts};

/// Share of a line's peak at which it has its knee: the first point within 5 % of the peak.
/// Points after the knee gain nothing worth mentioning.
pub const KNEE: f64 = 0.95;

/// A measured figure, seen in one mode.
#[derive(Clone, Copy, Debug)]
pub struct Measured<'a> {
    outcome: &'a Outcome,
    mode: Mode,
}

impl<'a> Measured<'a> {
    /// Makes the view of a figure in the mode with the most samples.
    pub fn of(outcome: &'a Outcome) -> Self {
        let samples = || outcome.results.runs.iter().flat_map(|run| &run.samples);
        let seen = |mode: &Mode| samples().filter(|sample| sample.mode == *mode).count();
        // If modes have equally many samples, takes the first: near.
        let mode = MODES.into_iter().rev().max_by_key(seen);
        let mode = mode.unwrap_or(Mode::Unknown);
        Self { outcome, mode }
    }

    /// Makes the view of a figure in `mode`.
    pub(crate) fn in_mode(outcome: &'a Outcome, mode: Mode) -> Self {
        Self { outcome, mode }
    }

    /// Makes a view for each mode that occurred in at least half of the runs, the most frequent
    /// first.
    pub(crate) fn in_all_modes(outcome: &'a Outcome) -> Vec<Self> {
        let usual = Self::of(outcome);
        // Methods that are not installed or did not complete have no figure in any mode.
        let has_figure = |run: &&Run| run.correct && run.samples.iter().any(|s| s.mops > 0.0);
        let runs = outcome.results.runs.iter().filter(has_figure);
        let is_seen = |m: &Self| {
            let with = |run: &&Run| Quantity::Throughput.of(run, m.mode).is_some();
            2 * runs.clone().filter(with).count() >= runs.clone().count().max(1)
        };
        let others = MODES.into_iter().filter(|mode| *mode != usual.mode);
        let others = others
            .map(|mode| Self::in_mode(outcome, mode))
            .filter(is_seen);
        std::iter::once(usual).chain(others).collect()
    }

    /// Returns the mode of the machine that this view shows.
    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns the figure in all modes.
    pub fn outcome(&self) -> &'a Outcome {
        self.outcome
    }

    /// Returns the machine that measured the figure.
    pub fn machine(&self) -> &'a Machine {
        &self.outcome.results.machine
    }

    /// Returns the panels in order.
    pub fn panels(&self) -> &'a [Drawing] {
        &self.outcome.figure.panels
    }

    /// Returns the panel with that key.
    pub fn panel(&self, key: &str) -> Option<&'a Drawing> {
        self.panels().iter().find(|panel| panel.key == key)
    }

    /// Returns the runs of a line in order of x.
    pub fn runs(&self, panel: &str, line: &str) -> Vec<(f64, &'a Run)> {
        let placed = |run: &'a Run| Some((place_of(run, panel, line)?, run));
        let mut runs: Vec<_> = self
            .outcome
            .results
            .runs
            .iter()
            .filter_map(placed)
            .collect();
        runs.sort_by(|a, b| a.0.total_cmp(&b.0));
        runs
    }

    /// Returns the values of a line in order of x.
    pub fn points(&self, panel: &str, line: &str, quantity: Quantity) -> Vec<(f64, Value)> {
        let value = |(x, run)| Some((x, quantity.of(run, self.mode)?));
        let runs = self.runs(panel, line).into_iter();
        runs.filter_map(value).collect()
    }

    /// Returns a line's value at x.
    pub fn at(&self, panel: &str, line: &str, x: f64, quantity: Quantity) -> Option<f64> {
        let points = self.points(panel, line, quantity);
        let found = points.into_iter().find(|(at, _)| *at == x);
        found.map(|(_, value)| value.middle)
    }

    /// Returns the time of the parts of a line's operations at x, over all samples of the mode;
    /// `None` if the line does not take it.
    pub fn parts(&self, panel: &str, line: &str, x: f64) -> Option<TimeOfParts> {
        let runs = self.runs(panel, line).into_iter();
        let (_, run) = runs.into_iter().find(|(at, run)| *at == x && run.correct)?;
        let samples = run.samples.iter().filter(|s| s.mode == self.mode);
        let counts: ConflictCounts = samples.filter_map(|s| s.counts).sum();
        Some(counts.parts).filter(|parts| parts.whole > 0)
    }

    /// Returns the throughput of a line at x, in Mops.
    pub fn mops(&self, panel: &str, line: &str, x: f64) -> Option<f64> {
        self.at(panel, line, x, Quantity::Throughput)
    }

    /// Returns the highest throughput of a line, as (x, Mops).
    pub fn peak(&self, panel: &str, line: &str) -> Option<(f64, f64)> {
        peak(&self.throughput(panel, line))
    }

    /// Returns the first point of a line within [`KNEE`] of its peak, as (x, Mops).
    pub fn knee(&self, panel: &str, line: &str) -> Option<(f64, f64)> {
        knee(&self.throughput(panel, line))
    }

    /// Returns the last point of a line, as (x, Mops).
    pub fn last(&self, panel: &str, line: &str) -> Option<(f64, f64)> {
        self.throughput(panel, line).last().copied()
    }

    /// Returns the points of a line, as (x, Mops).
    pub fn throughput(&self, panel: &str, line: &str) -> Vec<(f64, f64)> {
        let points = self.points(panel, line, Quantity::Throughput);
        points.into_iter().map(|(x, v)| (x, v.middle)).collect()
    }

    /// Returns the line of a panel that is highest at x, with its Mops.
    pub fn winner(&self, panel: &str, x: f64) -> Option<(&'a str, f64)> {
        let lines = &self.panel(panel)?.lines;
        self.best_of(panel, lines.iter().map(String::as_str), x)
    }

    /// Returns the one of `lines` that is highest at x, with its Mops.
    pub fn best_of<'l>(
        &self,
        panel: &str,
        lines: impl IntoIterator<Item = &'l str>,
        x: f64,
    ) -> Option<(&'l str, f64)> {
        let at = |line: &'l str| Some((line, self.mops(panel, line, x)?));
        let lines = lines.into_iter().filter_map(at);
        lines.max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// Returns the median round trip of the mode's samples, in nanoseconds.
    pub fn round_trip_ns(&self) -> Option<f64> {
        let runs: Vec<&Run> = self.outcome.results.runs.iter().collect();
        crate::data::round_trip(&runs, self.mode)
    }

    /// Describes the mode, with its round trip if that is known.
    pub(crate) fn mode_words(&self) -> String {
        let rtt = self.round_trip_ns().map_or(String::new(), |ns| {
            format!(", round trip {} ns", crate::plot::significant(ns))
        });
        format!("{}{rtt}", words::mode(self.mode))
    }
}

fn peak(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    // If points are equally high, takes the first.
    let points = points.iter().rev().copied();
    points.max_by(|a, b| a.1.total_cmp(&b.1))
}

fn knee(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let (_, most) = peak(points)?;
    points.iter().find(|(_, y)| *y >= KNEE * most).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_knee_is_the_first_point_near_the_peak() {
        let line = [
            (1.0, 10.0),
            (2.0, 40.0),
            (4.0, 96.0),
            (8.0, 100.0),
            (16.0, 70.0),
        ];
        assert_eq!(peak(&line), Some((8.0, 100.0)));
        assert_eq!(knee(&line), Some((4.0, 96.0)));
        assert_eq!(knee(&line[..2]), Some((2.0, 40.0)));
        assert_eq!(peak(&[(1.0, 5.0), (2.0, 5.0)]), Some((1.0, 5.0)));
        assert_eq!((peak(&[]), knee(&[])), (None, None));
    }
}
