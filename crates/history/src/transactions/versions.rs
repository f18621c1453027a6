//! The versions of each key, and what is known about their order.
//!
//! All writes of a key by one transaction are one version: the others were never there, and a read
//! of one is an anomaly by itself (G1b). In a list it takes an append of another transaction in
//! between to make them two.
//!
//! * **Lists** tell their order: the longest one that was read is the order of the appends that it
//!   holds. An append that no read has seen comes after these, since it is missing from them.
//! * **Registers** do not. The order is that of the [places](super::Outcome::CommittedAt) that the
//!   store gave their writers. For a writer without one, the version that it read before it wrote
//!   comes before the one that it wrote (Elle: "writes follow reads"); if it read none, the initial
//!   version does.

use super::index::{Index, Op};

/// A transaction that is none: the writer of the first version of a key.
pub(super) const INITIAL: u32 = u32::MAX;
const NONE: u32 = u32::MAX;

/// A version of a key: what one transaction made of it.
pub(super) struct Version {
    pub(super) key: u32,
    /// The number of the transaction, or [`INITIAL`].
    pub(super) writer: u32,
}

/// All versions. Version `k`, for each number `k` of a key, is the key's first.
pub(super) struct Versions<'i> {
    pub(super) all: Vec<Version>,
    /// For each write, its version; [`NONE`] if its transaction has not committed.
    of_write: Vec<u32>,
    /// For each list, the longest that was read, and the reader.
    longest: Vec<Option<(usize, &'i [u32])>>,
    /// Pairs of versions of a list, one right before the other as far as is known.
    listed: Vec<(u32, u32)>,
    /// For each list, the last version that was read.
    last: Vec<u32>,
}

impl<'i> Versions<'i> {
    pub(super) fn new<K>(index: &'i Index<'_, K>) -> Self {
        let keys = 0..index.keys.len() as u32;
        let writer = INITIAL;
        let mut versions = Self {
            all: keys.clone().map(|key| Version { key, writer }).collect(),
            of_write: vec![NONE; index.writes.len()],
            longest: vec![None; keys.len()],
            listed: Vec::new(),
            last: keys.clone().collect(),
        };
        for node in index.committed() {
            for (op, ids) in index.ops(node).filter(|(op, _)| op.is_read) {
                let (key, ids) = (op.key as usize, others(index, node, ids));
                let longest = versions.longest[key].map_or(0, |(_, ids)| ids.len());
                if index.keys[key].1 && ids.len() > longest {
                    versions.longest[key] = Some((node, ids));
                }
            }
        }
        for key in keys {
            let Some((_, ids)) = versions.longest[key as usize] else {
                continue;
            };
            for &id in ids {
                let Some(write) = index.effective(id) else {
                    continue;
                };
                let last = versions.last[key as usize];
                if versions.all[last as usize].writer != write.node {
                    versions.listed.push((last, versions.all.len() as u32));
                    versions.last[key as usize] = versions.add(key, write.node);
                }
                versions.of_write[id as usize] = versions.last[key as usize];
            }
        }
        // What no list shows. A transaction's writes follow each other, but for those of other keys.
        let mut rest: Vec<(u32, u32, usize)> = index
            .writes
            .iter()
            .enumerate()
            .filter(|(id, _)| {
                versions.of_write[*id] == NONE && index.effective(*id as u32).is_some()
            })
            .map(|(id, write)| (write.node, write.key, id))
            .collect();
        rest.sort_unstable();
        for of_one in rest.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let version = versions.add(of_one[0].1, of_one[0].0);
            for (.., id) in of_one {
                versions.of_write[*id] = version;
            }
        }
        versions
    }

    fn add(&mut self, key: u32, writer: u32) -> u32 {
        self.all.push(Version { key, writer });
        self.all.len() as u32 - 1
    }

    /// The longest list of a key that was read, and its reader.
    pub(super) fn longest(&self, key: u32) -> Option<(usize, &'i [u32])> {
        self.longest[key as usize]
    }

    /// The version that a committed transaction saw in a read; `None` if it was a register's that it
    /// had written itself.
    pub(super) fn seen<K>(
        &self,
        index: &Index<'_, K>,
        node: usize,
        op: &Op,
        ids: &[u32],
    ) -> Option<u32> {
        let theirs = others(index, node, ids);
        if theirs.len() < ids.len() && !index.keys[op.key as usize].1 {
            return None;
        }
        let mut effective = theirs
            .iter()
            .rev()
            .filter(|id| index.effective(**id).is_some());
        Some(
            effective
                .next()
                .map_or(op.key, |id| self.of_write[*id as usize]),
        )
    }

    /// The version of a write of a committed transaction.
    pub(super) fn of_write(&self, write: u32) -> u32 {
        self.of_write[write as usize]
    }

    /// Pairs of versions, the first before the second: each with those that are known to follow it,
    /// and are not known to follow another that does.
    ///
    /// `updates` are versions that were read, with those that their readers then wrote; `torn` are
    /// lists of which there are several orders.
    pub(super) fn order<K>(
        &self,
        index: &Index<'_, K>,
        updates: &[(u32, u32)],
        torn: &[bool],
    ) -> Vec<(u32, u32)> {
        let mut order = self.listed.clone();
        let is_list = |version: u32| index.keys[self.all[version as usize].key as usize].1;
        let place = |version: u32| {
            let writer = index.nodes.get(self.all[version as usize].writer as usize);
            writer.and_then(|node| node.place())
        };
        let mut follows = vec![false; self.all.len()];
        for (_, later) in &order {
            follows[*later as usize] = true;
        }
        let mut placed: Vec<(u32, u64, u32)> = Vec::new();
        for version in index.keys.len() as u32..self.all.len() as u32 {
            if let (false, Some(place)) = (is_list(version), place(version)) {
                placed.push((self.all[version as usize].key, place, version));
            }
        }
        placed.sort_unstable();
        for (n, &(key, _, version)) in placed.iter().enumerate() {
            let before = n.checked_sub(1).map(|n| placed[n]);
            let before = before.filter(|before| before.0 == key);
            order.push((before.map_or(key, |before| before.2), version));
            follows[version as usize] = true;
        }
        for &(read, wrote) in updates {
            let known = place(wrote).is_some() && (place(read).is_some() || self.is_first(read));
            if !is_list(wrote) && !known {
                order.push((read, wrote));
                follows[wrote as usize] = true;
            }
        }
        for (version, it) in self.all.iter().enumerate().skip(index.keys.len()) {
            let is_torn = is_list(version as u32) && torn[it.key as usize];
            if !follows[version] && !is_torn {
                order.push((self.last[it.key as usize], version as u32));
            }
        }
        order
    }

    fn is_first(&self, version: u32) -> bool {
        self.all[version as usize].writer == INITIAL
    }
}

/// The writes of a list that come before the first of the reader's own. What it has appended itself
/// need not stay next to them.
pub(super) fn others<'i, K>(index: &Index<'_, K>, reader: usize, ids: &'i [u32]) -> &'i [u32] {
    let own = |id: &u32| {
        let write = index.writes.get(*id as usize);
        write.is_some_and(|write| write.node as usize == reader)
    };
    &ids[..ids.iter().position(own).unwrap_or(ids.len())]
}
