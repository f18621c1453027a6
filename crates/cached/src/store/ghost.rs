//! The ghost queue of S3-FIFO: fingerprints of items that were evicted after little use.

/// Fingerprints in groups of 4, each a queue of its own.
pub(super) struct Ghost {
    groups: Box<[[u32; GROUP]]>,
}

const GROUP: usize = 4;

impl Ghost {
    /// Makes a ghost queue for about `items` fingerprints, which is empty.
    pub(super) fn new(items: usize) -> Self {
        let groups = items.div_ceil(GROUP).next_power_of_two();
        Self {
            groups: vec![[0; GROUP]; groups].into(),
        }
    }

    /// The bytes that the queue takes.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.groups)
    }

    /// The number of fingerprints that it has room for.
    pub(super) fn capacity(&self) -> usize {
        self.groups.len() * GROUP
    }

    fn group(&mut self, hash: u64) -> (&mut [u32; GROUP], u32) {
        let group = (hash >> 32) as usize & (self.groups.len() - 1);
        // 0 stands for none.
        (&mut self.groups[group], (hash as u32).max(1))
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
