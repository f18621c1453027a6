//! Isolation levels, and the anomalies that each forbids.

use super::graph::Dependency::{self, RealTime, Rw, RwRealTime, Wr, Ww, WwRealTime};
use std::fmt;

/// An isolation level: what a history of a store that keeps it must be free of.
///
/// ```
/// use corelay_history::transactions::{Kind, Level};
///
/// assert!(Level::Serializable.forbids(Kind::G2Item)); // write skew
/// assert!(!Level::SnapshotIsolation.forbids(Kind::G2Item));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Level {
    /// PL-1 of Adya: forbids cycles of writes.
    ReadUncommitted,
    /// PL-2 of Adya: forbids reads of aborted and intermediate data as well, and circular flow of
    /// information.
    ReadCommitted,
    /// Generalized snapshot isolation: each transaction reads a snapshot of some time before, and
    /// of two concurrent ones that write the same key only one commits. That forbids every cycle in
    /// which no two anti-dependencies are adjacent, and allows the others (Cerone and Gotsman).
    SnapshotIsolation,
    /// Snapshot isolation where the snapshot has everything that committed before the transaction
    /// began.
    StrongSnapshotIsolation,
    /// PL-3 of Adya, on items: there is a serial order that explains all reads.
    Serializable,
    /// There is a serial order that explains all reads, and keeps real time.
    StrictSerializable,
}

impl Level {
    /// All levels. Each forbids what any before it forbids, but for
    /// [`Serializable`](Self::Serializable), which knows no real time.
    pub const ALL: [Self; 6] = [
        Self::ReadUncommitted,
        Self::ReadCommitted,
        Self::SnapshotIsolation,
        Self::StrongSnapshotIsolation,
        Self::Serializable,
        Self::StrictSerializable,
    ];

    /// Whether a history with such an anomaly violates the level.
    pub fn forbids(self, kind: Kind) -> bool {
        let weakest = kind.weakest();
        match (self, weakest) {
            (Self::Serializable, Self::StrongSnapshotIsolation) => false,
            _ => self as u8 >= weakest as u8,
        }
    }

    /// Searches for cycles that the level forbids, from the gravest on.
    pub(super) fn searches(self) -> Vec<&'static Search> {
        let searches = SEARCHES.iter();
        searches.filter(|s| self.forbids(s.finds)).collect()
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReadUncommitted => "read uncommitted",
            Self::ReadCommitted => "read committed",
            Self::SnapshotIsolation => "snapshot isolation",
            Self::StrongSnapshotIsolation => "strong snapshot isolation",
            Self::Serializable => "serializable",
            Self::StrictSerializable => "strictly serializable",
        })
    }
}

/// A kind of anomaly. The order is that of gravity: the first is the worst.
///
/// The names G0 to G2 are Adya's. With `Realtime`, the cycle needs an edge of real time: a
/// transaction that ended before another began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Kind {
    /// A read of a value that no transaction wrote.
    Garbage,
    /// A list in which a value occurs twice.
    Duplicate,
    /// A transaction does not see its own last write, or sees one that it has not made yet.
    Internal,
    /// A cycle of writes ("dirty write").
    G0,
    /// A read of what an aborted transaction wrote ("dirty read").
    G1a,
    /// A read of a value that its writer then overwrote.
    G1b,
    /// Two reads of a list neither of which continues the other.
    IncompatibleOrder,
    /// A cycle of writes and reads: circular flow of information.
    G1c,
    /// Two reads of one key in one transaction that differ, though it wrote nothing in between.
    NonRepeatableRead,
    /// Two transactions read the same version of a key, and both wrote the key.
    LostUpdate,
    /// A cycle with exactly one anti-dependency ("read skew", a missed write).
    GSingle,
    /// A cycle with several anti-dependencies, no two of them adjacent ("long fork").
    GNonadjacent,
    /// A cycle with adjacent anti-dependencies on items ("write skew").
    G2Item,
    /// A cycle of writes and real time.
    G0Realtime,
    /// A cycle of writes, reads and real time: a read from the future.
    G1cRealtime,
    /// A cycle with one anti-dependency, and real time: a stale read.
    GSingleRealtime,
    /// A cycle with several anti-dependencies that are not adjacent, and real time.
    GNonadjacentRealtime,
    /// A cycle with adjacent anti-dependencies, and real time.
    G2ItemRealtime,
}

