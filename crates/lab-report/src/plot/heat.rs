//! A square of coloured cells: a value for each pair of items.

use super::svg::Frame;
use super::{LETTER, LETTER_WIDTH, Medium, escape, significant};
use std::fmt::Write;

/// A picture of a matrix. A cell shows the value from its row to its column.
#[derive(Clone, Debug)]
pub struct HeatMap<'a> {
    /// The id, unique in its page.
    pub id: String,
    /// A title of one line, drawn only in a file of its own.
    pub title: String,
    /// A description in words, for readers who cannot see the picture.
    pub description: String,
    /// Name and unit of the values.
    pub label: &'a str,
    /// The kind of the rows and columns: "CPU".
    pub of: &'a str,
    /// The names of the rows and columns.
    pub names: Vec<String>,
    /// The values row by row; `None` is left blank.
    pub cells: Vec<Option<f64>>,
    /// Width in units.
    pub width: f64,
}

/// Largest side of a cell.
const MAX_SIDE: f64 = 72.0;

/// Smallest side of a cell that has its figure in it.
const MIN_LEGIBLE_SIDE: f64 = 5.0 * LETTER_WIDTH;

impl HeatMap<'_> {
    /// Draws the picture.
    ///
    /// # Panics
    /// If the cells are not a square of the names.
    pub fn svg(&self, medium: Medium) -> String {
        let n = self.names.len();
        assert_eq!(self.cells.len(), n * n, "a cell for each pair of names");
        let longest = self.names.iter().map(|name| name.chars().count()).max();
        let head = if medium == Medium::File { 42.0 } else { 8.0 };
        // The rows' names, and their kind above them.
        let left = 26.0 + longest.unwrap_or(0) as f64 * LETTER_WIDTH;
        let top = head + 2.0 * LETTER + 14.0;
        let side = ((self.width - left - 8.0) / n.max(1) as f64).min(MAX_SIDE);
        let known = || self.cells.iter().flatten().copied();
        let (low, high) = (
            known().fold(f64::INFINITY, f64::min),
            known().fold(f64::NEG_INFINITY, f64::max),
        );
        let mut body = String::new();
        if medium == Medium::File {
            let title = escape(&self.title);
            let _ = write!(body, r#"<text class="name" x="8" y="26">{title}</text>"#);
        }
        let of = escape(self.of);
        let _ = write!(
            body,
            r#"<text class="small" x="{left:.1}" y="{:.1}">to {of}</text><text class="small" x="8" y="{:.1}">from</text>"#,
            head + LETTER,
            top - 8.0,
        );
        // Only as many names as there is room for.
        let every = |room: f64| (room / side).ceil().max(1.0) as usize;
        let across = every((longest.unwrap_or(0) as f64 + 1.0) * LETTER_WIDTH);
        for (i, name) in self.names.iter().enumerate() {
            let (name, middle) = (escape(name), (i as f64 + 0.5) * side);
            if i % across == 0 {
                let _ = write!(
                    body,
                    r#"<text class="small" x="{:.1}" y="{:.1}" text-anchor="middle">{name}</text>"#,
                    left + middle,
                    top - 8.0
                );
            }
            if i % every(LETTER + 2.0) == 0 {
                let _ = write!(
                    body,
                    r#"<text class="small" x="{:.1}" y="{:.1}" text-anchor="end">{name}</text>"#,
                    left - 8.0,
                    top + middle + 4.5
                );
            }
        }
        for (i, from) in self.names.iter().enumerate() {
            // The arrow keys go along a row, and from row to row.
            body.push_str(r#"<g class="s row c-trust">"#);
            for (j, to) in self.names.iter().enumerate() {
                let (x, y) = (left + j as f64 * side, top + i as f64 * side);
                let Some(value) = self.cells[i * n + j] else {
                    continue;
                };
                self.cell(
                    &mut body,
                    (x, y, side),
                    shade(value, low, high),
                    value,
                    (from, to),
                );
            }
            body.push_str("</g>");
        }
        let bottom = top + n as f64 * side;
        let _ = write!(
            body,
            r#"<text class="small" x="{left:.1}" y="{:.1}">{}: {} to {}</text>"#,
            bottom + LETTER + 6.0,
            escape(self.label),
            significant(low),
            significant(high)
        );
        let frame = Frame {
            id: &self.id,
            title: &self.title,
            description: &self.description,
            width: self.width,
            height: bottom + LETTER + 18.0,
        };
        frame.around(&body, medium)
    }

    fn cell(
        &self,
        body: &mut String,
        (x, y, side): (f64, f64, f64),
        shade: f64,
        value: f64,
        (from, to): (&str, &str),
    ) {
        let gap = if side > 12.0 { 1.0 } else { 0.0 };
        let (of, from, to) = (escape(self.of), escape(from), escape(to));
        let (label, figure) = (escape(self.label), significant(value));
        let _ = write!(
            body,
            r#"<g class="pt" data-x="{:.1}" data-y="{:.1}"><title>{of} {from} to {of} {to}: {figure} ({label})</title><path class="cell" opacity="{shade:.2}" d="M{:.1} {:.1}h{:.1}v{:.1}h-{:.1}z"></path>"#,
            x + side / 2.0,
            y + side / 2.0,
            x + gap,
            y + gap,
            side - 2.0 * gap,
            side - 2.0 * gap,
            side - 2.0 * gap,
        );
        if side >= MIN_LEGIBLE_SIDE {
            let _ = write!(
                body,
                r#"<text class="value" x="{:.1}" y="{:.1}" text-anchor="middle">{figure}</text>"#,
                x + side / 2.0,
                y + side / 2.0 + 4.5
            );
        }
        body.push_str("</g>");
    }
}

/// Returns the strength of a cell's colour: never so strong that its figure cannot be read, nor
/// so faint that the cell looks blank.
fn shade(value: f64, low: f64, high: f64) -> f64 {
    let place = if high > low {
        (value - low) / (high - low)
    } else {
        0.5
    };
    0.12 + 0.58 * place
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(n: usize) -> HeatMap<'static> {
        let cell = |i: usize| (!i.is_multiple_of(n + 1)).then_some(i as f64 - 3.0);
        HeatMap {
            id: "heat".to_owned(),
            title: "Offsets <of> CPUs".to_owned(),
            description: "d".to_owned(),
            label: "ns",
            of: "CPU",
            names: (0..n).map(|i| i.to_string()).collect(),
            cells: (0..n * n).map(cell).collect(),
            width: 720.0,
        }
    }

    #[test]
    fn every_pair_has_a_cell_with_its_figure() {
        for n in [1, 2, 7, 64, 256] {
            let svg = map(n).svg(Medium::File);
            roxmltree::Document::parse(&svg).unwrap();
            assert_eq!(svg.matches("class=\"cell\"").count(), n * (n - 1));
            // The page's script finds the cells, and steps along these rows.
            assert_eq!(svg.matches("<g class=\"pt\" data-x=").count(), n * (n - 1));
            assert_eq!(svg.matches("<g class=\"s row ").count(), n);
            assert!(!svg.contains("NaN"), "{n}");
        }
        let svg = map(2).svg(Medium::File);
        assert!(svg.contains("CPU 1 to CPU 0: "), "{svg}");
        // One figure for each cell, and none if a cell is too small.
        assert_eq!(svg.matches("class=\"value\"").count(), 2);
        assert_eq!(
            map(64).svg(Medium::Page).matches("class=\"value\"").count(),
            0
        );
    }

    #[test]
    fn the_strongest_cell_is_legible_and_equal_cells_look_alike() {
        assert!(shade(1.0, 0.0, 1.0) <= 0.7 && shade(0.0, 0.0, 1.0) > 0.1);
        assert!((shade(5.0, 5.0, 5.0) - 0.41).abs() < 1e-9);
    }
}
