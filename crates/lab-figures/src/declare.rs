//! The declaration of a figure: its subject and its source, but not how it is measured or drawn.

use super::size::Size;
use corelay_lab_bench::fibres::session::Item as OfFibres;
use corelay_lab_bench::ordered::contest::Entrant;
use corelay_lab_measure::measure::plan::Item;
use corelay_lab_measure::workload::fetch_add;
use corelay_lab_measure::workload::operation::WorkloadInfo;
use corelay_lab_measure::workload::structure::{SharedStructure, Structure};
#[cfg(test)]
use corelay_lab_measure::{schema::Extra, workload::point::Point};
use corelay_lab_report::figure::measured::Measured;
use corelay_lab_report::figure::outcome::{Axis, Curve, PrintedMark};
use corelay_lab_report::figure::quantity::Quantity;
use corelay_lab_report::figure::stack::Stack;
use corelay_lab_report::table::grid::Grid;
use std::any::Any;
use std::rc::Rc;

/// A figure of a source.
pub struct Figure {
    /// The name on the command line and of the figure's files.
    pub name: &'static str,
    /// The question that the figure answers, in a sentence.
    pub title: &'static str,
    /// The source and the place in it.
    pub source: Source,
    /// The fewest CPUs with which any part of the figure can be measured.
    pub least: usize,
    /// The fewest CPUs with which the figure has every dimension of the source's figure.
    pub whole: usize,
    /// A sentence on what the figure loses with fewer than `whole` CPUs, and what replaces it; empty
    /// if `whole` is `least`.
    pub(crate) fewer: &'static str,
    /// Makes the panels to measure on a machine of this size.
    pub(crate) panels: fn(&Size) -> Vec<Panel>,
    /// Whether offsets between the CPUs' clocks are measured for the figure.
    pub offsets: bool,
    /// Returns the reason that nothing can be measured here, other than the number of CPUs.
    pub(crate) unavailable: fn() -> Option<String>,
    /// Statements that the source prints.
    pub printed: &'static [Printed],
    /// Makes tables beyond those that every figure has.
    pub(crate) tables: fn(&Measured<'_>) -> Vec<Grid>,
    /// Makes the bars that show the parts of wholes.
    pub(crate) stacks: fn(&Measured<'_>) -> Vec<Stack>,
    /// Computes the curves of models, to be drawn over the measured lines.
    pub(crate) curves: fn(&Measured<'_>) -> Vec<Curve>,
    /// Describes the measured figures, in entries of a sentence or two.
    pub(crate) words: fn(&Measured<'_>) -> Vec<String>,
}

impl Figure {
    /// The defaults of a figure.
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
        stacks: |_| Vec::new(),
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
    /// Returns the name of the source, with the place in it.
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

    /// Returns the machine whose figures the source prints.
    pub(crate) fn machine(self) -> &'static str {
        match self {
            Self::Thesis(_) => "Intel Skylake, 2 sockets, 28 cores, 56 threads",
            Self::Ffwd(_) => "4 × 16-core Xeon E5-4660 (Broadwell), 2.2 GHz, 128 threads",
            Self::Chapter(_) => {
                "2 × 64-core EPYC 7662, 256 threads, and 4 × 24-core Xeon Platinum 8160, 192 threads \
                 (4 × 24 × 2; the chapter prints 196)"
            }
            Self::Ordo(_) => {
                "8-socket Xeon, 240 cores; Xeon Phi, 256; 2-socket ARM, 96; 8-socket AMD, 32"
            }
        }
    }
}

/// Lines over one axis. Each quantity gets a picture.
#[derive(Debug)]
pub(crate) struct Panel {
    /// The name in the figure's files.
    pub(crate) key: &'static str,
    /// The varied parameter, in a few words.
    pub(crate) title: &'static str,
    /// The horizontal axis.
    pub(crate) axis: Axis,
    /// The quantities on vertical axes, the most important first.
    pub(crate) quantities: &'static [Quantity],
    /// The lines, the most important last.
    pub(crate) lines: Vec<FigureLine>,
}

/// A line: one way of sharing, with one choice of its parameters.
#[derive(Debug)]
pub(crate) struct FigureLine {
    /// The line's name.
    pub(crate) label: String,
    /// The points in order of x.
    pub(crate) cells: Vec<Cell>,
}

impl FigureLine {
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
    /// The place on the horizontal axis.
    pub(crate) x: f64,
    /// The contender that is measured at this place.
    pub(crate) work: Work,
    /// The workload's name in the figure's file.
    pub(crate) workload: &'static str,
}

/// A contender of a figure.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    /// A way of sharing. The workload is fetch-add unless the method has its own.
    Sharing(Item),
    /// A benchmark of fibres. If time ends its samples, the figure's pace sets that time.
    Fibres(OfFibres),
    /// A workload ordered by a clock.
    Ordered(Entrant),
    /// A way of sharing a structure: an [`OfStructure`].
    Structure(Rc<dyn AnyStructure>),
}

/// A way of sharing structures of one type.
pub(crate) struct OfStructure<S: Structure> {
    /// The structures, and what is done to them.
    pub(crate) workload: SharedStructure<S>,
    /// The way of sharing.
    pub(crate) item: Item<SharedStructure<S>>,
}

/// An [`OfStructure`] of a type that its user finds out.
pub(crate) trait AnyStructure: std::fmt::Debug {
    /// The contender itself, to be downcast.
    fn any(&self) -> &dyn Any;

    /// The parameters that only structures have.
    #[cfg(test)]
    fn extra(&self) -> Extra;

    /// The point, the method's name, and the fewest threads that it can run with.
    #[cfg(test)]
    fn point(&self) -> (&Point, &'static str, usize);
}

// Not derived: a derive would ask the same of the structure.
impl<S: Structure> std::fmt::Debug for OfStructure<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (self.workload, &self.item).fmt(f)
    }
}

impl<S: Structure> AnyStructure for OfStructure<S> {
    fn any(&self) -> &dyn Any {
        self
    }

