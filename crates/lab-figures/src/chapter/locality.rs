//! Locality (C5): does it pay to hand the data to the fibre that is woken?

use super::{CPUS_FOR_A_LINE, MIGRATING, ON_FEWER_CPUS, given, most, panel, table};
use crate::declare::{Drawn, Figure, Panel, Printed, Source};
use crate::size::Size;
use corelay_lab_bench::fibres::spec::Bench;
use corelay_lab_measure::schema::Run;
use corelay_lab_report::figure::measured::Measured;
use corelay_lab_report::figure::outcome::Drawing;
use corelay_lab_report::plot::percent;
use corelay_lab_report::words::{code, count};

const SHARE: &str = "share";

/// Words of an array, and touches in a pass: eight cache lines, so that their place matters.
const WORDS: usize = 64;

pub(crate) const FIGURE: Figure = Figure {
    name: "locality",
    title: "Does a fibre's data come along?",
    source: Source::Chapter("Locality"),
    least: 1,
    whole: CPUS_FOR_A_LINE,
    fewer: ON_FEWER_CPUS,
    panels,
    printed: &[Printed {
        what: "results",
        there: "none, and neither code nor set-up, which are ours",
        here: given,
        drawn: Drawn::Nowhere,
    }],
    tables: table,
    words: |m| {
        let mut said = super::words(m);
        said.extend(moved(m));
        said
    },
    ..Figure::PLAIN
};

fn panels(size: &Size) -> Vec<Panel> {
    let panel = |key, title, share| {
        panel(key, title, size, 1, move |size, method, p| {
            let fibres = 100 * p;
            let bench = Bench::Locality {
                spots: fibres - p,
                words: WORDS,
                touches: WORDS,
                share,
            };
            size.fibres(method, bench, p, fibres, "hi")
        })
    };
    vec![
        panel(SHARE, "A woken fibre gets the array of its waker", true),
        panel("no-share", "Each fibre keeps its array", false),
    ]
}

/// Reports how often fibres and arrays changed their processor.
fn moved(m: &Measured<'_>) -> Vec<String> {
    let of = |panel: &Drawing| {
        let p = most(m, &panel.key).filter(|&p| p > 1)?;
        let (_, run) = *m.runs(&panel.key, MIGRATING).last()?;
        let (fibres, data) = shares(run)?;
        Some(format!(
            "{}: on {}, a fibre of {} continues on another processor after {} of its waits, and \
             another processor than before touches its array in {} of its passes.",
            panel.title,
            count(p as u64, "processor", "processors"),
            code(MIGRATING),
            percent(fibres),
            percent(data)
        ))
    };
    m.panels().iter().filter_map(of).collect()
}

/// Returns the migrations of fibres and of data per operation, over all samples.
fn shares(run: &Run) -> Option<(f64, f64)> {
    let (mut operations, mut fibres, mut data) = (0, 0, 0);
    for outcome in run.samples.iter().filter_map(|s| s.fibres.as_ref()) {
        operations += outcome.operations;
        fibres += outcome.fibre_migrations?;
        data += outcome.data_migrations?;
    }
    let share = |n: u64| n as f64 / operations as f64;
    (operations > 0).then(|| (share(fibres), share(data)))
}
