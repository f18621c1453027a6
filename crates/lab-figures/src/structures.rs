//! Structures over threads (F2, F3): the slides' linked list, queue, stack, hash table, lazy list,
//! skip list and search trees, with the best of delegation and its best rival (F4, F5).

use super::baseline;
use super::best::best;
use super::declare::{Figure, FigureLine, Panel, Source};
use super::size::Size;
use corelay_lab_measure::method::named;
use corelay_lab_measure::workload::operation::Workload;
use corelay_lab_measure::workload::structure::seq::{
    ChainedMap, SearchTree, SkipList, SortedList, VecDeque,
};
use corelay_lab_measure::workload::structure::{SharedStructure, Structure};
use corelay_lab_report::figure::outcome::Axis;
use corelay_lab_report::figure::quantity::Quantity::Throughput;
use corelay_lab_report::table;

/// The methods besides the structures that threads use directly: locks, those that combine, the
/// literature's delegation, corelay's.
const METHODS: [&str; 10] = [
    "mutex",
    "ttas",
    "mcs",
    "flat-combining",
    "cc-synch",
    "node-replication",
    "rcl",
    "ffwd",
    "trust",
    "trust-then",
];

/// The number of keys of a list, a queue or a stack (of the slides), and of the larger structures.
const FEW: u64 = 1024;
const MANY: u64 = 16_384;

pub(super) const LINKED_LIST: Figure = figure(
    "linked-list",
    "Which method is fastest on a sorted list of 1,024 keys, over threads?",
    "linked list, 1,024 nodes, coarse",
    |size| panels(size, SharedStructure::<SortedList<u64>>::new(FEW, 30), 1),
);

pub(super) const QUEUE: Figure = figure(
    "queue",
    "Which method is fastest on a queue, over threads?",
    "two-lock queue",
    |size| panels(size, SharedStructure::<VecDeque<u64>>::new(FEW, 100), 1),
);

pub(super) const STACK: Figure = figure(
    "stack",
    "Which method is fastest on a stack, over threads?",
    "stack",
    |size| panels(size, SharedStructure::<Vec<u64>>::new(FEW, 100), 1),
);

pub(super) const HASH_TABLE: Figure = figure(
    "hash-table",
    "Which method is fastest on a hash table, over threads?",
    "hash table",
    |size| {
        panels(
            size,
            SharedStructure::<ChainedMap<u64, u64>>::new(MANY, 30),
            1,
        )
    },
);

pub(super) const LAZY_LIST: Figure = figure(
    "lazy-list",
    "By how much does delegation lose on a list that is mostly read, over threads?",
    "lazy list",
    |size| {
        let list = SharedStructure::<SortedList<u64>>::new(FEW, 5);
        panels(size, list.if_read(), 1)
    },
);

pub(super) const SKIP_LIST: Figure = figure(
    "skip-list",
    "Which method is fastest on a skip list, over threads?",
    "skip list",
    |size| {
        panels(
            size,
            SharedStructure::<SkipList<u64, u64>>::new(MANY, 30),
            1,
        )
    },
);

pub(super) const TREE: Figure = figure(
    "tree",
    "Which method is fastest on a binary search tree, over threads?",
    "binary search tree, 50/50",
    |size| {
        panels(
            size,
            SharedStructure::<SearchTree<u64, u64>>::new(MANY, 50),
            1,
        )
    },
);

pub(super) const SHARDED_TREE: Figure = figure(
    "sharded-tree",
    "Which method is fastest on a search tree that is split in four, over threads?",
    "binary search tree, 50/50, 4 shards",
    |size| {
        panels(
            size,
            SharedStructure::<SearchTree<u64, u64>>::new(MANY / 4, 50),
            4,
        )
    },
);

const fn figure(
    name: &'static str,
    title: &'static str,
    slide: &'static str,
    panels: fn(&Size) -> Vec<Panel>,
) -> Figure {
    Figure {
        name,
        title,
        source: Source::Ffwd(slide),
        whole: 4,
        fewer: "the axis of threads ends where the CPUs do, and one client has no others to share \
                the trustee's round trips with.",
        panels,
        tables: |m| {
            let mut tables = table::structure::best(&m.outcome().results);
            tables.extend(baseline::table(m, "threads"));
            tables
        },
        words: |m| {
            let best = best(m, "threads").map(|best| format!("On this machine {best}."));
            best.into_iter()
                .chain(baseline::words(m, "threads"))
                .collect()
        },
        ..Figure::PLAIN
    }
}

/// Makes the lines of every method over threads, on so many structures that share the keys.
fn panels<S: Structure>(size: &Size, workload: SharedStructure<S>, vars: u64) -> Vec<Panel> {
    let methods = SharedStructure::<S>::methods();
    let rivals = S::rivals();
    let rivals = rivals.iter().filter(|rival| rival.compared.is_some());
    let rivals = rivals.map(|rival| rival.name());
    let line = |name: &'static str| {
        let method = named(&methods, name).and_then(Result::ok);
        let method = method.expect("a figure names methods that there are");
        let threads = size.threads_from(method.least_threads(1)).into_iter();
        FigureLine::new(
            name,
            threads.map(|n| size.structures(n, workload, method, vars)),
        )
    };
    let alone = named(&methods, baseline::ALONE).and_then(Result::ok);
    let alone = alone.expect("every workload has the baseline");
    let alone = baseline::line([size.structures(1, workload, alone, vars)]);
    vec![Panel {
        key: "threads",
        title: "Over threads",
        axis: Axis::linear("threads"),
        quantities: &[Throughput],
        lines: std::iter::once(alone)
            .chain(rivals.chain(METHODS).map(line))
            .collect(),
    }]
}
