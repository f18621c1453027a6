//! Cycle (C2): rings of five fibres, in which each fibre wakes the next and waits.

use super::{CPUS_FOR_A_LINE, ON_FEWER_CPUS, against, grown, most, panel, table, words};
use crate::declare::{Drawn, Figure, Panel, Printed, Source};
use crate::size::Size;
use corelay_lab_bench::fibres::spec::{Bench, RING};
use corelay_lab_report::words::{and, times};

const HI: &str = "hi";
const LO: &str = "lo";

pub(crate) const FIGURE: Figure = Figure {
    name: "cycle",
    title: "What does it cost to wake a fibre and to wait?",
    source: Source::Chapter("Cycling latency"),
    least: 1,
    whole: CPUS_FOR_A_LINE,
    fewer: ON_FEWER_CPUS,
    panels,
    printed: &[
        Printed {
            what: "100 rings per processor",
            there: "“very good throughput and scalability for all runtimes”",
            here: |m| {
                let p = most(m, HI).filter(|&p| p > 1)?;
                let lines = m.panel(HI)?.lines.iter();
                let of = |line: &String| Some(format!("{line} {}", times(grown(m, HI, line)?)));
                let grown: Vec<String> = lines.filter_map(of).collect();
                (!grown.is_empty())
                    .then(|| format!("ns·p/op on {p} processors by 1: {}", and(&grown)))
            },
            drawn: Drawn::Nowhere,
        },
        Printed {
            what: "1 ring per processor against 100, throughput",
            there: "lower for most runtimes: processors go to sleep",
            here: |m| against(m, LO, HI),
            drawn: Drawn::Nowhere,
        },
    ],
    tables: table,
    words,
    ..Figure::PLAIN
};

fn panels(size: &Size) -> Vec<Panel> {
    let panel = |key, title, rings: usize| {
        panel(key, title, size, 1, move |size, method, p| {
            size.fibres(method, Bench::Cycle { ring: RING }, p, rings * p, key)
        })
    };
    vec![
        panel(HI, "100 rings of 5 fibres per processor", 100),
        panel(LO, "1 ring of 5 fibres per processor", 1),
    ]
}
