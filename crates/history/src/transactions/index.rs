//! The operations of a history by number: which write each value that was read comes from, and
//! which transactions count.

use super::operation::{History, Operation, Outcome};
use crate::history::Call;
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use std::error::Error;
use std::fmt::{self, Debug};
use std::hash::Hash;
use std::ops::Range;

/// A transaction's call, as a history has it.
pub(super) type Transaction<K> = Call<Vec<Operation<K>>, Outcome>;

/// A value that no transaction wrote.
pub(super) const GARBAGE: u32 = u32::MAX;

/// A history, resolved.
pub(super) struct Index<'a, K> {
    pub(super) nodes: Vec<Node<'a, K>>,
    /// The keys, by their numbers; whether they are lists.
    pub(super) keys: Vec<(&'a K, bool)>,
    pub(super) writes: Vec<Write>,
    /// The operations of all nodes, one node's after the other's.
    ops: Vec<Op>,
    /// The writes that operations refer to.
    ids: Vec<u32>,
}

/// A transaction.
pub(super) struct Node<'a, K> {
    pub(super) thread: usize,
    /// The transaction's number in its thread, from 0.
    pub(super) number: usize,
    pub(super) call: &'a Transaction<K>,
    /// Whether it has committed, by its outcome or because one that has committed saw a write of it.
    pub(super) committed: bool,
    ops: Range<usize>,
}

/// A write of a register or an append to a list.
pub(super) struct Write {
    pub(super) node: u32,
    pub(super) key: u32,
    pub(super) value: u64,
    /// Whether it is its transaction's last one on the key.
    pub(super) last: bool,
}

/// An operation.
pub(super) struct Op {
    pub(super) key: u32,
    pub(super) is_read: bool,
    ids: Range<usize>,
}

/// The reason why a history cannot be checked: a transaction that does not obey the
/// [rules](super::History#what-a-history-must-obey).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unusable {
    /// The thread.
    pub thread: usize,
    /// The number of the transaction among those of the thread, from 0.
    pub transaction: usize,
    what: String,
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, thread) = (self.transaction + 1, self.thread);
        write!(f, "transaction {number} of thread {thread}: {}", self.what)
    }
}

impl Error for Unusable {}

impl<K> Node<'_, K> {
    /// The place among the commits of its store.
    pub(super) fn place(&self) -> Option<u64> {
        match self.call.output() {
            Some(Outcome::CommittedAt(place)) => Some(*place),
            _ => None,
        }
    }
}

impl<'a, K: Eq + Hash + Debug> Index<'a, K> {
    pub(super) fn new(history: &'a History<K>) -> Result<Self, Unusable> {
        let mut index = Self {
            nodes: Vec::with_capacity(history.len()),
            keys: Vec::new(),
            writes: Vec::new(),
            ops: Vec::new(),
            ids: Vec::new(),
        };
        let mut numbers: FxHashMap<&K, u32> = FxHashMap::default();
        let mut values: FxHashMap<(u32, u64), u32> = FxHashMap::default();
        // A transaction's last write of each key.
        let mut last: FxHashMap<u32, u32> = FxHashMap::default();
        for thread in 0..history.threads() {
            for (number, call) in history.calls_of(thread).iter().enumerate() {
                let node = index.nodes.len();
                let unusable = |what| Unusable {
                    thread,
                    transaction: number,
                    what,
                };
                let first = index.ops.len();
                last.clear();
                for operation in call.operation() {
                    let key = *numbers.entry(operation.key()).or_insert_with(|| {
                        index.keys.push((operation.key(), operation.is_list()));
                        index.keys.len() as u32 - 1
                    });
                    if index.keys[key as usize].1 != operation.is_list() {
                        return Err(unusable(format!(
                            "key {:?} is used as a register and as a list; use two keys",
                            operation.key()
                        )));
                    }
                    let from = index.ids.len();
                    if let Some(value) = operation.written() {
                        let id = index.writes.len() as u32;
                        match values.entry((key, value)) {
                            Entry::Vacant(free) => *free.insert(id),
                            Entry::Occupied(_) => {
                                return Err(unusable(format!(
                                    "value {value} is written to key {:?} a second time; give each \
                                     write of a key a value of its own",
                                    operation.key()
                                )));
                            }
                        };
                        if let Some(earlier) = last.insert(key, id) {
                            index.writes[earlier as usize].last = false;
                        }
                        index.writes.push(Write {
                            node: node as u32,
                            key,
                            value,
                            last: true,
                        });
                        index.ids.push(id);
                    }
                    // Reads follow when all writes are known.
                    index.ops.push(Op {
                        key,
                        is_read: operation.written().is_none(),
                        ids: from..index.ids.len(),
                    });
                }
                index.nodes.push(Node {
                    thread,
                    number,
                    call,
                    committed: matches!(
                        call.output(),
                        Some(Outcome::Committed | Outcome::CommittedAt(_))
                    ),
                    ops: first..index.ops.len(),
                });
            }
        }
        let operations = history.calls().flat_map(|(_, call)| call.operation());
        for (op, operation) in index.ops.iter_mut().zip(operations) {
            if op.is_read {
                let from = index.ids.len();
                let seen = operation.seen().iter();
                index.ids.extend(seen.map(|value| {
                    let write = values.get(&(op.key, *value));
                    write.copied().unwrap_or(GARBAGE)
                }));
                op.ids = from..index.ids.len();
            }
        }
        index.find_committed();
        Ok(index)
    }

    /// Counts as committed what a committed transaction has seen, unless it has aborted.
    fn find_committed(&mut self) {
        let mut new: Vec<u32> = (0..self.nodes.len() as u32)
            .filter(|node| self.nodes[*node as usize].committed)
            .collect();
        while let Some(node) = new.pop() {
            for op in self.nodes[node as usize].ops.clone() {
                for id in self.ops[op].ids.clone() {
                    let Some(write) = self.writes.get(self.ids[id] as usize) else {
                        continue;
                    };
                    let writer = &mut self.nodes[write.node as usize];
                    if !writer.committed && writer.call.output().is_none() {
                        writer.committed = true;
                        new.push(write.node);
                    }
                }
            }
        }
    }
}

impl<'a, K> Index<'a, K> {
    /// The operations of a node, each with the writes that it has seen or the one that it is.
    pub(super) fn ops(&self, node: usize) -> impl Iterator<Item = (&Op, &[u32])> {
        let ops = &self.ops[self.nodes[node].ops.clone()];
        ops.iter().map(|op| (op, &self.ids[op.ids.clone()]))
    }

    /// The nodes that have committed.
    pub(super) fn committed(&self) -> impl Iterator<Item = usize> {
        (0..self.nodes.len()).filter(|node| self.nodes[*node].committed)
    }

    /// The write of that number, if its transaction has committed.
    pub(super) fn effective(&self, write: u32) -> Option<&Write> {
        let write = self.writes.get(write as usize)?;
        self.nodes[write.node as usize].committed.then_some(write)
    }
}
