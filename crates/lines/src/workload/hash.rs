//! The workload `hash`: a set of keys in a hash table with chains.

use super::chain::{Ask, END, Link, Nodes};
use super::memory::Words;
use super::{Client, Object, room};

pub(crate) struct Hash {
    /// The first node of each bucket.
    firsts: Words,
    buckets: u32,
    nodes: Nodes,
    served: u64,
}

impl Hash {
    /// The bucket of `key`: the upper bits of its product with 2³² divided by the golden ratio
    /// (Knuth, "Sorting and Searching", section 6.4).
    fn bucket(&self, key: u32) -> u32 {
        let mixed = u64::from(key.wrapping_mul(0x9e37_79b9));
        ((mixed * u64::from(self.buckets)) >> 32) as u32
    }

    fn first(&self, bucket: u32) -> Link {
        self.firsts.at(bucket).get() as Link
    }
}

impl Object for Hash {
    type Request = Ask;

    fn new(size: u32) -> Self {
        let mut hash = Self {
            firsts: Words::new(size),
            buckets: size,
            nodes: Nodes::new(room(size)),
            served: 0,
        };
        (0..size).for_each(|bucket| hash.firsts.at(bucket).set(END.into()));
        Ask::fill(size).for_each(|ask| _ = hash.serve(ask));
        hash.served = 0;
        hash
    }

    fn warm_up(size: u32) -> u64 {
        8 * u64::from(size)
    }

    fn choose(client: &mut Client) -> Ask {
        Ask::choose(client)
    }

    fn serve(&mut self, ask: Ask) -> u64 {
        self.served += 1;
        let bucket = self.bucket(ask.key);
        let first = self.first(bucket);
        let (was_there, now) = self.nodes.serve(first, ask);
        if now != first {
            self.firsts.at(bucket).set(now.into());
        }
        was_there.into()
    }

    fn served(&self) -> u64 {
        let mut len = self.nodes.free();
        for bucket in 0..self.buckets {
            for key in self.nodes.keys(self.first(bucket)) {
                assert_eq!(self.bucket(key), bucket, "{key} is in another bucket");
                len += 1;
            }
        }
        assert_eq!(len, self.nodes.len(), "lost nodes");
        self.served
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::chain::Action;
    use crate::workload::tests::in_turn;

    /// By hand, for the even keys from 0 to 14 in eight buckets, which are one line, `B`, and which
    /// place 0 has made. `L` is the lock's line. Keys 2 and 10 are in one bucket.
    ///
    /// | place | request | moves | claims |
    /// |---|---|---|---|
    /// | 0 | find 0 | | |
    /// | 1 | find 0 | L, B, node 0 | |
    /// | 1 | find 8 | node 8 | |
    /// | 1 | find 10 | the nodes 2 and 10 | |
    /// | 1 | find 1, whose bucket is empty | | |
    /// | 0 | insert 1 into a node of its own | L | B |
    /// | 1 | find 1 | L, B, node 1 | |
    #[test]
    fn a_lookup_moves_the_bucket_and_its_nodes() {
        use Action::{Find, Insert};
        let requests = [
            (0, Find, 0),
            (1, Find, 0),
            (1, Find, 8),
            (1, Find, 10),
            (1, Find, 1),
            (0, Insert, 1),
            (1, Find, 1),
        ];
        let requests = requests.map(|(place, action, key)| (place, Ask { key, action }));
        assert_eq!(
            in_turn::<Hash>(8, requests),
            [(0, 0), (3, 0), (1, 0), (2, 0), (0, 0), (1, 1), (3, 0)]
        );
    }

    #[test]
    fn answers_are_those_of_a_set() {
        crate::workload::chain::tests::agrees_with_a_set::<Hash>();
    }

    #[test]
    fn keys_spread_over_the_buckets() {
        for size in [1, 7, 1024] {
            let hash = Hash::new(size);
            let mut keys = vec![0; size as usize];
            (0..2 * size).for_each(|key| keys[hash.bucket(key) as usize] += 1);
            assert!(keys.iter().all(|keys| (1..=3).contains(keys)), "{keys:?}");
        }
    }
}
