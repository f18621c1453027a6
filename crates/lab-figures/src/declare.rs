//! What a figure says of itself, and nothing about how it is measured or drawn.

use super::size::Size;
use corelay_lab_bench::fibres::session::Item as OfFibres;
use corelay_lab_bench::ordered::contest::Entrant;
use corelay_lab_measure::measure::plan::Item;
use corelay_lab_measure::workload::fetch_add;
use corelay_lab_report::figure::measured::Measured;
use corelay_lab_report::figure::outcome::{Axis, Curve, Sign};
use corelay_lab_report::figure::quantity::Quantity;
use corelay_lab_report::table::grid::Grid;

/// A figure of a source.
pub struct Figure {
    /// Its name on the command line and of its files.
    pub name: &'static str,
    /// What it asks, in a sentence.
    pub title: &'static str,
    /// Where it is from.
    pub source: Source,
    /// CPUs without which nothing of it can be measured.
    pub least: usize,
    /// CPUs from which on it has every dimension that the source's has.
    pub whole: usize,
    /// What fewer than `whole` leave out, and what stands instead; empty where that is `least`.
    pub(crate) fewer: &'static str,
    /// What is measured, at the reader's size.
    pub(crate) panels: fn(&Size) -> Vec<Panel>,
    /// Offsets between the CPUs' clocks are measured for it.
    pub offsets: bool,
    /// Why nothing can be measured here, where CPUs are not the reason.
    pub(crate) unavailable: fn() -> Option<String>,
    /// What the source prints.
    pub printed: &'static [Printed],
    /// Tables beside those that every figure has.
    pub(crate) tables: fn(&Measured<'_>) -> Vec<Grid>,
    /// What models say, to be drawn over what was measured.
    pub(crate) curves: fn(&Measured<'_>) -> Vec<Curve>,
    /// What there is to say about what was measured, a sentence or two each.
    pub(crate) words: fn(&Measured<'_>) -> Vec<String>,
}

impl Figure {
    /// What a figure does not say is so.
    pub(super) const PLAIN: Self = Self {
        name: "",
        title: "",
        source: Source::Thesis(""),
        least: 2,
        whole: 2,
        fewer: "",
        panels: |_| Vec::new(),
        offsets: false,
        unavailable: || None,
        printed: &[],
        tables: |_| Vec::new(),
        curves: |_| Vec::new(),
        words: |_| Vec::new(),
    };
}

impl std::fmt::Debug for Figure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Figure")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// A source, and the section or slide in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The thesis on asynchronous delegation.
    Thesis(&'static str),
    /// The slides on ffwd.
    Ffwd(&'static str),
    /// The scheduler chapter's micro-benchmarks.
    Chapter(&'static str),
    /// The slides on Ordo.
    Ordo(&'static str),
}

impl Source {
    /// What it is called, with the place in it.
    pub fn name(self) -> String {
        match self {
            Self::Thesis(section) => {
                format!("the thesis on asynchronous delegation, “{section}”")
            }
            Self::Ffwd(slide) => format!("the slides on ffwd, “{slide}”"),
            Self::Chapter(section) => {
                format!("the chapter on the scheduler of C∀, “{section}”")
            }
            Self::Ordo(slide) => format!("the slides on Ordo, “{slide}”"),
        }
    }

    /// The machine whose figures it prints.
    pub(crate) fn machine(self) -> &'static str {
        match self {
            Self::Thesis(_) => "Intel Skylake, 2 sockets, 28 cores, 56 threads",
            Self::Ffwd(_) => "4 × 16-core Xeon E5-4660 (Broadwell), 2.2 GHz, 128 threads",
            Self::Chapter(_) => {
                "2 × 64-core EPYC 7662, 256 threads, and 4 × 24-core Xeon Platinum 8160, 192 threads"
            }
            Self::Ordo(_) => {
                "8-socket Xeon, 240 cores; Xeon Phi, 256; 2-socket ARM, 96; 8-socket AMD, 32"
            }
        }
    }
}

/// Lines over one axis: a picture for each quantity.
#[derive(Debug)]
pub(crate) struct Panel {
    /// Its name in the figure's files.
    pub(crate) key: &'static str,
    /// What is varied, in a few words.
    pub(crate) title: &'static str,
    /// The horizontal axis.
    pub(crate) axis: Axis,
    /// What stands on vertical axes, the first first.
    pub(crate) quantities: &'static [Quantity],
    /// The lines, the most important last.
    pub(crate) lines: Vec<Line>,
}

/// A line: one way of sharing, one choice of its parameters.
#[derive(Debug)]
pub(crate) struct Line {
    /// Its name.
    pub(crate) label: String,
    /// Its points in order of x.
    pub(crate) cells: Vec<Cell>,
}

impl Line {
    pub(super) fn new(label: impl Into<String>, cells: impl IntoIterator<Item = Cell>) -> Self {
        Self {
            label: label.into(),
            cells: cells.into_iter().collect(),
        }
    }
}

/// One contender and its place on the axis.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    /// Where.
    pub(crate) x: f64,
    /// What.
    pub(crate) work: Work,
    /// The name of what is done.
    pub(crate) workload: &'static str,
}

/// What is measured at a point.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    /// A way of sharing: fetch-add, where its method does nothing else.
    Sharing(Item),
    /// A benchmark of fibres; where time ends it, it is the figure's pace that says when.
    Fibres(OfFibres),
    /// What a clock orders.
    Ordered(Entrant),
}

impl Work {
    pub(super) fn sharing(&self) -> Option<&Item> {
        match self {
            Self::Sharing(item) => Some(item),
            Self::Fibres(_) | Self::Ordered(_) => None,
        }
    }

    pub(super) fn fibres(&self) -> Option<&OfFibres> {
        match self {
            Self::Fibres(item) => Some(item),
            Self::Sharing(_) | Self::Ordered(_) => None,
        }
    }

    pub(super) fn ordered(&self) -> Option<&Entrant> {
        match self {
            Self::Ordered(entrant) => Some(entrant),
            Self::Sharing(_) | Self::Fibres(_) => None,
        }
    }
}

impl Cell {
    pub(super) fn new(x: impl Into<f64>, item: Item) -> Self {
        Self {
            x: x.into(),
            work: Work::Sharing(item),
            workload: fetch_add::NAME,
        }
    }

    pub(super) fn ordered(x: impl Into<f64>, entrant: Entrant) -> Self {
        Self {
            x: x.into(),
            workload: entrant.spec.bench.name(),
            work: Work::Ordered(entrant),
        }
    }

    pub(super) fn of_fibres(x: impl Into<f64>, item: OfFibres) -> Self {
        Self {
            x: x.into(),
            workload: item.spec.bench.name(),
            work: Work::Fibres(item),
        }
    }
}

/// A statement that the source prints, to stand beside what was measured here.
#[derive(Clone, Copy, Debug)]
pub struct Printed {
    /// What is stated.
    pub(crate) what: &'static str,
    /// What the source says of it.
    pub(crate) there: &'static str,
    /// What was measured of it here; `None` where this machine cannot say.
    pub(crate) here: fn(&Measured<'_>) -> Option<String>,
    /// Where it stands in the picture.
    pub(crate) drawn: Drawn,
}

/// How a printed value stands in the picture of a panel (by its key).
#[derive(Clone, Copy, Debug)]
pub(crate) enum Drawn {
    /// It does not.
    Nowhere,
    /// A place on the horizontal axis.
    At {
        /// The panel.
        panel: &'static str,
        /// Where.
        x: f64,
        /// In words.
        label: &'static str,
    },
    /// A height, in the picture of throughput.
    Level {
        /// The panel.
        panel: &'static str,
        /// How high, in Mops.
        mops: f64,
        /// From where to where on the horizontal axis.
        span: (f64, f64),
        /// In words.
        label: &'static str,
    },
}

impl Drawn {
    /// As it stands in the figure's file.
    pub(super) fn sign(self) -> Option<Sign> {
        let sign = |panel: &str, label: &str, x, mops| Sign {
            panel: panel.to_owned(),
            label: label.to_owned(),
            x,
            mops,
        };
        match self {
            Self::Nowhere => None,
            Self::At { panel, x, label } => Some(sign(panel, label, (x, x), None)),
            Self::Level {
                panel,
                mops,
                span,
                label,
            } => Some(sign(panel, label, span, Some(mops))),
        }
    }
}
