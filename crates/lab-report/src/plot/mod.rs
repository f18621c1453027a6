//! Small pictures as SVG text: lines with labels at their ends, bars, rows over time, and squares
//! of cells.
//!
//! ```text
//!   lines ─────┐                    ┌── labels   (moves labels apart that would overlap)
//!   bars ──────┼── uses ── scale, svg, style ── plot.css   (colours, light and dark)
//!   stack ─────┤
//!   timeline ──┤
//!   heat ──────┘
//! ```
//!
//! This is our own code and no plotting crate, because the pictures must stand in one file
//! without any other resource, follow the reader's light or dark setting, stay readable on a
//! phone and on paper, and carry texts for hovering. All that is a few hundred lines.
//!
//! A picture is laid out for letters of 15 units, although a wide screen shows smaller ones. On
//! narrow screens the whole picture shrinks and the stylesheet enlarges letters; nothing may
//! overlap then either. A page stops shrinking a picture where its smallest letters would be less
//! than ten pixels high, and lets the reader scroll it.

#![forbid(unsafe_code)]

mod bars;
mod heat;
mod labels;
mod lines;
mod scale;
mod stack;
mod style;
mod svg;
mod timeline;

pub use bars::{Bar, BarPlot};
pub use corelay_lab_measure::method::{Marker, Style};
pub use heat::HeatMap;
pub use lines::{Halo, LinePlot, Mark, Point, Series, Shade};
pub use scale::{Scale, bytes, grouped, percent, short_count, significant, trimmed};
pub use stack::StackPlot;
pub(crate) use style::swatch;
pub use svg::escape;
pub(crate) use svg::without_forbidden;
pub use timeline::{Kind, Panel, Row, Span, Timeline, duration};

/// The stylesheet of every picture. A page includes it once; a picture in a file of its own
/// carries it.
pub(crate) const CSS: &str = include_str!("plot.css");

/// The largest letters that the stylesheet uses, in units of the picture.
const LETTER: f64 = 15.0;

/// Width of a letter, in units. It is generous, because fonts differ.
const LETTER_WIDTH: f64 = 0.58 * LETTER;

/// Width of a letter of the stylesheet's class `small`, in units.
const SMALL_LETTER_WIDTH: f64 = 0.58 * 14.2;

/// Width of a bold letter of labels, in units.
const BOLD_WIDTH: f64 = 0.68 * LETTER;

/// The surroundings of a picture: a page, or a file that needs its own stylesheet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// A page that includes `CSS`.
    Page,
    /// A file of its own: the picture has namespace, stylesheet and background.
    File,
}
