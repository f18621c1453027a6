//! Read-log-update with one shared clock and with each core's own (O5).

use super::parts::{self, Pair};
use super::{CPUS_FOR_A_LINE, ON_FEWER_CPUS, against, classes, over_threads, slopes, with_classes};
use crate::declare::{Drawn, Figure, Panel, Printed, Source};
use crate::size::Size;
use corelay_lab_bench::ordered::spec::Bench;
use corelay_lab_report::figure::measured::Measured;
use corelay_lab_report::figure::quantity::Quantity::{Aborts, Throughput, Uncertain};

const METHODS: [&str; 4] = ["mutex", "rcu", "rlu-logical", "rlu-ordo"];

const HASH_2: &str = "hash-2";
const HASH_40: &str = "hash-40";

/// The panels whose methods take the time of their parts.
const TIMED: [Pair; 2] = [
    Pair {
        timed: "parts-2",
        plain: HASH_2,
    },
    Pair {
        timed: "parts-40",
        plain: HASH_40,
    },
];

pub(crate) const FIGURE: Figure = Figure {
    name: "rlu",
    title: "Does read-log-update scale better with each core's own clock?",
    source: Source::Ordo("Scaling RLU with Ordo"),
    least: 1,
    whole: CPUS_FOR_A_LINE,
    fewer: ON_FEWER_CPUS,
    panels,
    printed: &[Printed {
        what: "RLU on Ordo against RLU on one clock, hash table, 2 % updates",
        there: "2.1 times faster on average",
        here: |m| against(m, HASH_2, "rlu-ordo", "rlu-logical"),
        drawn: Drawn::Nowhere,
    }],
    stacks: |m| parts::stacks(m, &TIMED),
    words,
    ..Figure::PLAIN
};

fn panels(size: &Size) -> Vec<Panel> {
    let panel = |key, title, bench| {
        let quantities = &[Throughput, Aborts, Uncertain];
        over_threads(key, title, size, bench, &METHODS, quantities)
    };
    let hash = |updates| Bench::Hash {
        buckets: 1000,
        size: 10,
        updates,
    };
    let list = |updates| Bench::List { size: 256, updates };
    vec![
        panel(HASH_2, "A hash table of 1,000 × 10, 2 % updates", hash(2)),
        panel(
            HASH_40,
            "A hash table of 1,000 × 10, 40 % updates",
            hash(40),
        ),
        panel("list-2", "A list of 256, 2 % updates", list(2)),
        panel("list-40", "A list of 256, 40 % updates", list(40)),
        parts::panel(
            TIMED[0].timed,
            "The hash table with 2 % updates, its parts timed",
            size,
            hash(2),
        ),
        parts::panel(
            TIMED[1].timed,
            "The hash table with 40 % updates, its parts timed",
            size,
            hash(40),
        ),
    ]
}

fn words(m: &Measured<'_>) -> Vec<String> {
    let of = |panel: &corelay_lab_report::figure::outcome::Drawing| {
        let key = &panel.key;
        let by = against(m, key, "rlu-ordo", "rlu-logical")?;
        let rcu = against(m, key, "rlu-logical", "rcu")?;
        let mut said = format!(
            "{}: on Ordo RLU does {by} what it does on one clock, and that is {rcu} of `rcu`, \
             whose readers take no time stamps",
            panel.title
        );
        if let Some(slopes) = slopes(m, key, &["rcu", "rlu-logical", "rlu-ordo"]) {
            said += &format!("; {slopes}");
        }
        Some(said + ".")
    };
    let said = m.panels().iter().filter_map(of);
    let said = said.chain(parts::words(m, &TIMED)).collect();
    with_classes(said, &[classes::RLU])
}
