//! The steps of a cycle in words.

use super::anomaly::{Step, shorten};
use super::cycles::Cycle;
use super::graph::{Dependency, Edge};
use super::index::Index;
use super::versions::Versions;
use std::fmt::Debug;

/// The steps of a cycle whose transactions are called T1, T2 and so on.
pub(super) fn steps<K: Debug>(
    index: &Index<'_, K>,
    versions: &Versions<'_>,
    cycle: &Cycle,
) -> Vec<Step> {
    let steps = cycle.iter().enumerate();
    steps
        .map(|(from, &(node, edge))| {
            let to = (from + 1) % cycle.len();
            let key = versions.all.get(edge.version as usize).map(|it| it.key);
            let key = key.filter(|_| edge.kind != Dependency::RealTime);
            Step {
                from,
                to,
                dependency: edge.kind,
                key: key.map(|key| format!("{:?}", index.keys[key as usize].0)),
                why: why(index, versions, node as usize, edge, [from + 1, to + 1]),
            }
        })
        .collect()
}

fn why<K: Debug>(
    index: &Index<'_, K>,
    versions: &Versions<'_>,
    node: usize,
    edge: Edge,
    [from, to]: [usize; 2],
) -> String {
    let after = edge.to as usize;
    let key = || versions.all[edge.version as usize].key;
    match edge.kind {
        Dependency::RealTime => format!("T{from} ended before T{to} began."),
        Dependency::Wr => format!(
            "T{to} did `{}`, which T{from} wrote by `{}`.",
            read(index, versions, after, edge.version),
            write(index, node, key())
        ),
        Dependency::Ww => format!(
            "T{to}'s `{}` comes after T{from}'s `{}`.",
            write(index, after, key()),
            write(index, node, key())
        ),
        Dependency::WwRealTime => format!(
            "T{from}'s `{}` was there before somebody began that knew T{to}'s `{}`.",
            write(index, node, key()),
            write(index, after, key())
        ),
        Dependency::Rw => format!(
            "T{from} did `{}`, which is before T{to}'s `{}`.",
            read(index, versions, node, edge.version),
            write(index, after, key())
        ),
        Dependency::RwRealTime => format!(
            "T{from} did `{}`, which was there before somebody began that knew T{to}'s `{}`.",
            read(index, versions, node, edge.version),
            write(index, after, key())
        ),
    }
}

/// The operation by which a transaction has read a version.
fn read<K: Debug>(
    index: &Index<'_, K>,
    versions: &Versions<'_>,
    node: usize,
    version: u32,
) -> String {
    let mut ops = index.ops(node).zip(index.nodes[node].call.operation());
    let read = ops.find(|((op, ids), _)| {
        let key = versions.all[version as usize].key;
        op.is_read && op.key == key && versions.seen(index, node, op, ids) == Some(version)
    });
    shorten(read.expect("it has read the version").1)
}

/// The last operation by which a transaction has written a key.
fn write<K: Debug>(index: &Index<'_, K>, node: usize, key: u32) -> String {
    let ops = index.ops(node).zip(index.nodes[node].call.operation());
    let writes = ops.filter(|((op, _), _)| !op.is_read && op.key == key);
    shorten(writes.last().expect("it has written the key").1)
}
