//! Checks which isolation level a history of *transactions* keeps: which anomalies, if any, its reads
//! and writes show.
//!
//! A transaction is a list of reads and writes on several keys. No model of the store is needed. Each
//! value is written once, so a read tells whose write it saw. From that follows which transaction must
//! come before which; where these demands form a cycle, no order fulfils them, and the kind of cycle
//! tells which levels the store has broken.
//!
//! ```
//! use corelay_history::Call;
//! use corelay_history::transactions::{History, Kind, Level, Operation::*, Outcome::*, check};
//!
//! // Two doctors on call. Each sees that the other is, and leaves.
//! let mut history = History::new();
//! history.push(0, Call::returned(vec![Write("ann", 1), Write("bob", 2)], 0..=1, Committed));
//! let both = [Read("ann", Some(1)), Read("bob", Some(2))];
//! for (thread, leaves) in [Write("ann", 3), Write("bob", 4)].into_iter().enumerate() {
//!     let operations = [&both[..], &[leaves]].concat();
//!     history.push(thread, Call::returned(operations, 2..=5, Committed));
//! }
//!
//! check(&history, Level::SnapshotIsolation).unwrap();
//! let anomalies = check(&history, Level::Serializable).unwrap_err();
//! assert_eq!(anomalies.worst().kind(), Kind::G2Item); // write skew
//! println!("{anomalies}"); // a picture; `Anomaly::to_svg` draws one for a browser
//! ```
//! A [`Recorder`] notes the transactions of a thread. A [`Plan`] makes random ones.
//!
//! # Lists or registers
//! Prefer **lists** if the store can append to a value: each read shows all versions before it in their
//! order. If a last transaction reads every list, the check is exact. Give each list a limited number
//! of appends (a [`Plan`] does), since each read is as long as the list. An append must be one
//! operation of the store: if the client reads the list and writes it back, appends may be lost even
//! where reads are committed, and that shows as lists in two orders.
//!
//! **Registers** hide what was overwritten. Their order is known as far as
//! * the store says it ([`Outcome::CommittedAt`]), or
//! * transactions read a key before they write it. Then the version that was read comes before the one
//!   that was written. That is an assumption: a store that lets a transaction write *behind* what it
//!   has read should say its order. (Elle makes it by the option `:wfr-keys?`.)
//! * The initial version, absent, comes before all others. At the levels that know real time, a
//!   version that somebody has written or read comes before those that are written or read by
//!   transactions that begin later.
//!
//! Blind writes of registers whose order nobody says are in no order, and anomalies that need it are
//! missed.
//!
//! # Levels
//! | level | forbids, besides what those above forbid |
//! |---|---|
//! | any | reads of what nobody wrote, or twice; a transaction that misses its own write |
//! | [read uncommitted](Level::ReadUncommitted) | G0: cycles of writes |
//! | [read committed](Level::ReadCommitted) | G1a: aborted reads; G1b: intermediate reads; lists in two orders; G1c: cycles of writes and reads |
//! | [snapshot isolation](Level::SnapshotIsolation) | non-repeatable reads; lost updates; G-single: cycles with one anti-dependency; G-nonadjacent: with several, no two in a row |
//! | [strong snapshot isolation](Level::StrongSnapshotIsolation) | these cycles with real time |
//! | [serializable](Level::Serializable), over snapshot isolation | G2-item: cycles with anti-dependencies in a row |
//! | [strictly serializable](Level::StrictSerializable) | all these cycles with real time |
//!
//! An anti-dependency (rw) leads from a transaction that read a version to the one that wrote the next.
//!
//! # Guarantees
//! * **No false accusation**, if the history [obeys its rules](History#what-a-history-must-obey), by the
//!   assumption above. Transactions of unknown outcome count only if one that has committed saw a write
//!   of theirs; they have no end in real time. Equal stamps are overlap, also within a thread.
//! * **No false acquittal** where the order of versions is known: `Ok` means that the history is
//!   explained (tested by brute force on small ones). [`Checked`] says how much of it was known.
//! * Aborted transactions are judged by no level; what they read is ignored.
//! * **Predicates** are not modelled. Phantoms show as reads of absent keys, or of a list that stands
//!   for the result of a query.
//! * In each knot of transactions that must all come before each other, the gravest cycles are reported
//!   (no more than 16), the shortest that some effort finds, not all. Cycles with anti-dependencies are
//!   left out where a lost update explains the knot.
//!
//! Departures from Elle: a transaction that misses its own write breaks every level, since Adya's
//! histories do not allow it (Elle: from snapshot isolation on). Orders of a thread's transactions
//! are part of real time, and no level of their own. A list that a transaction reads after an append of its
//! own shows no order at read committed, since the append may not have its place yet; and lists in two
//! orders show no cycles of writes.
//!
//! # Cost
//! Time in proportion to the history and the lists in it, but for `threads · transactions` edges of
//! real time, and for the search for short cycles in what is wrong.
//!
//! # How it works
//! | file | idea |
//! |---|---|
//! | `operation`, `recorder`, `plan` | histories, where they come from |
//! | `index` | which write each value comes from; which transactions count |
//! | `versions` | the versions of each key, and their order |
//! | `reads` | what is wrong with reads by themselves |
//! | `graph` | the direct serialization graph, real time reduced |
//! | `cycles` | strongly connected components, and the gravest cycle in each |
//! | `level` | kinds of anomalies, and the levels that forbid them |
//! | `anomaly`, `explain`, `svg` | the pictures |
//! | `edn` | files for Elle and from it |
//!
//! Sources: Adya, "Weak Consistency" (thesis, MIT 1999), and Adya, Liskov and O'Neil, "Generalized
//! Isolation Level Definitions" (ICDE 2000), for graphs, G0 to G2 and the levels PL-1 to PL-3;
//! Cerone and Gotsman, "Analysing Snapshot Isolation" (PODC 2016), for snapshot isolation as a
//! property of cycles; Kingsbury and Alvaro, "Elle: Inferring Isolation Anomalies from Experimental
//! Observations" (VLDB 2020), for lists, the inference of versions, G-nonadjacent, and the reduced
//! order of real time.

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
/// ```
/// use corelay_history::Call;
/// use corelay_history::transactions::{History, Kind, Level, Operation::*, Outcome::*, check};
///
/// let mut history = History::new();
/// history.push(0, Call::returned(vec![Append("log", 1)], 0..=3, Committed));
/// history.push(1, Call::returned(vec![ReadList("log", vec![])], 4..=5, Committed));
/// check(&history, Level::Serializable).unwrap(); // the reader might come first
/// let anomalies = check(&history, Level::StrictSerializable).unwrap_err();
/// assert_eq!(anomalies.worst().kind(), Kind::GSingleRealtime); // but it began later
/// ```
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
        ww: graph.count(Dependency::Ww) + graph.count(Dependency::WwRealTime),
        wr: graph.count(Dependency::Wr),
        rw: graph.count(Dependency::Rw) + graph.count(Dependency::RwRealTime),
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

/// The evidence of a check: counts of transactions and of their dependencies. A history whose
/// transactions hardly depend on each other shows little.
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
