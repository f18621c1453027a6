//! Reads, transaction by transaction: what is wrong with them by themselves, and which version each
//! has seen.

use super::anomaly::Found;
use super::index::{GARBAGE, Index};
use super::level::Kind;
use super::versions::{Versions, others};
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use std::fmt::Debug;

/// The versions that committed transactions have seen.
#[derive(Default)]
pub(super) struct Reads {
    /// Versions with those that read them.
    pub(super) seen: Vec<(u32, u32)>,
    /// Versions that were read, with those that their readers then wrote.
    pub(super) updates: Vec<(u32, u32)>,
    /// Keys whose lists were read in several orders.
    pub(super) torn: Vec<bool>,
}

/// The things that a transaction knows of a key.
#[derive(Default)]
struct Known<'i> {
    /// The version that it has read, and the writes that it saw.
    read: Option<(u32, &'i [u32])>,
    /// The transaction's own writes; of a register the last one.
    own: Vec<u32>,
}

/// Reads all reads of committed transactions.
pub(super) fn scan<K: Debug + Clone>(
    index: &Index<'_, K>,
    versions: &Versions<'_>,
    found: &mut Found<'_, K>,
) -> Reads {
    let mut reads = Reads {
        torn: vec![false; index.keys.len()],
        ..Reads::default()
    };
    let mut known: FxHashMap<u32, Known<'_>> = FxHashMap::default();
    // For each write, the number of the last read that has seen it.
    let mut last_seen = vec![0u32; index.writes.len()];
    let mut number = 0;
    for node in index.committed() {
        known.clear();
        for (n, (op, ids)) in index.ops(node).enumerate() {
            let (_, is_list) = index.keys[op.key as usize];
            let known = known.entry(op.key).or_default();
            if !op.is_read {
                if let (Some((read, _)), true) = (known.read, known.own.is_empty()) {
                    reads.updates.push((read, versions.of_write(ids[0])));
                }
                if !is_list {
                    known.own.clear();
                }
                known.own.push(ids[0]);
                continue;
            }
            number += 1;
            let operation = &index.nodes[node].call.operation()[n];
            let theirs = others(index, node, ids);
            if ids[theirs.len()..] != known.own[..] {
                found.add(Kind::Internal, &[node], || {
                    match known
                        .own
                        .last()
                        .map(|write| index.writes[*write as usize].value)
                    {
                        Some(value) => format!(
                            "T1 does `{operation}`, though it had itself written {value} before."
                        ),
                        None => format!("T1 does `{operation}` before it has written that."),
                    }
                });
                continue;
            }
            if !is_list && !known.own.is_empty() {
                continue;
            }
            if let Some((_, before)) = known.read
                && before != theirs
            {
                found.add(Kind::NonRepeatableRead, &[node], || {
                    format!("T1 does `{operation}`, though it had read another value before.")
                });
            }
            check(index, node, n, theirs, &mut last_seen, number, found);
            if let Some((longest_reader, longest)) = versions.longest(op.key)
                && !longest.starts_with(theirs)
            {
                reads.torn[op.key as usize] = true;
                found.add(Kind::IncompatibleOrder, &[longest_reader, node], || {
                    format!("T2 does `{operation}`, which T1's longer list does not begin with.")
                });
            }
            if let Some(version) = versions.seen(index, node, op, ids) {
                reads.seen.push((version, node as u32));
                known.read = Some((version, theirs));
            }
        }
    }
    reads
}

/// Looks at where each value of a read comes from.
fn check<K: Debug + Clone>(
    index: &Index<'_, K>,
    node: usize,
    op: usize,
    ids: &[u32],
    last_seen: &mut [u32],
    number: u32,
    found: &mut Found<'_, K>,
) {
    let operation = &index.nodes[node].call.operation()[op];
    let mut aborted = None;
    for (id, value) in ids.iter().zip(operation.seen()) {
        if *id == GARBAGE {
            found.add(Kind::Garbage, &[node], || {
                format!("T1 does `{operation}`, and nobody wrote {value}.")
            });
            continue;
        }
        if std::mem::replace(&mut last_seen[*id as usize], number) == number {
            found.add(Kind::Duplicate, &[node], || {
                format!("T1 does `{operation}`, where {value} occurs twice.")
            });
        }
        if index.effective(*id).is_none() {
            aborted = aborted.or(Some((*id, value)));
        }
    }
    if let Some((id, value)) = aborted {
        let writer = index.writes[id as usize].node as usize;
        found.add(Kind::G1a, &[writer, node], || {
            format!("T2 does `{operation}`; {value} was written by T1, which has aborted.")
        });
    }
    let last = ids.last().filter(|id| index.effective(**id).is_some());
    if let Some(write) = last.map(|id| &index.writes[*id as usize])
        && !write.last
    {
        found.add(Kind::G1b, &[write.node as usize, node], || {
            format!("T2 does `{operation}`, which T1 had not finished writing.")
        });
    }
}

/// Pairs of transactions that read the same version of a key, and both wrote the key.
pub(super) fn lost_updates<K: Debug + Clone>(
    index: &Index<'_, K>,
    versions: &Versions<'_>,
    updates: &[(u32, u32)],
    found: &mut Found<'_, K>,
) -> Vec<(u32, u32)> {
    let mut first: FxHashMap<u32, u32> = FxHashMap::default();
    let mut pairs = Vec::new();
    for &(read, wrote) in updates {
        let writer = versions.all[wrote as usize].writer;
        match first.entry(read) {
            Entry::Vacant(free) => drop(free.insert(writer)),
            Entry::Occupied(other) => {
                let other = *other.get();
                found.add(Kind::LostUpdate, &[other as usize, writer as usize], || {
                    let key = index.keys[versions.all[read as usize].key as usize].0;
                    format!("T1 and T2 read the same version of {key:?}, and both wrote it.")
                });
                pairs.push((other, writer));
            }
        }
    }
    pairs
}
