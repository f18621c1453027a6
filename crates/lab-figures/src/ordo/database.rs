//! Concurrency control of databases with one shared clock and with each core's own (O7).
//!
//! Tables are smaller than usual, as all contenders of a figure are in memory together.

use super::{CPUS_FOR_A_LINE, ON_FEWER_CPUS, against, classes, over_threads, slopes, with_classes};
use crate::declare::{Drawn, Figure, Panel, Printed, Source};
use crate::size::Size;
use corelay_lab_bench::ordered::database::{STORES, tpcc, ycsb};
use corelay_lab_bench::ordered::spec::{Bench, Isolation};
use corelay_lab_report::figure::measured::Measured;
use corelay_lab_report::figure::quantity::Quantity::{Aborts, Throughput};

const READS: &str = "ycsb-c";
const ORDERS: &str = "tpcc";

pub(crate) const FIGURE: Figure = Figure {
    name: "database",
    title: "Does a database's concurrency control scale better with each core's own clock?",
    source: Source::Ordo("Scaling database concurrency control"),
    least: 1,
    whole: CPUS_FOR_A_LINE,
    fewer: ON_FEWER_CPUS,
    panels,
    printed: &[
        Printed {
            what: "OCC on Ordo against OCC on one clock, YCSB, reads only",
            there: "4.1 to 39.7 times, OCC and MVCC on four machines",
            here: |m| against(m, READS, "occ-ordo", "occ-logical"),
            drawn: Drawn::Nowhere,
        },
        Printed {
            what: "MVCC on Ordo against MVCC on one clock, YCSB, reads only",
            there: "4.1 to 39.7 times, OCC and MVCC on four machines",
            here: |m| against(m, READS, "mvcc-ordo", "mvcc-logical"),
            drawn: Drawn::Nowhere,
        },
        Printed {
            what: "OCC on Ordo against TicToc, TPC-C",
            there: "1.24 times",
            here: |m| against(m, ORDERS, "occ-ordo", "tictoc"),
            drawn: Drawn::Nowhere,
        },
        Printed {
            what: "OCC on Ordo against Silo, TPC-C",
            there: "1.24 times",
            here: |m| against(m, ORDERS, "occ-ordo", "silo"),
            drawn: Drawn::Nowhere,
        },
    ],
    words,
    ..Figure::PLAIN
};

fn panels(size: &Size) -> Vec<Panel> {
    let panel = |key, title, bench| {
        let quantities = &[Throughput, Aborts];
        over_threads(key, title, size, bench, STORES, quantities)
    };
    let isolation = Isolation::Serializable;
    let rows = |mix, theta| Bench::Ycsb {
        shape: ycsb::Shape {
            mix,
            rows: 1 << 13,
            requests: 16,
            theta,
        },
        isolation,
        tape: None,
    };
    let orders = Bench::Tpcc {
        shape: tpcc::Shape {
            mix: tpcc::Mix::PaymentNewOrder,
            // The slides have 60 warehouses.
            warehouses: size.threads.min(60) as u16,
            shrink: 50,
        },
        isolation,
    };
    vec![
        panel(
            READS,
            "YCSB: 16 reads of 8,192 rows, all alike",
            rows(ycsb::Mix::C, 0.0),
        ),
        panel(
            "ycsb-a",
            "YCSB: 16 requests to 8,192 rows, half of them updates, θ 0.9",
            rows(ycsb::Mix::A, 0.9),
        ),
        panel(
            ORDERS,
            "TPC-C: Payment and New-Order, a warehouse of 1/50 of the size for each thread",
            orders,
        ),
    ]
}

fn words(m: &Measured<'_>) -> Vec<String> {
    let of = |panel: &corelay_lab_report::figure::outcome::Drawing| {
        let key = &panel.key;
        let occ = against(m, key, "occ-ordo", "occ-logical")?;
        let mvcc = against(m, key, "mvcc-ordo", "mvcc-logical")?;
        let mut said = format!(
            "{}: on Ordo OCC does {occ} what it does on one clock, and MVCC {mvcc}",
            panel.title
        );
        if let Some(slopes) = slopes(m, key, STORES) {
            said += &format!("; {slopes}");
        }
        Some(said + ".")
    };
    let said = m.panels().iter().filter_map(of).collect();
    with_classes(said, &[classes::STORES])
}
