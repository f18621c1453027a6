//! The looks of series: colour, marker and dashes differ, so that no single one of the three is
//! needed to tell series apart.
//!
//! The colours start from Okabe and Ito's palette ("Color Universal Design", 2008), which
//! colour-blind readers can tell apart. They are darkened for white ground and lightened for dark
//! ground (`plot.css`).

use std::fmt::Write;

/// The look of one series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Class of `plot.css` that sets the colour.
    pub colour: &'static str,
    /// The shape at each point.
    pub marker: Marker,
    /// Dashes of the line, as `stroke-dasharray`; empty for a solid line.
    pub dash: &'static str,
    /// Whether the series is drawn stronger than the others.
    pub bold: bool,
}

/// The shape at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the shapes")]
pub enum Marker {
    Circle,
    Square,
    Diamond,
    Up,
    Down,
    Plus,
    Cross,
    Ring,
    Box,
    Bar,
}

/// Colours for series without a style. Pairs of marker and dash are distinct for 30 series.
const SPARE_COLOURS: [&str; 6] = [
    "c-blue", "c-green", "c-rose", "c-gold", "c-violet", "c-brown",
];
const SPARE_MARKERS: [Marker; 10] = [
    Marker::Box,
    Marker::Ring,
    Marker::Up,
    Marker::Cross,
    Marker::Down,
    Marker::Plus,
    Marker::Diamond,
    Marker::Bar,
    Marker::Square,
    Marker::Circle,
];
const SPARE_DASHES: [&str; 3] = ["2 3", "7 3", "7 3 2 3"];

impl Style {
    /// Returns the style of the `n`-th series without a style of its own.
    pub fn spare(n: usize) -> Self {
        Self {
            colour: SPARE_COLOURS[n % SPARE_COLOURS.len()],
            marker: SPARE_MARKERS[n % SPARE_MARKERS.len()],
            dash: SPARE_DASHES[n / SPARE_MARKERS.len() % SPARE_DASHES.len()],
            bold: false,
        }
    }

    /// Draws a small picture of the line and its marker, for a legend or a table.
    pub(crate) fn swatch(self) -> String {
        let mut out = format!(
            r#"<svg class="swatch {}" viewBox="0 0 30 12" aria-hidden="true"><path class="line" d="M1 6H29""#,
            self.colour
        );
        push_dash(&mut out, self.dash);
        out.push_str("></path>");
        self.marker.draw(&mut out, 15.0, 6.0, 3.6);
        out.push_str("</svg>");
        out
    }
}

pub(super) fn push_dash(out: &mut String, dash: &str) {
    if !dash.is_empty() {
        let _ = write!(out, r#" stroke-dasharray="{dash}""#);
    }
}

impl Marker {
    /// Draws the marker around (x, y) with radius `r`.
    pub(super) fn draw(self, out: &mut String, x: f64, y: f64, r: f64) {
        let s = r * 0.88;
        let _ = match self {
            Marker::Circle => write!(
                out,
                r#"<circle class="full" cx="{x:.1}" cy="{y:.1}" r="{r:.1}"></circle>"#
            ),
            Marker::Ring => write!(
                out,
                r#"<circle class="open" cx="{x:.1}" cy="{y:.1}" r="{s:.1}"></circle>"#
            ),
            Marker::Square => write!(
                out,
                r#"<path class="full" d="M{:.1} {:.1}h{d:.1}v{d:.1}h-{d:.1}z"></path>"#,
                x - s,
                y - s,
                d = 2.0 * s
            ),
            Marker::Box => write!(
                out,
                r#"<path class="open" d="M{:.1} {:.1}h{d:.1}v{d:.1}h-{d:.1}z"></path>"#,
                x - s,
                y - s,
                d = 2.0 * s
            ),
            Marker::Diamond => write!(
                out,
                r#"<path class="full" d="M{x:.1} {:.1}l{e:.1} {e:.1}l-{e:.1} {e:.1}l-{e:.1} -{e:.1}z"></path>"#,
                y - 1.25 * r,
                e = 1.25 * r
            ),
            Marker::Up => write!(
                out,
                r#"<path class="full" d="M{x:.1} {:.1}l{e:.1} {h:.1}h-{w:.1}z"></path>"#,
                y - 1.1 * r,
                e = 1.15 * r,
                h = 2.0 * r,
                w = 2.3 * r
            ),
            Marker::Down => write!(
                out,
                r#"<path class="full" d="M{x:.1} {:.1}l{e:.1} -{h:.1}h-{w:.1}z"></path>"#,
                y + 1.1 * r,
                e = 1.15 * r,
                h = 2.0 * r,
                w = 2.3 * r
            ),
            Marker::Plus => write!(
                out,
                r#"<path class="cross" d="M{x:.1} {:.1}v{d:.1}M{:.1} {y:.1}h{d:.1}"></path>"#,
                y - r,
                x - r,
                d = 2.0 * r
            ),
            Marker::Cross => write!(
                out,
                r#"<path class="cross" d="M{l:.1} {t:.1}l{d:.1} {d:.1}M{l:.1} {b:.1}l{d:.1} -{d:.1}"></path>"#,
                l = x - s,
                t = y - s,
                b = y + s,
                d = 2.0 * s
            ),
            Marker::Bar => write!(
                out,
                r#"<path class="cross" d="M{x:.1} {:.1}v{d:.1}"></path>"#,
                y - 1.2 * r,
                d = 2.4 * r
            ),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirty_spare_styles_differ_without_colour() {
        let styles: Vec<_> = (0..30).map(Style::spare).collect();
        for (i, a) in styles.iter().enumerate() {
            for b in &styles[..i] {
                assert!(a.marker != b.marker || a.dash != b.dash, "{a:?} and {b:?}");
            }
        }
    }

    #[test]
    fn every_colour_class_is_in_the_stylesheet() {
        for colour in SPARE_COLOURS {
            assert!(
                super::super::CSS.contains(&format!(".{colour}")),
                "{colour}"
            );
        }
    }
}
