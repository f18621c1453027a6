//! Churn (C4): a fibre is woken by any other, wherever it ran before.

use super::{CPUS_FOR_A_LINE, ON_FEWER_CPUS, given, panel, table};
use crate::declare::{Drawn, Figure, Panel, Printed, Source};
use crate::size::Size;
use corelay_lab_bench::fibres::spec::Bench;
use corelay_lab_report::figure::measured::Measured;

pub(crate) const FIGURE: Figure = Figure {
    name: "churn",
    title: "What does it cost if any fibre may wake any other?",
    source: Source::Chapter("Churn"),
    least: 1,
    whole: CPUS_FOR_A_LINE,
    fewer: ON_FEWER_CPUS,
    panels,
    printed: &[Printed {
        what: "results",
        there: "pictures of one of its machines, and no word about them",
        here: given,
        drawn: Drawn::Nowhere,
    }],
    tables: table,
    words,
    ..Figure::PLAIN
};

fn words(m: &Measured<'_>) -> Vec<String> {
    let mut said = super::words(m);
    said.push(
        "The chapter asks for at least as many fibres as semaphores and processors together, and then \
         names a picture with one fibre per processor, which leaves none for a semaphore. Here the small \
         panel has two fibres and one semaphore per processor."
            .to_owned(),
    );
    said
}

fn panels(size: &Size) -> Vec<Panel> {
    let panel = |key, title, fibres: usize, spots: usize| {
        panel(key, title, size, 1, move |size, method, p| {
            let bench = Bench::Churn { spots: spots * p };
            size.fibres(method, bench, p, fibres * p, key)
        })
    };
    vec![
        panel("hi", "100 fibres and 50 semaphores per processor", 100, 50),
        panel("lo", "2 fibres and 1 semaphore per processor", 2, 1),
    ]
}
