//! Lines over a horizontal axis: points with spread, labels at line ends, marks, a shade.
//!
//! ```text
//!   y label
//!   100 ┤      ┊L1      ┊L2            ── mark: a value of x with a name
//!       │▒▒────●───────●──┐
//!    10 ┤▒▒▒▒──■───────■──┴─ atomic    ── label, moved aside where it would overlap
//!       │▒▒▒▒▒▒▒▒▒▒      ── mutex
//!       └┬──────┬───────┬              ── shade: a probability over x, as high as likely
//!        1      4       16
//!       100 %  25 %    6 %             ── the same in figures, a second row of ticks
//! ```

use super::svg::Frame;
use super::{
    BOLD_WIDTH, LETTER, LETTER_WIDTH, Medium, SMALL_LETTER_WIDTH, Scale, Style, escape, labels,
    percent, short_count, significant, style, trimmed,
};
use std::fmt::Write;

/// A picture of lines.
#[derive(Clone, Debug)]
pub struct LinePlot<'a> {
    /// The id, unique in its page.
    pub id: String,
    /// A title of one line, drawn only in a file of its own.
    pub title: String,
    /// A description in words, for readers who cannot see the picture.
    pub description: String,
    /// Name and unit of the horizontal axis.
    pub x_label: &'a str,
    /// Name and unit of the vertical axis.
    pub y_label: &'a str,
    /// The horizontal axis.
    pub x: Scale,
    /// Values with a tick on the horizontal axis; empty for powers of two.
    pub x_ticks: Vec<f64>,
    /// The vertical axis.
    pub y: Scale,
    /// The lines, the most important last, because it is drawn on top.
    pub series: Vec<Series>,
    /// Values of x with a name.
    pub marks: Vec<Mark>,
    /// A probability over x.
    pub shade: Option<Shade<'a>>,
    /// Width in units. The height follows from the number of labels.
    pub width: f64,
    /// Least room for labels: their number, and letters of the longest. It gives pictures side by
    /// side axes of one size.
    pub room: (usize, usize),
}

/// A line of a picture.
#[derive(Clone, Debug)]
pub struct Series {
    /// The text at the end of the line.
    pub label: String,
    /// The line's colour and dashes, and its markers.
    pub style: Style,
    /// The points in order of x.
    pub points: Vec<Point>,
    /// Whether the line is drawn faintly, for comparison only.
    pub faint: bool,
}

impl Series {
    /// Describes the first and the last value; `None` without points.
    pub(crate) fn ends(&self) -> Option<String> {
        let (first, last) = (self.points.first()?, self.points.last()?);
        Some(format!(
            "{} from {} to {}",
            self.label,
            significant(first.y),
            significant(last.y)
        ))
    }

    /// Describes a picture in words: each line from its first to its last point.
    pub fn left_to_right(series: &[Self]) -> String {
        let ends: Vec<String> = series.iter().filter_map(Self::ends).collect();
        format!("From left to right: {}.", ends.join("; "))
    }
}

/// A point of a line: a median and its spread.
#[derive(Clone, Debug)]
pub struct Point {
    /// The place on the horizontal axis.
    pub x: f64,
    /// The median, the place on the vertical axis.
    pub y: f64,
    /// First and third quartile.
    pub spread: (f64, f64),
    /// The text that hovering shows.
    pub tip: String,
    /// A sign around the point, if it needs a warning.
    pub halo: Halo,
}

/// The warning sign around a point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Halo {
    /// No sign.
    #[default]
    None,
    /// A circle.
    Round,
    /// A square.
    Square,
}

/// Half the width of a halo, in units.
const HALO: f64 = 8.5;

impl Halo {
    fn draw(self, out: &mut String, x: f64, y: f64) {
        let _ = match self {
            Self::None => Ok(()),
            Self::Round => write!(
                out,
                r#"<circle class="halo" cx="{x:.1}" cy="{y:.1}" r="{HALO}"></circle>"#
            ),
            Self::Square => write!(
                out,
                r#"<path class="halo" d="M{:.1} {:.1}h{d}v{d}h-{d}z"></path>"#,
                x - HALO,
                y - HALO,
                d = 2.0 * HALO
            ),
        };
    }

