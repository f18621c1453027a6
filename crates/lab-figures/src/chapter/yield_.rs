//! Yield (C3): the cost of the simplest operation of a fibre.

use super::chains;
use super::{
    CPUS_FOR_A_LINE, GO, MIGRATING, ON_FEWER_CPUS, TOKIO, against, most, ns, panel, table, words,
};
use crate::declare::{Drawn, Figure, Panel, Printed, Source};
use crate::size::Size;
use corelay_lab_bench::fibres::spec::Bench;
use corelay_lab_report::figure::measured::Measured;
use corelay_lab_report::words::times;

const HI: &str = "hi";
const LO: &str = "lo";

/// A paragraph on what the runtimes do at a yield and at no other switch, by their sources.
const SPECIAL: &str = "What is special about a yield: Go puts the goroutine into the queue of the \
     whole program, behind a lock, and not into that of its processor. Tokio puts it aside, and \
     queues it only after its worker has looked for I/O. With Boost.Fiber (in the scheduler that \
     is measured) as with may and corelay it is queued as after a wake-up: with Boost in the one \
     queue of all processors, with the others in that of its own.";

pub(crate) const FIGURE: Figure = Figure {
    name: "yield",
    title: "What does it cost to let others run?",
    source: Source::Chapter("Yield"),
    least: 1,
    whole: CPUS_FOR_A_LINE,
    fewer: ON_FEWER_CPUS,
    panels,
    printed: &[
        Printed {
            what: "Go, 100 fibres per processor",
            there: "“performance suffers drastically”: a fibre that yields goes to a global queue",
            here: |m| by_ours(m, GO),
            drawn: Drawn::Nowhere,
        },
        Printed {
            what: "Tokio, 100 fibres per processor",
            there: "“the same poor performance”",
            here: |m| by_ours(m, TOKIO),
            drawn: Drawn::Nowhere,
        },
        Printed {
            what: "1 fibre per processor against 100, throughput",
            there: "idle sleep “comes into play in a very significant way”",
            here: |m| against(m, LO, HI),
            drawn: Drawn::Nowhere,
        },
        Printed {
            what: "1 fibre per processor, a migration",
            there: "“will … cause every fibre to shuffle around”",
            here: chains::here,
            drawn: Drawn::Nowhere,
        },
    ],
    tables: |m| table(m).into_iter().chain(chains::table(m)).collect(),
    words: |m| {
        let said = words(m).into_iter().chain(chains::words(m));
        said.chain([SPECIAL.to_owned()]).collect()
    },
    ..Figure::PLAIN
};

fn panels(size: &Size) -> Vec<Panel> {
    let panel = |key, title, fibres: usize| {
        panel(key, title, size, 1, move |size, method, p| {
            size.fibres(method, Bench::Yield, p, fibres * p, key)
        })
    };
    let mut panels = vec![
        panel(HI, "100 fibres per processor", 100),
        panel(LO, "1 fibre per processor", 1),
    ];
    panels.extend(chains::panel(size));
    panels
}

fn by_ours(m: &Measured<'_>, line: &str) -> Option<String> {
    let p = most(m, HI)?;
    let ratio = ns(m, HI, line, p)? / ns(m, HI, MIGRATING, p)?;
    Some(format!("{} the time of {MIGRATING}", times(ratio)))
}
