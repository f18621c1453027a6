//! The ghost queue of S3-FIFO: fingerprints of items that were evicted after little use.

use corelay_sync::prefetch_read;

/// Fingerprints in groups of 4, each a queue of its own.
pub(super) struct Ghost {
    groups: Box<[[u32; GROUP]]>,
}

const GROUP: usize = 4;

impl Ghost {
    /// Makes a ghost queue for `items` fingerprints, which is empty.
    pub(super) fn new(items: usize) -> Self {
        Self {
            groups: vec![[0; GROUP]; Self::groups(items)].into(),
        }
    }

    fn groups(items: usize) -> usize {
        items.div_ceil(GROUP).max(1)
    }

    /// The bytes of a new ghost queue for `items` fingerprints.
    pub(super) fn bytes_for(items: usize) -> usize {
        Self::groups(items) * size_of::<[u32; GROUP]>()
    }

    /// The bytes that the queue takes.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.groups)
    }

    /// The number of fingerprints that it has room for.
    pub(super) fn capacity(&self) -> usize {
        self.groups.len() * GROUP
    }

    fn place(&self, hash: u64) -> usize {
        (((hash >> 32) * self.groups.len() as u64) >> 32) as usize
    }

    fn group(&mut self, hash: u64) -> (&mut [u32; GROUP], u32) {
        let place = self.place(hash);
        // 0 stands for none.
        (&mut self.groups[place], (hash as u32).max(1))
    }

    /// Begins to load the group of that hash into the cache.
    pub(super) fn prefetch(&self, hash: u64) {
        prefetch_read(&self.groups[self.place(hash)]);
    }

    /// Enters an item, in place of the oldest of its group.
    pub(super) fn enter(&mut self, hash: u64) {
        let (group, fingerprint) = self.group(hash);
        group.rotate_right(1);
        group[0] = fingerprint;
    }

    /// Takes an item out. Returns whether it was there.
    pub(super) fn take(&mut self, hash: u64) -> bool {
        let (group, fingerprint) = self.group(hash);
        let found = group.iter_mut().find(|entry| **entry == fingerprint);
        found.map(|entry| *entry = 0).is_some()
    }
}
