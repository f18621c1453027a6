//! The direct serialization graph: which transaction must come before which, and why.

use super::index::Index;
use super::versions::{INITIAL, Versions};
use std::fmt;

/// The reason why a transaction comes before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dependency {
    /// It wrote a version right before the other's.
    Ww,
    /// It wrote what the other read.
    Wr,
    /// It read a version right before the other's: an anti-dependency.
    Rw,
    /// It wrote a version that had been written or read before somebody began that wrote or read the
    /// other's.
    WwRealTime,
    /// An anti-dependency by real time: it read a version that had been written or read before somebody
    /// began that wrote or read the other's.
    RwRealTime,
    /// It ended before the other began.
    RealTime,
}

impl Dependency {
    /// Whether it is an anti-dependency.
    pub(super) fn is_anti(self) -> bool {
        matches!(self, Self::Rw | Self::RwRealTime)
    }
}

impl fmt::Display for Dependency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ww | Self::WwRealTime => "ww",
            Self::Wr => "wr",
            Self::Rw | Self::RwRealTime => "rw",
            Self::RealTime => "real time",
        })
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Edge {
    pub(super) to: u32,
    pub(super) kind: Dependency,
    /// The version that was read, or overwritten. Meaningless for real time.
    pub(super) version: u32,
}

/// A graph of transactions. Nodes from `transactions` on are *relays*: an edge into one and an edge
/// out of it are one anti-dependency. They stand between the readers of a version and those that
/// overwrote it, where both are many.
pub(super) struct Graph {
    pub(super) transactions: usize,
    /// The edges of node `n` are those from `starts[n]` to `starts[n + 1]`.
    starts: Vec<usize>,
    edges: Vec<Edge>,
}

impl Graph {
    /// `seen` are versions with their readers, `order` is that of [`Versions::order`].
    pub(super) fn new<K>(
        index: &Index<'_, K>,
        versions: &Versions<'_>,
        mut seen: Vec<(u32, u32)>,
        mut order: Vec<(u32, u32)>,
        real_time: bool,
    ) -> Self {
        let mut links = Links {
            edges: Vec::new(),
            nodes: index.nodes.len(),
        };
        let writer = |version: u32| versions.all[version as usize].writer;
        seen.sort_unstable();
        seen.dedup();
        for &(version, reader) in &seen {
            links.add(writer(version), reader, Dependency::Wr, version);
        }
        let readers = |version: u32| -> Vec<u32> {
            let from = seen.partition_point(|(seen, _)| *seen < version);
            let to = seen.partition_point(|(seen, _)| *seen <= version);
            seen[from..to].iter().map(|(_, reader)| *reader).collect()
        };
        order.sort_unstable();
        for following in order.chunk_by(|a, b| a.0 == b.0) {
            let version = following[0].0;
            let writers: Vec<u32> = following.iter().map(|(_, later)| writer(*later)).collect();
            for &later in &writers {
                links.add(writer(version), later, Dependency::Ww, version);
            }
            links.add_all(&readers(version), &writers, Dependency::Rw, version);
        }
        if real_time {
            let committed = index.committed().map(|node| {
                let call = index.nodes[node].call;
                (0, call.invoked(), call.ended(), node as u32)
            });
            for (before, after) in in_time(committed.collect()) {
                links.add(before, after, Dependency::RealTime, 0);
            }
            // A version of a register is known when its writer or a reader has ended. It is the newest
            // at some time after the last of them has begun, so it comes after all that were known then.
            let registers = (index.keys.len()..versions.all.len()).filter_map(|version| {
                let it = &versions.all[version];
                let call = |node: u32| index.nodes[node as usize].call;
                let users = readers(version as u32).into_iter().chain([it.writer]);
                let known = users.clone().filter_map(|node| call(node).ended()).min();
                let begun = users.map(|node| call(node).invoked()).max()?;
                let is_list = index.keys[it.key as usize].1;
                (!is_list).then_some((it.key, begun, known, version as u32))
            });
            let mut order = in_time(registers.collect());
            order.sort_unstable();
            for following in order.chunk_by(|a, b| a.0 == b.0) {
                let version = following[0].0;
                // One that is used late may be known before its last user begins.
                let later = following.iter().filter(|(_, later)| *later != version);
                let writers: Vec<u32> = later.map(|(_, later)| writer(*later)).collect();
                for &later in &writers {
                    links.add(writer(version), later, Dependency::WwRealTime, version);
                }
                links.add_all(&readers(version), &writers, Dependency::RwRealTime, version);
            }
        }
        Self::build(index.nodes.len(), links.nodes, links.edges)
    }

    fn build(transactions: usize, nodes: usize, mut edges: Vec<(u32, Edge)>) -> Self {
        edges.sort_by_key(|(from, _)| *from);
        let mut starts = vec![0; nodes + 1];
        for (from, _) in &edges {
            starts[*from as usize + 1] += 1;
        }
        for node in 0..nodes {
            starts[node + 1] += starts[node];
        }
        Self {
            transactions,
            starts,
            edges: edges.into_iter().map(|(_, edge)| edge).collect(),
        }
    }

