//! Chains of nodes in ascending order of their keys: the list, and the buckets of the hash table.

use super::Client;
use super::memory::Plain;

/// The number of a node, or [`END`].
pub(super) type Link = u32;

pub(super) const END: Link = Link::MAX;

/// Nodes of chains. Those that are in none are linked too, and the one that was removed last is
/// the next to be used.
pub(super) struct Nodes {
    nodes: Box<[Node]>,
    free: Link,
}

/// A node has a line of its own.
#[derive(Default)]
#[repr(align(64))]
struct Node {
    key: Plain<u32>,
    next: Plain<Link>,
}

/// A request for a set of keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    pub(super) key: u32,
    pub(super) action: Action,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Find,
    Insert,
    Remove,
}

impl Ask {
    /// Chooses a key, and looks it up (70 %), inserts it (15 %) or removes it (15 %).
    pub(super) fn choose(client: &mut Client) -> Self {
        let action = match client.below(100) {
            0..15 => Action::Insert,
            15..30 => Action::Remove,
            _ => Action::Find,
        };
        Self {
            key: client.below(client.room()),
            action,
        }
    }

    /// The requests that make a set of `size` keys, every other one.
    pub(super) fn fill(size: u32) -> impl Iterator<Item = Self> {
        // From the last to the first: each is inserted at the beginning of its chain.
        (0..size).rev().map(|nth| Self {
            key: 2 * nth,
            action: Action::Insert,
        })
    }
}

impl Nodes {
    /// Free nodes: one for each key.
    pub(super) fn new(len: u32) -> Self {
        let mut nodes = Self {
            nodes: (0..len).map(|_| Node::default()).collect(),
            free: END,
        };
        (0..len).rev().for_each(|at| _ = nodes.put(at));
        nodes
    }

    fn node(&self, at: Link) -> &Node {
        &self.nodes[at as usize]
    }

    /// Serves `ask` in the chain that begins with node `first`. Returns whether the key was there,
    /// and the chain's first node from now on.
    pub(super) fn serve(&mut self, first: Link, ask: Ask) -> (bool, Link) {
        let (mut before, mut at) = (END, first);
        let mut found = None;
        while at != END {
            let node = self.node(at);
            let key = node.key.get();
            if key >= ask.key {
                found = Some(key);
                break;
            }
            (before, at) = (at, node.next.get());
        }
        let is_there = found == Some(ask.key);
        let link = match ask.action {
            Action::Insert if !is_there => self.take(ask.key, at),
            Action::Remove if is_there => self.put(at),
            _ => return (is_there, first),
        };
        if before == END {
            return (is_there, link);
        }
        self.node(before).next.set(link);
        (is_there, first)
    }

    /// Makes a free node one with `key` that is followed by `next`.
    fn take(&mut self, key: u32, next: Link) -> Link {
        let at = self.free;
        let node = self.node(at);
        let free = node.next.get();
        node.key.set(key);
        node.next.set(next);
        self.free = free;
        at
    }

    /// Makes a node free. Returns the one that followed it.
    fn put(&mut self, at: Link) -> Link {
        let node = self.node(at);
        let next = node.next.get();
        node.next.set(self.free);
        self.free = at;
        next
    }

    /// The keys of a chain.
    pub(super) fn keys(&self, first: Link) -> impl Iterator<Item = u32> {
        let mut at = first;
        std::iter::from_fn(move || {
            let node = self.nodes.get(at as usize)?;
            at = node.next.get();
            Some(node.key.get())
        })
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The number of nodes that are in no chain.
    pub(super) fn free(&self) -> usize {
        self.keys(self.free).count()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::workload::Object;
    use std::collections::BTreeSet;

    /// Serves many requests, and compares the answers with those of std's set.
    pub(in crate::workload) fn agrees_with_a_set<O: Object<Request = Ask>>() {
        for size in [1, 5, 100] {
            let mut object = O::new(size);
            let mut set: BTreeSet<u32> = (0..size).map(|nth| 2 * nth).collect();
            let mut client = Client::new(1, size);
            for nth in 0..4_000 {
                let ask = Ask::choose(&mut client);
                let was_there = match ask.action {
                    Action::Find => set.contains(&ask.key),
                    Action::Insert => !set.insert(ask.key),
                    Action::Remove => set.remove(&ask.key),
                };
                assert_eq!(object.serve(ask), u64::from(was_there), "{nth}: {ask:?}");
            }
            assert_eq!(object.served(), 4_000);
        }
    }
}
