//! Logs merged at read (O8), over threads.

use super::{CPUS_FOR_A_LINE, ON_FEWER_CPUS, against, classes, over_threads, slopes, with_classes};
use crate::declare::{Drawn, Figure, Panel, Printed, Source};
use crate::size::Size;
use corelay_lab_bench::ordered::spec::Bench;
use corelay_lab_report::figure::measured::Measured;
use corelay_lab_report::figure::quantity::Quantity::Throughput;

const METHODS: [&str; 5] = [
    "trust",
    "trust-post",
    "mutex",
    "oplog-logical",
    "oplog-ordo",
];

const READ_PER_10_000: &str = "10000";

pub(crate) const FIGURE: Figure = Figure {
    name: "oplog",
    title: "What is gained by logging updates and merging the logs at each read?",
    source: Source::Ordo("Physical timestamping: Oplog"),
    least: 1,
    whole: CPUS_FOR_A_LINE,
    fewer: ON_FEWER_CPUS,
    panels,
    printed: &[Printed {
        what: "Oplog on Ordo against the usual reverse map",
        there: "1.9 times, a mail server on 240 cores",
        here: |m| against(m, READ_PER_10_000, "oplog-ordo", "mutex"),
        drawn: Drawn::Nowhere,
    }],
    words,
    ..Figure::PLAIN
};

fn panels(size: &Size) -> Vec<Panel> {
    let panel = |key, title, reads_every| {
        let bench = Bench::Rmap {
            pages: 1024,
            reads_every,
        };
        over_threads(key, title, size, bench, &METHODS, &[Throughput])
    };
    vec![
        panel("1000", "A read of the whole per 1,000 updates", 1_000),
        panel(
            READ_PER_10_000,
            "A read of the whole per 10,000 updates",
            10_000,
        ),
        panel(
            "1000000",
            "A read of the whole per 1,000,000 updates",
            1_000_000,
        ),
    ]
}

fn words(m: &Measured<'_>) -> Vec<String> {
    let of = |panel: &corelay_lab_report::figure::outcome::Drawing| {
        let key = &panel.key;
        let logical = against(m, key, "oplog-logical", "mutex")?;
        let ordo = against(m, key, "oplog-ordo", "mutex")?;
        let mut said = format!(
            "{}: logs do {logical} what a mutex does, and on Ordo {ordo}",
            panel.title
        );
        if let Some(slopes) = slopes(m, key, &METHODS[2..]) {
            said += &format!("; {slopes}");
        }
        Some(said + ".")
    };
    let said = m.panels().iter().filter_map(of).collect();
    with_classes(said, &[classes::OPLOG])
}
