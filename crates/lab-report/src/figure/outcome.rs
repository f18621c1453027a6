//! The file of a measured figure: the results in the schema of every command of the lab, and a
//! description of the figure beside them.
//!
//! ```text
//! Outcome { schema, machine, commit, command, runs: [Run], figure: About }
//!   Run.params { …, panel, line, x }       where in the figure
//! About   { name, title, source, there, secs, samples, panels: [Drawing], tables: [Grid],
//!           stacks?: [Stack], curves: [Curve], drawn: [PrintedMark], beside: [PrintedValue], said: [sentence],
//!           missing: [sentence], offsets?: Offsets }
//! Drawing { key, title, axis, quantities, lines }
//! Stack   { title, label, kinds: [name], bars: [[name, [value]]] }
//! PrintedMark  { panel, label, x, mops }
//! PrintedValue { what, there, here }
//! Offsets { cpus, rounds, samples: [{ offsets_ns: [[ns]], step_ns, boundary_ns, ticks_per_ns?, took_s }] }
//! ```

use super::offsets::Offsets;
use super::quantity::Quantity;
use super::stack::Stack;
use crate::table::grid::Grid;
use corelay_lab_measure::schema::{Results, Run};
use serde::{Deserialize, Serialize};

/// A measured figure, as its file holds it: the description and the results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The description of the figure.
    pub figure: About,
    /// Machine, commit, command and runs.
    #[serde(flatten)]
    pub results: Results,
}

impl Outcome {
    /// Whether nothing was measured.
    pub fn is_empty(&self) -> bool {
        self.results.runs.is_empty() && self.figure.offsets.is_none()
    }
}

/// The description of a figure, for a reader of its file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct About {
    /// The figure's name on the command line and of its files.
    pub name: String,
    /// The question that the figure answers.
    pub title: String,
    /// The source, and the place in it.
    pub source: String,
    /// The machine on which the source measured.
    pub there: String,
    /// Length of a sample in seconds.
    pub secs: f64,
    /// Samples of each contender.
    pub samples: u64,
    /// The panels, in the order in which they are drawn.
    pub panels: Vec<Drawing>,
    /// Tables beyond those that follow from the runs.
    pub tables: Vec<Grid>,
    /// Bars that show the parts of wholes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stacks: Vec<Stack>,
    /// Curves of models, drawn over the measured lines.
    pub curves: Vec<Curve>,
    /// Printed values of the source that are marked in the pictures.
    pub drawn: Vec<PrintedMark>,
    /// The source's printed values beside ours.
    pub beside: Vec<PrintedValue>,
    /// Sentences about the measured figures.
    pub said: Vec<String>,
    /// Sentences that say what could not be measured here, and why.
    pub missing: Vec<String>,
    /// Offsets between the CPUs' clocks, if the figure shows them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offsets: Option<Offsets>,
}

/// A panel as it was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Drawing {
    /// The panel's name in the figure's files.
    pub key: String,
    /// The parameter that the panel varies, in a few words.
    pub title: String,
    /// The horizontal axis.
    pub axis: Axis,
    /// The quantities on vertical axes.
    pub quantities: Vec<Quantity>,
    /// The lines' names, in order.
    pub lines: Vec<String>,
}

/// The horizontal axis of a panel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Axis {
    /// The axis' name and unit.
    pub label: String,
    /// Whether the axis is logarithmic, with equal steps for equal ratios.
    pub log: bool,
}

impl Axis {
    /// Label of the axis of shared variables of a cache line each, on which caches and contention
    /// are marked.
    pub(crate) const VARS: &str = "shared variables of 64 bytes";

    /// Makes a logarithmic axis, with equal steps for equal ratios.
    pub fn log(label: &str) -> Self {
        Self {
            label: label.to_owned(),
            log: true,
        }
    }

    /// Makes a linear axis, with equal steps for equal differences.
    pub fn linear(label: &str) -> Self {
        Self {
            label: label.to_owned(),
            log: false,
        }
    }

    /// Makes the axis of shared variables.
    pub fn vars() -> Self {
        Self::log(Self::VARS)
    }
}

/// A printed value marked in a picture: a place on the axis, or a height over a range of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PrintedMark {
    /// The panel, by its key.
    pub panel: String,
    /// The text of the mark.
    pub label: String,
    /// The range on the horizontal axis.
    pub x: (f64, f64),
    /// The height of the mark in Mops; `None` if it marks a place on the horizontal axis.
    pub mops: Option<f64>,
}

/// A model's curve over a panel's picture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// The panel, by its key.
    pub panel: String,
    /// The quantity whose picture it is drawn in.
    pub quantity: Quantity,
    /// The name; `model: ` is put before it.
    pub label: String,
    /// The points in order of x.
    pub points: Vec<(f64, f64)>,
}

/// A printed value of the source and the value measured here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrintedValue {
    /// The subject of the printed value.
    pub what: String,
    /// The value that the source prints.
    pub there: String,
    /// The value measured here; `None` if this machine cannot give one.
    pub here: Option<String>,
}

/// Writes a run's position in the figure into its parameters.
pub fn place(run: &mut Run, panel: &str, line: &str, x: f64) {
    let extra = &mut run.params.extra;
    extra.panel = Some(panel.to_owned());
    extra.line = Some(line.to_owned());
    extra.x = Some(x);
}

/// Returns a run's place on the axis, if it is of that panel and line.
pub fn place_of(run: &Run, panel: &str, line: &str) -> Option<f64> {
    let extra = &run.params.extra;
    let is_there = extra.panel.as_deref() == Some(panel) && extra.line.as_deref() == Some(line);
    extra.x.filter(|_| is_there)
}
