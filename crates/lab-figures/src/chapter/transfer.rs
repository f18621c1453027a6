//! Transfer (C6): a leader spins until all fibres have seen it. A runtime that leaves fibres
//! queued on the leader's processor does not complete.

use super::{CPUS_FOR_A_LINE, ON_FEWER_CPUS, given, most, panel, table};
use crate::declare::{Drawn, Figure, Panel, Printed, Source};
use crate::fibre_runs::completed;
use crate::size::Size;
use corelay_lab_bench::fibres::spec::{Bench, Flavour};
use corelay_lab_report::figure::measured::Measured;
use corelay_lab_report::figure::outcome::Drawing;
use corelay_lab_report::figure::quantity::Quantity::{PerSecond, ScalabilityUs};
use corelay_lab_report::words::{and, code};

pub(crate) const FIGURE: Figure = Figure {
    name: "transfer",
    title: "Can fibres leave the processor of one that never yields?",
    source: Source::Chapter("Transfer"),
    least: 2,
    whole: CPUS_FOR_A_LINE,
    fewer: ON_FEWER_CPUS,
    panels,
    printed: &[Printed {
        what: "results",
        there: "none, though it names a figure of them",
        here: given,
        drawn: Drawn::Nowhere,
    }],
    tables: table,
    words,
    ..Figure::PLAIN
};

fn panels(size: &Size) -> Vec<Panel> {
    let panel = |key, title, flavour, fibres: usize| {
        let panel = panel(key, title, size, 2, move |size, method, p| {
            let bench = Bench::Transfer { flavour };
            size.fibres(method, bench, p, fibres, &fibres.to_string())
        });
        Panel {
            quantities: &[PerSecond, ScalabilityUs],
            ..panel
        }
    };
    let mut panels = vec![
        panel("park", "8 fibres, the others wait", Flavour::Park, 8),
        panel("yield", "8 fibres, the others yield", Flavour::Yield, 8),
    ];
    // It takes 5 seconds to find that a method does not complete, so a smoke pass has fewer of
    // them.
    if !size.short {
        let (park, yields) = (
            "200 fibres, the others wait",
            "200 fibres, the others yield",
        );
        panels.push(panel("park-200", park, Flavour::Park, 200));
        panels.push(panel("yield-200", yields, Flavour::Yield, 200));
    }
    panels
}

fn words(m: &Measured<'_>) -> Vec<String> {
    let mut said: Vec<String> = m.panels().iter().filter_map(|p| stuck(m, p)).collect();
    if m.panels()
        .iter()
        .all(|panel| completes(m, panel, PREEMPTIVE))
    {
        said.push(format!(
            "{} completes everywhere: its runtime is pre-emptive, and forces the leader off its \
             processor when others wait (as the chapter notes).",
            code(PREEMPTIVE)
        ));
    }
    said.extend(super::words(m));
    said.push(
        "An operation is a leader that all others have seen; a sample is a number of operations, \
         however long they take. Fibres that stay on their first processor may be queued behind the \
         leader, and then never see it. So may tasks of a runtime whose processors steal only from \
         processors that are not busy. The chapter's pseudo-code waits where it should wake: here a \
         leader posts to all others."
            .to_owned(),
    );
    said
}

/// The runtime that takes a processor from a fibre that does not yield.
const PREEMPTIVE: &str = super::GO;

/// Whether a method was measured and completed at the most processors.
fn completes(m: &Measured<'_>, panel: &Drawing, line: &str) -> bool {
    let runs = m.runs(&panel.key, line);
    let last = runs.last();
    last.is_some_and(|(_, run)| run.not_installed.is_none() && completed(run))
}

/// Names the methods that did not complete at the most processors.
fn stuck(m: &Measured<'_>, panel: &Drawing) -> Option<String> {
    let p = most(m, &panel.key)?;
    let is_stuck = |line: &&String| {
        let runs = m.runs(&panel.key, line);
        runs.last().is_some_and(|(_, run)| !completed(run))
    };
    let stuck: Vec<String> = panel
        .lines
        .iter()
        .filter(is_stuck)
        .map(|line| code(line))
        .collect();
    (!stuck.is_empty()).then(|| {
        format!(
            "{}: on {p} processors {} did not complete: a leader made no progress for 5 seconds.",
            panel.title,
            and(&stuck)
        )
    })
}