    /// Draws a small picture of the halo, for a sentence.
    pub(crate) fn swatch(self) -> String {
        let mut out =
            String::from(r#"<svg class="swatch halos" viewBox="0 0 20 20" aria-hidden="true">"#);
        self.draw(&mut out, 10.0, 10.0);
        out.push_str("</svg>");
        out
    }
}

/// A named value of x.
#[derive(Clone, Debug)]
pub struct Mark {
    /// The value of x.
    pub(crate) x: f64,
    /// The text of the mark.
    pub(crate) label: String,
}

/// A probability over x, shaded in the background and written under the ticks.
#[derive(Clone, Copy)]
pub struct Shade<'a> {
    /// The event whose probability it is.
    pub(crate) label: &'a str,
    /// The probability, 0 to 1, at x.
    pub(crate) probability: &'a dyn Fn(f64) -> f64,
}

impl std::fmt::Debug for Shade<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shade")
            .field("label", &self.label)
            .finish_non_exhaustive()
    }
}

/// Room for a label, in units.
const LABEL_HEIGHT: f64 = LETTER + 2.0;
/// Height of a row of ticks.
const ROW: f64 = LETTER + 4.0;
const LEFT: f64 = 54.0;
/// Distance from the last point to its label.
const LEADER: f64 = 20.0;
/// Steps of the shade's outline.
const STEPS: usize = 64;

/// The inner rectangle of a picture.
struct Area {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

impl Area {
    fn x(&self, at: f64) -> f64 {
        self.left + at * (self.right - self.left)
    }

