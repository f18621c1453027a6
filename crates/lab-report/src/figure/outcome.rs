//! A figure that was measured, as a file: the results as every command of the lab writes them,
//! and beside them what they are a figure of.
//!
//! ```text
//! Outcome { schema, machine, commit, command, runs: [Run], figure: About }
//!   Run.params { …, panel, line, x }       where in the figure
//! About   { name, title, source, there, secs, samples, panels: [Drawing], tables: [Grid],
//!           curves: [Curve], drawn: [Sign], beside: [Beside], said: [sentence],
//!           missing: [sentence], offsets?: Offsets }
//! Drawing { key, title, axis, quantities, lines }
//! Beside  { what, there, here }
//! Offsets { cpus, rounds, samples: [{ offsets_ns: [[ns]], step_ns, boundary_ns, took_s }] }
//! ```

use super::offsets::Offsets;
use super::quantity::Quantity;
use crate::table::grid::Grid;
use corelay_lab_measure::schema::{Results, Run};
use serde::{Deserialize, Serialize};

/// What one figure's measuring gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// What it is a figure of.
    pub figure: About,
    /// Machine, commit, command and runs.
    #[serde(flatten)]
    pub results: Results,
}

impl Outcome {
    /// Nothing was measured.
    pub fn is_empty(&self) -> bool {
        self.results.runs.is_empty() && self.figure.offsets.is_none()
    }
}

/// A figure, as far as a reader of its file needs to know it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct About {
    /// Its name.
    pub name: String,
    /// What it asks.
    pub title: String,
    /// Its source, and the place in it.
    pub source: String,
    /// The source's machine.
    pub there: String,
    /// Length of a sample in seconds.
    pub secs: f64,
    /// Samples of each contender.
    pub samples: u64,
    /// Its panels.
    pub panels: Vec<Drawing>,
    /// Tables that the figure adds to those which follow from the runs.
    pub tables: Vec<Grid>,
    /// What models say, drawn over what was measured.
    pub curves: Vec<Curve>,
    /// Printed values of the source that stand in the pictures.
    pub drawn: Vec<Sign>,
    /// The source's printed values beside ours.
    pub beside: Vec<Beside>,
    /// What there is to say.
    pub said: Vec<String>,
    /// What could not be measured here, and why.
    pub missing: Vec<String>,
    /// Offsets between the CPUs' clocks, where they are what it shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offsets: Option<Offsets>,
}

/// A panel as it was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Drawing {
    /// Its name.
    pub key: String,
    /// What is varied.
    pub title: String,
    /// The horizontal axis.
    pub axis: Axis,
    /// What stands on vertical axes.
    pub quantities: Vec<Quantity>,
    /// The lines' names, in order.
    pub lines: Vec<String>,
}

/// A horizontal axis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Axis {
    /// Name and unit.
    pub label: String,
    /// Equal steps for equal ratios.
    pub log: bool,
}

impl Axis {
    /// Shared variables of a line each: the axis on which caches and contention are marked.
    pub(crate) const VARS: &str = "shared variables of 64 bytes";

    /// Equal steps for equal ratios.
    pub fn log(label: &str) -> Self {
        Self {
            label: label.to_owned(),
            log: true,
        }
    }

    /// Equal steps for equal differences.
    pub fn linear(label: &str) -> Self {
        Self {
            label: label.to_owned(),
            log: false,
        }
    }

    /// That of shared variables.
    pub fn vars() -> Self {
        Self::log(Self::VARS)
    }
}

/// A printed value in a picture: a place, or a height from one place to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sign {
    /// The panel, by its key.
    pub panel: String,
    /// In words.
    pub label: String,
    /// From where to where on the horizontal axis.
    pub x: (f64, f64),
    /// How high; `None` for a place.
    pub mops: Option<f64>,
}

/// A model's curve over a panel's picture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// The panel, by its key.
    pub panel: String,
    /// Which of its pictures.
    pub quantity: Quantity,
    /// Its name; `model: ` is put before it.
    pub label: String,
    /// Its points in order of x.
    pub points: Vec<(f64, f64)>,
}

/// A printed value of the source and what was measured here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beside {
    /// What is stated.
    pub what: String,
    /// There.
    pub there: String,
    /// Here; `None` where this machine cannot say.
    pub here: Option<String>,
}

/// Where in a figure a run stands.
const PANEL: &str = "panel";
const LINE: &str = "line";
const X: &str = "x";

/// Writes into a run where in the figure it stands.
pub fn place(run: &mut Run, panel: &str, line: &str, x: f64) {
    let extra = &mut run.params.extra;
    extra.insert(PANEL.to_owned(), panel.into());
    extra.insert(LINE.to_owned(), line.into());
    extra.insert(X.to_owned(), x.into());
}

/// Where on the axis a run stands, if it is of that panel and line.
pub fn place_of(run: &Run, panel: &str, line: &str) -> Option<f64> {
    let extra = &run.params.extra;
    let is = |key, value| extra.get(key).and_then(|v| v.as_str()) == Some(value);
    (is(PANEL, panel) && is(LINE, line))
        .then(|| extra.get(X)?.as_f64())
        .flatten()
}
