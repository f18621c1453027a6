//! A figure's tables, for the terminal and for the page.

use super::measured::Measured;
use super::outcome::Drawing;
use super::quantity::{Quantity, Value};
use crate::plot::short_count;
use crate::table::grid::Grid;

/// Makes the tables of a panel in one mode: throughput with a column for each line, then the
/// other quantities in the same way. A panel with one line gets one table of all quantities.
pub(super) fn of(measured: &Measured<'_>, panel: &Drawing) -> Vec<Grid> {
    let quantities = || panel.quantities.iter().copied();
    if let [line] = &*panel.lines {
        let columns: Vec<Column<'_>> = quantities().map(|q| (q.head(), line, q)).collect();
        return vec![grid(measured, panel, &panel.title, &columns)];
    }
    let of = |quantity: Quantity| {
        let title = format!("{}: {}", panel.title, quantity.label());
        let lines = panel.lines.iter();
        let columns: Vec<Column<'_>> = lines.map(|l| (l.as_str(), l, quantity)).collect();
        grid(measured, panel, &title, &columns)
    };
    quantities()
        .map(of)
        .filter(|g| !g.rows.is_empty())
        .collect()
}

/// A column: its head, the line and the quantity.
type Column<'a> = (&'a str, &'a String, Quantity);

fn grid(measured: &Measured<'_>, panel: &Drawing, title: &str, columns: &[Column<'_>]) -> Grid {
    let points: Vec<(Quantity, Vec<(f64, Value)>)> = columns
        .iter()
        .map(|(_, line, quantity)| (*quantity, measured.points(&panel.key, line, *quantity)))
        .collect();
    let mut xs: Vec<f64> = points
        .iter()
        .flat_map(|(_, points)| points.iter().map(|(x, _)| *x))
        .collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    let row = |&x: &f64| {
        let cell = |(quantity, points): &(Quantity, Vec<(f64, Value)>)| {
            let found = points.iter().find(|(at, _)| *at == x);
            found.map_or(String::new(), |(_, value)| quantity.words(value.middle))
        };
        std::iter::once(short_count(x))
            .chain(points.iter().map(cell))
            .collect()
    };
    let mut head = vec![panel.axis.label.clone()];
    head.extend(columns.iter().map(|(head, ..)| (*head).to_owned()));
    Grid {
        title: title.to_owned(),
        head,
        rows: xs.iter().map(row).collect(),
    }
}
