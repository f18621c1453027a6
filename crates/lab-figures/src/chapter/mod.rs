//! The scheduler chapter's benchmarks of fibres (C2–C8): corelay's fibres, and those of other
//! runtimes that are installed, over processors.
//!
//! The chapter draws throughput and *scalability*, which is time per operation times processors.
//! It prints no number, so the pictures have no printed level; the chapter's statements stand
//! beside the measured figures. If it leaves results out, the table says so and gives ours.

mod chains;
pub(super) mod churn;
pub(super) mod cycle;
pub(super) mod locality;
pub(super) mod transfer;
pub(super) mod yield_;

use super::declare::{Cell, FigureLine, Panel};
use super::fibre_runs::completed;
use super::size::Size;
use corelay_lab_bench::fibres::method::{METHODS, Method};
use corelay_lab_report::figure::measured::Measured;
use corelay_lab_report::figure::outcome::Axis;
use corelay_lab_report::figure::outcome::Drawing;
use corelay_lab_report::figure::quantity::Quantity::{Scalability, ScalabilityUs, Throughput};
use corelay_lab_report::plot::significant;
use corelay_lab_report::table::grid::Grid;
use corelay_lab_report::words::{and, code, count, times};

const STAYING: &str = "corelay";
const MIGRATING: &str = "corelay-migrating";
const TOKIO: &str = "tokio";
const GO: &str = "go";

/// A sentence on what the figures lose on a machine with few CPUs.
const ON_FEWER_CPUS: &str = "the axis of processors ends where the CPUs do: two show whether a \
                             second one helps, not how far that goes.";

/// CPUs that a line over processors needs.
const CPUS_FOR_A_LINE: usize = 4;

/// Makes a panel of all methods over processors, from `least`. `cell` makes each point.
fn panel(
    key: &'static str,
    title: &'static str,
    size: &Size,
    least: usize,
    cell: impl Fn(&Size, Method, usize) -> Cell,
) -> Panel {
    let line = |method: &Method| {
        let processors = size.processors_from(least).into_iter();
        let cells = processors.map(|p| cell(size, *method, p));
        FigureLine::new(method.name(), cells)
    };
    // corelay's lines come last, so that they lie on top.
    let (own, others): (Vec<&Method>, Vec<&Method>) = METHODS.iter().partition(|m| m.is_own());
    Panel {
        key,
        title,
        axis: Axis::linear("processors"),
        quantities: &[Throughput, Scalability],
        lines: others.into_iter().chain(own).map(line).collect(),
    }
}

/// Returns the panels that compare several methods.
fn contests<'a>(m: &Measured<'a>) -> impl Iterator<Item = &'a Drawing> {
    let panels = m.panels().iter();
    panels.filter(|panel| panel.lines.len() > 1)
}

/// Returns the largest measured number of processors in a panel.
fn most(m: &Measured<'_>, panel: &str) -> Option<usize> {
    let lines = m.panel(panel)?.lines.iter();
    let most = lines.filter_map(|line| m.runs(panel, line).last().map(|(x, _)| *x as usize));
    most.max()
}

/// Returns the time per operation of the whole system, in nanoseconds.
fn ns(m: &Measured<'_>, panel: &str, line: &str, processors: usize) -> Option<f64> {
    Some(1e3 / m.mops(panel, line, processors as f64)?)
}

/// Makes the table of each method's time per operation at the most processors, or the reason that
/// it has none.
fn table(m: &Measured<'_>) -> Vec<Grid> {
    let Some(first) = m.panels().first() else {
        return Vec::new();
    };
    let mut head = vec!["method".to_owned()];
    head.extend(contests(m).map(|panel| panel.title.clone()));
    let row = |line: &String| {
        let cells = contests(m).map(|panel| cell(m, panel, line));
        std::iter::once(line.clone()).chain(cells).collect()
    };
    let p = most(m, &first.key).unwrap_or(0) as u64;
    let (unit, _) = unit(first);
    vec![Grid {
        title: format!(
            "{unit} of the whole system per operation, on {}",
            count(p, "processor", "processors")
        ),
        head,
        rows: first.lines.iter().map(row).collect(),
    }]
}

/// Returns the unit of a panel's times, and its length in nanoseconds.
fn unit(panel: &Drawing) -> (&'static str, f64) {
    match panel.quantities.contains(&ScalabilityUs) {
        true => ("µs", 1e3),
        false => ("ns", 1.0),
    }
}

