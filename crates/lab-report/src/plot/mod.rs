//! Small pictures as SVG text: lines with labels at their ends, bars, rows over time, and
//! squares of cells.
//!
//! ```text
//!   lines ─────┐                    ┌── labels   (who gives way when labels would overlap)
//!   bars ──────┼── uses ── scale, svg, style ── plot.css   (colours, light and dark)
//!   stack ─────┤
//!   timeline ──┤
//!   heat ──────┘
//! ```
//!
//! Own code and no plotting crate, because the pictures must stand in one file without
//! any other resource, follow the reader's light or dark setting, stay readable on a
//! phone and on paper, and carry what hovering shows; all that is a few hundred lines.
//!
//! A picture is laid out for letters of 15 units although a wide screen shows
//! smaller ones: the stylesheet enlarges letters on narrow screens, where the whole
//! picture shrinks, and nothing may overlap then either.

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
pub use heat::HeatMap;
pub use lines::{Halo, LinePlot, Mark, Point, Series, Shade};
pub use scale::{Scale, bytes, grouped, percent, short_count, significant, trimmed};
pub use stack::StackPlot;
pub use style::{Marker, Style};
pub use svg::escape;
pub(crate) use svg::without_forbidden;
pub use timeline::{Kind, Panel, Row, Span, Timeline, duration};

/// The stylesheet of every picture; a page includes it once, a standalone picture carries it.
pub(crate) const CSS: &str = include_str!("plot.css");

/// The largest letters the stylesheet asks for, in units of the picture.
const LETTER: f64 = 15.0;

/// Width of a letter, in units, taken generously: fonts differ.
const LETTER_WIDTH: f64 = 0.58 * LETTER;

/// The same of the bold letters of labels.
const BOLD_WIDTH: f64 = 0.68 * LETTER;

/// Where a picture will stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Inside a page that has `CSS`.
    Page,
    /// In a file of its own: with namespace, stylesheet and background.
    Alone,
}
