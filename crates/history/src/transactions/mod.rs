//! Transactions.

mod anomaly;
mod cycles;
mod edn;
mod explain;
mod graph;
mod index;
mod level;
mod operation;
mod plan;
mod reads;
mod recorder;
mod svg;
mod versions;

pub use anomaly::{Anomalies, Anomaly, Step};
pub use edn::EdnError;
pub use graph::Dependency;
pub use index::Unusable;
pub use level::{Kind, Level};
pub use operation::{History, Operation, Outcome};
pub use plan::{Access, Plan};
pub use recorder::Recorder;

use anomaly::Found;
use graph::Graph;
use index::Index;
use std::fmt::Debug;
use std::hash::Hash;
use versions::Versions;

/// Checks that a history keeps an isolation level.
///
/// # Errors
/// The anomalies that the level forbids. `unwrap` prints them as readable text.
///
/// # Panics
/// If the history does not [obey its rules](History#what-a-history-must-obey).
pub fn check<K: Clone + Eq + Hash + Debug>(
    history: &History<K>,
    level: Level,
) -> Result<Checked, Anomalies<K>> {
    let index = Index::new(history).unwrap_or_else(|unusable| panic!("{unusable}"));
    let versions = Versions::new(&index);
    let mut found = Found::new(&index, level);
    let reads = reads::scan(&index, &versions, &mut found);
    let known = reads::lost_updates(&index, &versions, &reads.updates, &mut found);
    let order = versions.order(&index, &reads.updates, &reads.torn);
    let real_time = level.forbids(Kind::G0Realtime);
    let graph = Graph::new(&index, &versions, reads.seen, order, real_time);
    for cycle in cycles::find(&graph, level, &known) {
        let edges: Vec<Dependency> = cycle.iter().map(|(_, edge)| edge.kind).collect();
        let nodes: Vec<usize> = cycle.iter().map(|(node, _)| *node as usize).collect();
        found.add_cycle(Kind::of_cycle(&edges), &nodes, || {
            (String::new(), explain::steps(&index, &versions, &cycle))
        });
    }
    found.into_anomalies().map(|()| Checked {
        committed: index.committed().count(),
        ww: graph.count(Dependency::Ww),
        wr: graph.count(Dependency::Wr),
        rw: graph.count(Dependency::Rw),
        real_time: graph.count(Dependency::RealTime),
    })
}

/// Whether a history obeys its [rules](History#what-a-history-must-obey), so that it can be checked.
/// For histories from files.
///
/// # Errors
/// [`Unusable`] with the first transaction that does not.
pub fn usable<K: Eq + Hash + Debug>(history: &History<K>) -> Result<(), Unusable> {
    Index::new(history).map(drop)
}

/// What a check went by: a history whose transactions hardly depend on each other shows little.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checked {
    /// Transactions that have committed.
    pub committed: usize,
    /// Pairs of writes that are known to follow each other.
    pub ww: usize,
    /// Pairs of a write and a read of it.
    pub wr: usize,
    /// Pairs of a read and the write that follows it.
    pub rw: usize,
    /// Pairs of transactions that follow each other in real time, but for those that others imply.
    /// 0 at levels that know no real time.
    pub real_time: usize,
}