    fn y(&self, at: f64) -> f64 {
        self.bottom - at * (self.bottom - self.top)
    }
}

impl LinePlot<'_> {
    /// Draws the picture.
    pub fn svg(&self, medium: Medium) -> String {
        let longest = self
            .series
            .iter()
            .map(|s| s.label.chars().count())
            .max()
            .unwrap_or(0);
        let (labels, letters) = (self.series.len().max(self.room.0), longest.max(self.room.1));
        // Letters of ticks are not bold, and the stylesheet's usual size is smaller.
        let ticks = self.y.ticks().into_iter();
        let widest = ticks.map(|tick| trimmed(tick).chars().count()).max();
        let left = LEFT.max(widest.unwrap_or(0) as f64 * LETTER_WIDTH + 9.0);
        let right = self.width - LEADER - letters as f64 * BOLD_WIDTH;
        let marks = self.mark_rows(right - left);
        let rows = marks.iter().map(|(_, row)| row + 1).max().unwrap_or(0) as f64;
        let heading = if medium == Medium::File { 34.0 } else { 4.0 };
        // A halo at the upper edge must not touch the axis's name.
        let mut points = self.series.iter().flat_map(|s| &s.points);
        let lift = if points.any(|p| p.halo != Halo::None) {
            HALO
        } else if marks.is_empty() {
            // Nor must the uppermost tick.
            5.0
        } else {
            0.0
        };
        let top = heading + ROW + rows * ROW + lift;
        let inner = (labels as f64 * LABEL_HEIGHT).max(self.width * 0.48);
        let area = Area {
            left,
            top,
            right,
            bottom: top + inner,
        };
        let below = if self.shade.is_some() { 4.0 } else { 2.0 };
        let height = area.bottom + below * ROW + 6.0;
        let mut body = String::new();
        if medium == Medium::File {
            let title = escape(&self.title);
            let _ = write!(body, r#"<text class="name" x="8" y="26">{title}</text>"#);
        }
        self.draw_shade(&mut body, &area);
        self.draw_axes(&mut body, &area, top - rows * ROW - lift - 8.0);
        self.draw_marks(&mut body, &area, &marks, rows);
        self.draw_series(&mut body, &area);
        let frame = Frame {
            id: &self.id,
            title: &self.title,
            description: &self.description,
            width: self.width,
            height,
        };
        frame.around(&body, medium)
    }

    fn draw_shade(&self, out: &mut String, area: &Area) {
        let (Some(shade), Scale::Log { low, high }) = (self.shade, self.x) else {
            return;
        };
        let _ = write!(
            out,
            r#"<path class="shade" d="M{:.1} {:.1}"#,
            area.left, area.bottom
        );
        for i in 0..=STEPS {
            let at = i as f64 / STEPS as f64;
            let p = (shade.probability)(low * (high / low).powf(at)).clamp(0.0, 1.0);
            let _ = write!(out, "L{:.1} {:.1}", area.x(at), area.y(p));
        }
        let _ = write!(out, r#"L{:.1} {:.1}z"></path>"#, area.right, area.bottom);
    }

    fn draw_axes(&self, out: &mut String, area: &Area, label_y: f64) {
        for tick in self.y.ticks() {
            let y = area.y(self.y.clamped(tick));
            let _ = write!(
                out,
                r#"<path class="grid" d="M{:.1} {y:.1}H{:.1}"></path><text x="{:.1}" y="{:.1}" text-anchor="end">{}</text>"#,
                area.left,
                area.right,
                area.left - 7.0,
                y + 4.5,
                trimmed(tick)
            );
        }
        let _ = write!(
            out,
            r#"<text x="{:.1}" y="{label_y:.1}">{}</text><path class="axis" d="M{:.1} {:.1}H{:.1}"></path>"#,
            8.0,
            escape(self.y_label),
            area.left,
            area.bottom,
            area.right
        );
        for (x, tick) in self.ticks_with_room(area) {
            let y = area.bottom;
            let _ = write!(
                out,
                r#"<path class="axis" d="M{x:.1} {y:.1}v4"></path><text x="{x:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
                y + ROW,
                short_count(tick)
            );
            if let Some(shade) = self.shade {
                let p = chance((shade.probability)(tick));
                let _ = write!(
                    out,
                    r#"<text class="small" x="{x:.1}" y="{:.1}" text-anchor="middle">{p}</text>"#,
                    y + 3.0 * ROW
                );
            }
        }
        let middle = f64::midpoint(area.left, area.right);
        let _ = write!(
            out,
            r#"<text x="{middle:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
            area.bottom + 2.0 * ROW - 1.0,
            escape(self.x_label)
        );
        if let Some(shade) = self.shade {
            let _ = write!(
                out,
                r#"<text class="small" x="{middle:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
                area.bottom + 4.0 * ROW - 3.0,
                escape(shade.label)
            );
        }
    }

    /// Returns ticks of x with their places, without those whose words would touch.
    fn ticks_with_room(&self, area: &Area) -> Vec<(f64, f64)> {
        let ticks = if self.x_ticks.is_empty() {
            self.x.powers(8)
        } else {
            self.x_ticks.clone()
        };
        let mut kept: Vec<(f64, f64)> = Vec::new();
        let mut free_from = f64::NEG_INFINITY;
        for tick in ticks {
            let x = area.x(self.x.clamped(tick));
            let mut letters = short_count(tick).chars().count();
            if let Some(shade) = self.shade {
                letters = letters.max(chance((shade.probability)(tick)).chars().count());
            }
            let half = letters as f64 * LETTER_WIDTH / 2.0;
            if x - half >= free_from {
                kept.push((x, tick));
                free_from = x + half + 4.0;
            }
        }
        kept
    }

    /// Returns the marks inside an axis of this width, each with the row of its name. A name that
    /// would touch the one before moves a row up.
    fn mark_rows(&self, width: f64) -> Vec<(&Mark, usize)> {
        let mut ends: Vec<f64> = Vec::new();
        let mut marks: Vec<&Mark> = self
            .marks
            .iter()
            .filter(|m| self.x.place(m.x).is_some())
            .collect();
        marks.sort_by(|a, b| a.x.total_cmp(&b.x));
        let mut rows = Vec::new();
        for mark in marks {
            let x = self.x.clamped(mark.x) * width;
            let half = mark.label.chars().count() as f64 * SMALL_LETTER_WIDTH / 2.0;
            let row = ends
                .iter()
                .position(|&end| x - half >= end)
                .unwrap_or(ends.len());
            if row == ends.len() {
                ends.push(0.0);
            }
            ends[row] = x + half + 8.0;
            rows.push((mark, row));
        }
        rows
    }

    fn draw_marks(&self, out: &mut String, area: &Area, marks: &[(&Mark, usize)], rows: f64) {
        for (mark, row) in marks {
            let x = area.x(self.x.clamped(mark.x));
            let base = area.top - (rows - 1.0 - *row as f64) * ROW;
            let base = if rows > 1.0 { base } else { area.top };
            let half = mark.label.chars().count() as f64 * SMALL_LETTER_WIDTH / 2.0;
            let text_x = x.clamp(area.left + half - 20.0, self.width - half);
            let _ = write!(
                out,
                r#"<path class="mark" d="M{x:.1} {:.1}V{:.1}"></path><text class="small" x="{text_x:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
                base - 2.0,
                area.bottom,
                base - 6.0,
                escape(&mark.label)
            );
        }
    }

    fn draw_series(&self, out: &mut String, area: &Area) {
        let at = |x: f64, y: f64| (area.x(self.x.clamped(x)), area.y(self.y.clamped(y)));
        let ends: Vec<(f64, f64)> = self
            .series
            .iter()
            .map(|s| {
                s.points
                    .last()
                    .map_or((area.left, area.bottom), |p| at(p.x, p.y))
            })
            .collect();
        let wanted: Vec<f64> = ends.iter().map(|e| e.1).collect();
        let labels = labels::spread(&wanted, LABEL_HEIGHT, area.top - 8.0, area.bottom + 8.0);
        for ((series, end), label_y) in self.series.iter().zip(ends).zip(labels) {
            if series.points.is_empty() {
                continue;
            }
            let bold = if series.style.bold { " bold" } else { "" };
            let faint = if series.faint { " faint" } else { "" };
            let _ = write!(out, r#"<g class="s {}{bold}{faint}">"#, series.style.colour);
            self.draw_band(out, series, at);
            out.push_str(r#"<path class="line" d=""#);
            for (i, p) in series.points.iter().enumerate() {
                let (x, y) = at(p.x, p.y);
                let _ = write!(out, "{}{x:.1} {y:.1}", if i == 0 { 'M' } else { 'L' });
            }
            out.push('"');
            style::push_dash(out, series.style.dash);
            out.push_str("></path>");
            let x = area.right + LEADER - 6.0;
            // The leader is marked, so that a line that ends early does not seem to go on.
            let lead = if area.right - end.0 > LEADER {
                "lead away"
            } else {
                "lead"
            };
            let _ = write!(
                out,
                r#"<path class="{lead}" d="M{:.1} {:.1}L{:.1} {:.1}L{:.1} {label_y:.1}"></path><text class="label" x="{:.1}" y="{:.1}">{}</text>"#,
                end.0 + 4.0,
                end.1,
                area.right.max(end.0 + 4.0),
                end.1,
                x,
                x + 4.0,
                label_y + 4.5,
                escape(&series.label)
            );
            for p in &series.points {
                let (x, y) = at(p.x, p.y);
                let tip = escape(&p.tip);
                let _ = write!(
                    out,
                    r#"<g class="pt" data-x="{x:.1}" data-y="{y:.1}"><title>{tip}</title>"#
                );
                let radius = if series.style.bold { 4.6 } else { 3.8 };
                style::mark(out, series.style.marker, x, y, radius);
                p.halo.draw(out, x, y);
                out.push_str("</g>");
            }
            out.push_str("</g>");
        }
    }

    fn draw_band(&self, out: &mut String, series: &Series, at: impl Fn(f64, f64) -> (f64, f64)) {
        if series.faint || series.points.len() < 2 {
            return;
        }
        out.push_str(r#"<path class="band" d=""#);
        let upper = series.points.iter().map(|p| at(p.x, p.spread.1));
        let lower = series.points.iter().rev().map(|p| at(p.x, p.spread.0));
        for (i, (x, y)) in upper.chain(lower).enumerate() {
            let _ = write!(out, "{}{x:.1} {y:.1}", if i == 0 { 'M' } else { 'L' });
        }
        out.push_str(r#"z"></path>"#);
    }
}

/// Formats a probability under a tick. Values that round to nothing are written short, or the
/// ticks would have to stand further apart.
fn chance(p: f64) -> String {
    if p < 1e-4 {
        "≈\u{a0}0".to_owned()
    } else {
        percent(p)
    }
}