impl Kind {
    /// The weakest level that forbids the anomaly.
    fn weakest(self) -> Level {
        match self {
            Self::Garbage | Self::Duplicate | Self::Internal | Self::G0 => Level::ReadUncommitted,
            Self::G1a | Self::G1b | Self::IncompatibleOrder | Self::G1c => Level::ReadCommitted,
            Self::NonRepeatableRead | Self::LostUpdate | Self::GSingle | Self::GNonadjacent => {
                Level::SnapshotIsolation
            }
            Self::G0Realtime
            | Self::G1cRealtime
            | Self::GSingleRealtime
            | Self::GNonadjacentRealtime => Level::StrongSnapshotIsolation,
            Self::G2Item => Level::Serializable,
            Self::G2ItemRealtime => Level::StrictSerializable,
        }
    }

    /// The kind of a cycle with these edges.
    pub(super) fn of_cycle(edges: &[Dependency]) -> Self {
        let has = |kind| edges.contains(&kind);
        let anti = edges.iter().filter(|kind| kind.is_anti()).count();
        let next = edges.iter().cycle().skip(1);
        let mut pairs = edges.iter().zip(next);
        let adjacent = pairs.any(|(a, b)| a.is_anti() && b.is_anti());
        let is_timed = has(RealTime) || has(RwRealTime) || has(WwRealTime);
        match (anti, is_timed) {
            (0, false) if has(Wr) => Self::G1c,
            (0, false) => Self::G0,
            (1, false) => Self::GSingle,
            (_, false) if adjacent => Self::G2Item,
            (_, false) => Self::GNonadjacent,
            // Somebody has read what was replaced.
            (0, true) if has(WwRealTime) => Self::GSingleRealtime,
            (0, true) if has(Wr) => Self::G1cRealtime,
            (0, true) => Self::G0Realtime,
            (1, true) => Self::GSingleRealtime,
            (_, true) if adjacent => Self::G2ItemRealtime,
            (_, true) => Self::GNonadjacentRealtime,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Garbage => "garbage read",
            Self::Duplicate => "duplicate value",
            Self::Internal => "internal inconsistency",
            Self::G0 => "G0 (dirty write)",
            Self::G1a => "G1a (aborted read)",
            Self::G1b => "G1b (intermediate read)",
            Self::IncompatibleOrder => "incompatible orders",
            Self::G1c => "G1c (circular information flow)",
            Self::NonRepeatableRead => "non-repeatable read",
            Self::LostUpdate => "lost update",
            Self::GSingle => "G-single (read skew)",
            Self::GNonadjacent => "G-nonadjacent",
            Self::G2Item => "G2-item (write skew)",
            Self::G0Realtime => "G0-realtime",
            Self::G1cRealtime => "G1c-realtime",
            Self::GSingleRealtime => "G-single-realtime (stale read)",
            Self::GNonadjacentRealtime => "G-nonadjacent-realtime",
            Self::G2ItemRealtime => "G2-item-realtime",
        })
    }
}

/// The cycles that one search finds: among edges of some kinds, and perhaps only those without
/// adjacent anti-dependencies.
pub(super) struct Search {
    pub(super) edges: &'static [Dependency],
    pub(super) spaced: bool,
    /// The least grave kind that it finds.
    finds: Kind,
}

const fn search(edges: &'static [Dependency], spaced: bool, finds: Kind) -> Search {
    Search {
        edges,
        spaced,
        finds,
    }
}

const ANY: &[Dependency] = &[Ww, Wr, Rw, WwRealTime, RwRealTime, RealTime];

/// In this order, since a search also finds what those before it do.
const SEARCHES: [Search; 8] = [
    search(&[Ww], false, Kind::G0),
    search(&[Ww, Wr], false, Kind::G1c),
    search(&[Ww, Wr, Rw], true, Kind::GNonadjacent),
    search(&[Ww, Wr, Rw], false, Kind::G2Item),
    search(&[Ww, RealTime], false, Kind::G0Realtime),
    search(&[Ww, Wr, RealTime], false, Kind::G1cRealtime),
    search(ANY, true, Kind::GNonadjacentRealtime),
    search(ANY, false, Kind::G2ItemRealtime),
];
