//! The offsets between CPUs, as a picture and as letters.

use corelay::clock::Calibration;
use corelay_lab_bench::ordered::clocks::offsets_ns;
use corelay_lab_report::plot::{HeatMap, Medium, significant};
use std::fmt::Write;

/// Rows and columns of a terminal's map; of more CPUs several share a letter.
const MOST: usize = 64;

/// So many CPUs have their figures printed.
const FEW: usize = 12;

/// From the least to the most.
const SHADES: [char; 5] = ['·', '░', '▒', '▓', '█'];

pub(super) fn svg(found: &Calibration) -> String {
    let cpus = found.offsets.cpus();
    let (from, to, _) = found.offsets.largest().unwrap_or_default();
    let heat = HeatMap {
        id: "offsets".to_owned(),
        title: "How far the column's counter may be ahead of the row's".to_owned(),
        description: format!(
            "Upper bounds of the offsets between the counters of {} CPUs, for each ordered pair; \
             the largest is from CPU {from} to CPU {to}.",
            cpus.len()
        ),
        label: "nanoseconds",
        of: "CPU",
        names: cpus.iter().map(usize::to_string).collect(),
        cells: offsets_ns(found),
        width: 720.0,
    };
    heat.svg(Medium::File) + "\n"
}

/// The same for the terminal: figures of few CPUs, shades of many.
pub(super) fn text(found: &Calibration) -> String {
    let (cpus, cells) = (found.offsets.cpus(), offsets_ns(found));
    let mut text =
        "offsets in ns, upper bounds: how far the column's CPU may be ahead of the row's\n"
            .to_owned();
    if cpus.len() <= FEW {
        figures(&mut text, cpus, &cells);
    } else {
        shades(&mut text, cpus, &cells);
    }
    text
}

fn figures(text: &mut String, cpus: &[usize], cells: &[Option<f64>]) {
    let _ = write!(text, "{:>6}", "");
    cpus.iter().for_each(|cpu| _ = write!(text, "{cpu:>8}"));
    for (cpu, row) in cpus.iter().zip(cells.chunks(cpus.len())) {
        let _ = write!(text, "\n{cpu:>6}");
        for cell in row {
            let cell = cell.map_or("–".to_owned(), significant);
            let _ = write!(text, "{cell:>8}");
        }
    }
    text.push('\n');
}

fn shades(text: &mut String, cpus: &[usize], cells: &[Option<f64>]) {
    let n = cpus.len();
    let each = n.div_ceil(MOST);
    let places = n.div_ceil(each);
    let known = || cells.iter().flatten().copied();
    let low = known().fold(f64::INFINITY, f64::min);
    let high = known().fold(f64::NEG_INFINITY, f64::max);
    let shade = |ns: f64| {
        let place = ((ns - low) / (high - low).max(f64::MIN_POSITIVE) * 4.0).round();
        SHADES[(place as usize).min(4)]
    };
    for row in 0..places {
        let _ = write!(text, "{:>6} ", cpus[row * each]);
        for column in 0..places {
            let within = |of: usize| of * each..((of + 1) * each).min(n);
            let those = within(row).flat_map(|i| within(column).map(move |j| i * n + j));
            // The largest of those that share the place.
            let ns = those.filter_map(|place| cells[place]).reduce(f64::max);
            text.push(ns.map_or(' ', shade));
        }
        text.push('\n');
    }
    let step = (high - low) / 4.0;
    let legend = SHADES.iter().enumerate();
    let legend: Vec<String> = legend
        .map(|(i, shade)| format!("{shade} {}", significant(low + i as f64 * step)))
        .collect();
    let _ = writeln!(text, "       {}", legend.join("  "));
    if each > 1 {
        let _ = writeln!(
            text,
            "       each place is the largest of {each} × {each} pairs"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(n: usize) -> (Vec<usize>, Vec<Option<f64>>) {
        let cell = |i: usize| (i / n != i % n).then_some((i % 50) as f64);
        ((0..n).collect(), (0..n * n).map(cell).collect())
    }

    #[test]
    fn few_have_figures_and_many_shades() {
        let (cpus, of_three) = cells(3);
        let mut text = String::new();
        figures(&mut text, &cpus, &of_three);
        assert_eq!(text.lines().count(), 4);
        assert_eq!(text.matches('–').count(), 3);
        for (n, rows) in [(13, 13), (64, 64), (65, 33), (256, 64), (300, 60)] {
            let (cpus, cells) = cells(n);
            let mut text = String::new();
            shades(&mut text, &cpus, &cells);
            let map: Vec<&str> = text.lines().take(rows).collect();
            assert!(
                map.iter().all(|row| row.chars().count() == 7 + rows),
                "{text}"
            );
            assert!(text.contains('█') && text.contains('·'), "{text}");
            assert_eq!(text.contains("the largest of"), n > 64);
        }
    }
}