    #[cfg(test)]
    fn extra(&self) -> Extra {
        WorkloadInfo::extra(self.workload)
    }

    #[cfg(test)]
    fn point(&self) -> (&Point, &'static str, usize) {
        let Item { method, point, .. } = &self.item;
        (point, method.name(), method.least_threads(point.servers))
    }
}

impl Work {
    pub(super) fn sharing(&self) -> Option<&Item> {
        match self {
            Self::Sharing(item) => Some(item),
            Self::Fibres(_) | Self::Ordered(_) | Self::Structure(_) => None,
        }
    }

    pub(super) fn fibres(&self) -> Option<&OfFibres> {
        match self {
            Self::Fibres(item) => Some(item),
            Self::Sharing(_) | Self::Ordered(_) | Self::Structure(_) => None,
        }
    }

    pub(super) fn ordered(&self) -> Option<&Entrant> {
        match self {
            Self::Ordered(entrant) => Some(entrant),
            Self::Sharing(_) | Self::Fibres(_) | Self::Structure(_) => None,
        }
    }

    pub(super) fn is_structure(&self) -> bool {
        matches!(self, Self::Structure(_))
    }

    /// Returns the contender if its structures are of type `S`.
    pub(super) fn structure<S: Structure>(&self) -> Option<&OfStructure<S>> {
        match self {
            Self::Structure(of) => of.any().downcast_ref(),
            Self::Sharing(_) | Self::Fibres(_) | Self::Ordered(_) => None,
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

    pub(super) fn of_structure<S: Structure>(x: impl Into<f64>, of: OfStructure<S>) -> Self {
        Self {
            x: x.into(),
            workload: WorkloadInfo::name(of.workload),
            work: Work::Structure(Rc::new(of)),
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

/// A statement that the source prints, to stand beside the figures measured here.
#[derive(Clone, Copy, Debug)]
pub struct Printed {
    /// The subject of the statement.
    pub(crate) what: &'static str,
    /// The source's words or value.
    pub(crate) there: &'static str,
    /// Returns the value measured here; `None` if this machine cannot give one.
    pub(crate) here: fn(&Measured<'_>) -> Option<String>,
    /// The mark in the picture.
    pub(crate) drawn: Drawn,
}

/// The mark of a printed value in the picture of a panel, given by its key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Drawn {
    /// No mark.
    Nowhere,
    /// A mark on the horizontal axis.
    At {
        /// The panel, by its key.
        panel: &'static str,
        /// The place on the axis.
        x: f64,
        /// The text of the mark.
        label: &'static str,
    },
    /// A horizontal level in the picture of throughput.
    Level {
        /// The panel, by its key.
        panel: &'static str,
        /// The height, in Mops.
        mops: f64,
        /// The range on the horizontal axis.
        span: (f64, f64),
        /// The text of the mark.
        label: &'static str,
    },
}

impl Drawn {
    /// Converts the mark to its form in the figure's file.
    pub(super) fn sign(self) -> Option<PrintedMark> {
        let sign = |panel: &str, label: &str, x, mops| PrintedMark {
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