fn cell(m: &Measured<'_>, panel: &Drawing, line: &str) -> String {
    let runs = m.runs(&panel.key, line);
    let Some((p, run)) = runs.last() else {
        return "–".to_owned();
    };
    if run.not_installed.is_some() {
        "not installed".to_owned()
    } else if !run.correct {
        "wrong".to_owned()
    } else if !completed(run) {
        "did not complete".to_owned()
    } else {
        let ns = ns(m, &panel.key, line, *p as usize);
        ns.map_or("–".to_owned(), |ns| significant(ns / unit(panel).1))
    }
}

/// Describes each panel: the fastest method at the most processors, ours beside Tokio's, and the
/// gain from more processors.
fn words(m: &Measured<'_>) -> Vec<String> {
    let said =
        contests(m).flat_map(|panel| [fastest(m, panel), scales(m, &panel.key, &panel.title)]);
    said.flatten().chain(missing(m)).collect()
}

/// Says why a method has no figures.
fn missing(m: &Measured<'_>) -> Vec<String> {
    let Some(panel) = m.panels().first() else {
        return Vec::new();
    };
    let why = |line: &String| {
        let runs = m.runs(&panel.key, line);
        let why = runs.last()?.1.not_installed.as_ref()?;
        Some(format!("{} is not installed: {why}.", code(line)))
    };
    panel.lines.iter().filter_map(why).collect()
}

fn fastest(m: &Measured<'_>, drawing: &Drawing) -> Option<String> {
    let (panel, title) = (&*drawing.key, &drawing.title);
    let (unit, ns_of_unit) = unit(drawing);
    let p = most(m, panel)?;
    let (winner, mops) = m.winner(panel, p as f64)?;
    let mut said = format!(
        "{title}: on {} {} is fastest, with {} {unit} an operation",
        count(p as u64, "processor", "processors"),
        code(winner),
        significant(1e3 / mops / ns_of_unit)
    );
    if let (Some(ours), Some(tokio)) = (ns(m, panel, MIGRATING, p), ns(m, panel, TOKIO, p)) {
        said += &format!(
            "; {} takes {} the time of {}",
            code(MIGRATING),
            times(ours / tokio),
            code(TOKIO)
        );
    }
    if let (Some(stays), Some(migrates)) = (ns(m, panel, STAYING, p), ns(m, panel, MIGRATING, p)) {
        said += &format!(
            "; fibres that stay take {} the time of those that migrate",
            times(stays / migrates)
        );
    }
    Some(said + ".")
}

fn scales(m: &Measured<'_>, panel: &str, title: &str) -> Option<String> {
    let p = most(m, panel).filter(|&p| p > 1)?;
    let lines = &m.panel(panel)?.lines;
    let growth = |line: &String| Some(format!("{} {}", code(line), times(grown(m, panel, line)?)));
    let grown: Vec<String> = lines.iter().filter_map(growth).collect();
    (!grown.is_empty()).then(|| {
        format!(
            "{title}: from 1 to {p} processors ns·p/op grows (1 × is perfect) {}.",
            and(&grown)
        )
    })
}

/// Returns how much a line's time per operation and processor grows from one processor to the
/// most.
fn grown(m: &Measured<'_>, panel: &str, line: &str) -> Option<f64> {
    let p = most(m, panel).filter(|&p| p > 1)? as f64;
    let at = |x| m.at(panel, line, x, Scalability);
    Some(at(p)? / at(1.0)?)
}

/// Compares each method's throughput in one panel with that in another, at the most processors.
fn against(m: &Measured<'_>, panel: &str, other: &str) -> Option<String> {
    let p = most(m, panel)? as f64;
    let ratio = |line: &String| {
        let ratio = m.mops(panel, line, p)? / m.mops(other, line, p)?;
        Some(format!("{line} {}", times(ratio)))
    };
    let ratios: Vec<String> = m.panel(panel)?.lines.iter().filter_map(ratio).collect();
    (!ratios.is_empty()).then(|| and(&ratios))
}

/// Returns our times in each panel at the most processors, for a figure of which the chapter has
/// no results.
fn given(m: &Measured<'_>) -> Option<String> {
    let of = |panel: &Drawing| {
        let p = most(m, &panel.key)?;
        let ns = ns(m, &panel.key, MIGRATING, p)?;
        let title = panel.title.to_lowercase();
        let (unit, ns_of_unit) = unit(panel);
        let processors = count(p as u64, "processor", "processors");
        let value = significant(ns / ns_of_unit);
        Some(format!("{value} {unit} ({title}, {processors})"))
    };
    let given: Vec<String> = m.panels().iter().filter_map(of).collect();
    (!given.is_empty()).then(|| format!("{MIGRATING}: {} an operation", and(&given)))
}
