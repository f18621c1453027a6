//! A sorted linked list as one thread has it: what locks and trustees keep.

/// Keys in ascending order, a node each.
#[derive(Debug, Default)]
pub(super) struct List {
    head: Link,
}

type Link = Option<Box<Node>>;

#[derive(Debug)]
struct Node {
    key: u64,
    next: Link,
}

impl List {
    pub(super) fn contains(&self, key: u64) -> bool {
        let mut link = &self.head;
        while let Some(node) = link {
            if node.key >= key {
                return node.key == key;
            }
            link = &node.next;
        }
        false
    }

    /// The first link to no smaller key.
    fn seek(&mut self, key: u64) -> &mut Link {
        let mut link = &mut self.head;
        while link.as_ref().is_some_and(|node| node.key < key) {
            link = &mut link.as_mut().expect("it was just seen").next;
        }
        link
    }

    pub(super) fn insert(&mut self, key: u64) -> bool {
        let link = self.seek(key);
        if link.as_ref().is_some_and(|node| node.key == key) {
            return false;
        }
        let next = link.take();
        *link = Some(Box::new(Node { key, next }));
        true
    }

    pub(super) fn remove(&mut self, key: u64) -> bool {
        let link = self.seek(key);
        match link.take_if(|node| node.key == key) {
            None => false,
            Some(node) => {
                *link = node.next;
                true
            }
        }
    }

    pub(super) fn keys(&self) -> Vec<u64> {
        let nodes = std::iter::successors(self.head.as_deref(), |node| node.next.as_deref());
        nodes.map(|node| node.key).collect()
    }
}

impl Drop for List {
    /// One after the other: the nodes' own way would need a stack as deep as the list.
    fn drop(&mut self) {
        let mut link = self.head.take();
        while let Some(mut node) = link {
            link = node.next.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corelay_lab_measure::workload::random::Random;
    use std::collections::BTreeSet;

    #[test]
    fn it_is_a_sorted_set() {
        let (mut list, mut set) = (List::default(), BTreeSet::new());
        let mut random = Random::new(1);
        for _ in 0..2_000 {
            let key = random.below(40);
            match random.below(3) {
                0 => assert_eq!(list.insert(key), set.insert(key)),
                1 => assert_eq!(list.remove(key), set.remove(&key)),
                _ => assert_eq!(list.contains(key), set.contains(&key)),
            }
            assert!(list.keys().iter().eq(set.iter()));
        }
    }
}