    /// The number of nodes, relays included.
    pub(super) fn nodes(&self) -> usize {
        self.starts.len() - 1
    }

    pub(super) fn is_relay(&self, node: u32) -> bool {
        node as usize >= self.transactions
    }

    pub(super) fn edges(&self, node: u32) -> &[Edge] {
        &self.edges[self.starts[node as usize]..self.starts[node as usize + 1]]
    }

    /// The number of edges of a kind, with each that goes through a relay counted as two.
    pub(super) fn count(&self, kind: Dependency) -> usize {
        self.edges.iter().filter(|edge| edge.kind == kind).count()
    }

    /// The graph of some nodes, transactions first; node `n` is `nodes[n]` here. `local` has room
    /// for all nodes of this graph.
    pub(super) fn part(&self, nodes: &[u32], local: &mut [u32]) -> Self {
        for (n, node) in nodes.iter().enumerate() {
            local[*node as usize] = n as u32;
        }
        let mut edges = Vec::new();
        for (n, node) in nodes.iter().enumerate() {
            for edge in self.edges(*node) {
                let to = local[edge.to as usize];
                if nodes.get(to as usize) == Some(&edge.to) {
                    edges.push((n as u32, Edge { to, ..*edge }));
                }
            }
        }
        let transactions = nodes.partition_point(|node| !self.is_relay(*node));
        Self::build(transactions, nodes.len(), edges)
    }
}

struct Links {
    edges: Vec<(u32, Edge)>,
    nodes: usize,
}

impl Links {
    fn add(&mut self, from: u32, to: u32, kind: Dependency, version: u32) {
        if from != to && from != INITIAL {
            self.edges.push((from, Edge { to, kind, version }));
        }
    }

    /// Anti-dependencies of each reader on each writer. If both are many, relays stand for them.
    fn add_all(&mut self, readers: &[u32], writers: &[u32], kind: Dependency, version: u32) {
        let add = |links: &mut Self, from, to| links.add(from, to, kind, version);
        if readers.len() * writers.len() <= 4 * (readers.len() + writers.len()) {
            for reader in readers {
                for writer in writers {
                    add(self, *reader, *writer);
                }
            }
            return;
        }
        // Those that do both must not reach themselves: they reach each other around a ring.
        let mut sorted = writers.to_vec();
        sorted.sort_unstable();
        let does_both = |reader: &u32| sorted.binary_search(reader).is_ok();
        let both: Vec<u32> = readers.iter().copied().filter(does_both).collect();
        for (n, reader) in both.iter().enumerate() {
            add(self, *reader, both[(n + 1) % both.len()]);
        }
        let (only_read, only_wrote) = (self.nodes as u32, self.nodes as u32 + 1);
        self.nodes += 2;
        for reader in readers {
            let relay = if does_both(reader) {
                only_wrote
            } else {
                only_read
            };
            add(self, *reader, relay);
        }
        for writer in writers {
            add(self, only_read, *writer);
            if both.binary_search(writer).is_err() {
                add(self, only_wrote, *writer);
            }
        }
    }
}

/// Pairs of things of one group, the first of which ended before the second began. Left out are those
/// that follow from others: if `a` ended before `b` began, and `b` before `c`, then `a` and `c` (as
/// Elle does). Each thing is its group, its begin, its end if it has one, and its number. It may end
/// before it begins, and then precedes itself.
fn in_time(mut things: Vec<(u32, u64, Option<u64>, u32)>) -> Vec<(u32, u32)> {
    let mut pairs = Vec::new();
    things.sort_unstable_by_key(|thing| thing.0);
    for group in things.chunk_by(|a, b| a.0 == b.0) {
        let begins = group.iter().map(|thing| (thing.1, false, thing));
        let ends = group
            .iter()
            .filter_map(|thing| Some((thing.2?, true, thing)));
        // At equal stamps things begin first: they overlap.
        let mut moments: Vec<_> = begins.chain(ends).collect();
        moments.sort_unstable();
        // Those that have ended, but for those that ended before another of them began.
        let mut ended: Vec<(u64, u32)> = Vec::new();
        for (at, is_end, &(_, began, end, number)) in moments {
            // What ended before this one began follows from what this one precedes, as soon as both
            // of its moments are there.
            let is_over = if is_end {
                began <= at
            } else {
                end.is_some_and(|end| end < at)
            };
            if !is_end {
                pairs.extend(ended.iter().map(|(_, before)| (*before, number)));
            }
            if is_over {
                ended.retain(|(end, other)| *end >= began || *other == number);
            }
            if is_end {
                ended.push((at, number));
            }
        }
    }
    pairs
}
