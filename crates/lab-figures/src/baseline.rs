//! The baseline of ffwd's figures: one thread that synchronises nothing. The slides begin with it:
//! "single-threaded, ~1 Billion ops/s", and a lock is "400x" slower.

use super::declare::{Cell, FigureLine};
use corelay_lab_measure::method::alone;
use corelay_lab_report::figure::measured::Measured;
use corelay_lab_report::figure::quantity::Quantity::Throughput;
use corelay_lab_report::plot::{grouped, significant};
use corelay_lab_report::table::grid::Grid;
use corelay_lab_report::words::{code, times};

/// The label of the line.
pub(super) const ALONE: &str = alone::NAME;

/// Makes the line of the baseline.
pub(super) fn line(cells: impl IntoIterator<Item = Cell>) -> FigureLine {
    FigureLine::new(ALONE, cells)
}

/// Returns the throughput of the baseline at x, or, where it has one point for the whole panel, there.
pub(super) fn mops(m: &Measured<'_>, panel: &str, x: f64) -> Option<f64> {
    let points = m.throughput(panel, ALONE);
    let at = points.iter().find(|(at, _)| *at == x);
    at.or(points.first()).map(|(_, mops)| *mops)
}

/// Returns the ratio of the baseline to a line's throughput at x.
pub(super) fn ratio(m: &Measured<'_>, panel: &str, line: &str, x: f64) -> Option<f64> {
    Some(mops(m, panel, x)? / m.mops(panel, line, x)?)
}

/// Makes the table of ratios of a panel: by how much one thread alone is faster than each line.
pub(super) fn table(m: &Measured<'_>, key: &str) -> Option<Grid> {
    let panel = m.panel(key)?;
    let lines = panel.lines.iter().filter(|line| *line != ALONE);
    let mut xs: Vec<f64> = lines
        .clone()
        .flat_map(|line| m.points(key, line, Throughput))
        .map(|(x, _)| x)
        .collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    let baseline = m.throughput(key, ALONE);
    let (_, first) = baseline.first()?;
    let of_each = match baseline.len() {
        1 => format!("{} Mops", significant(*first)),
        _ => "at each point".to_owned(),
    };
    let ratio = |line: &str, x| ratio(m, key, line, x).map_or("–".to_owned(), times);
    let row = |line: &String| {
        let ratios = xs.iter().map(|&x| ratio(line, x));
        std::iter::once(line.clone()).chain(ratios).collect()
    };
    let head = xs.iter().map(|&x| grouped(x as u64));
    Some(Grid {
        title: format!(
            "{}: one thread without synchronisation ({of_each}) as a multiple of each method",
            panel.title
        ),
        head: std::iter::once(panel.axis.label.clone())
            .chain(head)
            .collect(),
        rows: lines.map(row).collect(),
    })
}

/// Compares the baseline with the line that comes nearest to it, or passes it, at the last point.
pub(super) fn words(m: &Measured<'_>, key: &str) -> Option<String> {
    let lines = || m.panel(key).into_iter().flat_map(|panel| &panel.lines);
    let rivals = || lines().map(String::as_str).filter(|line| *line != ALONE);
    let (x, _) = rivals()
        .filter_map(|line| m.last(key, line))
        .max_by(|a, b| a.0.total_cmp(&b.0))?;
    let (best, fastest) = m.best_of(key, rivals(), x)?;
    let alone = mops(m, key, x)?;
    Some(if fastest > alone {
        format!(
            "One thread without synchronisation does {} Mops; {} is faster at the last point, by {}: \
             here sharing pays.",
            significant(alone),
            code(best),
            times(fastest / alone)
        )
    } else {
        format!(
            "One thread without synchronisation does {} Mops, {} as many as all threads together by the \
             fastest method at the last point, {}: here sharing costs more than the other threads bring.",
            significant(alone),
            times(alone / fastest),
            code(best)
        )
    })
}
