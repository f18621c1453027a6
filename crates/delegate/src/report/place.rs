//! The memory nodes on which objects and queues lie, so that a report shows whether they are near
//! the threads that use them.

use corelay_topology::{memory_nodes, node_of, node_of_cpu};

/// The memory nodes on which some addresses lie.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[non_exhaustive]
pub struct Places {
    /// The number of addresses that were looked at.
    pub asked: usize,
    /// The number of addresses on each node, by the node's number. The nodes of the remaining
    /// addresses are unknown.
    pub by_node: Vec<(usize, usize)>,
}

impl Places {
    /// The number of these addresses that lie on `node`.
    pub fn on(&self, node: usize) -> usize {
        let found = self.by_node.iter().find(|(number, _)| *number == node);
        found.map_or(0, |(_, count)| *count)
    }

    fn of(nodes: impl Iterator<Item = Option<usize>>) -> Self {
        let mut places = Self::default();
        for node in nodes {
            places.asked += 1;
            let Some(node) = node else { continue };
            match places.by_node.binary_search_by_key(&node, |known| known.0) {
                Ok(at) => places.by_node[at].1 += 1,
                Err(at) => places.by_node.insert(at, (node, 1)),
            }
        }
        places
    }
}

/// A helper that finds out on which node memory lies. On a machine with one node it finds nothing.
#[derive(Clone, Copy)]
pub(super) struct Surveyor {
    pub(super) nodes: Option<usize>,
}

impl Surveyor {
    pub(super) fn new() -> Self {
        Self {
            nodes: memory_nodes(),
        }
    }

    fn has_several_nodes(self) -> bool {
        self.nodes.is_some_and(|nodes| nodes > 1)
    }

    /// The node that an address lies on.
    pub(super) fn node_of(self, address: usize) -> Option<usize> {
        let look = |address| node_of(std::ptr::without_provenance::<u8>(address));
        self.has_several_nodes().then(|| look(address)).flatten()
    }

    /// The nodes of some addresses.
    pub(super) fn places(self, addresses: impl Iterator<Item = usize>) -> Option<Places> {
        self.has_several_nodes()
            .then(|| Places::of(addresses.map(|address| self.node_of(address))))
    }

    /// The node of a CPU.
    pub(super) fn node_of_cpu(self, cpu: Option<usize>) -> Option<usize> {
        self.has_several_nodes()
            .then(|| node_of_cpu(cpu?))
            .flatten()
    }
}

#[cfg(all(test, not(any(corelay_loom, corelay_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_by_node() {
        let places = Places::of([Some(2), None, Some(0), Some(2)].into_iter());
        assert_eq!(places.asked, 4);
        assert_eq!(places.by_node, [(0, 1), (2, 2)]);
        assert_eq!((places.on(0), places.on(1), places.on(2)), (1, 0, 2));
    }

    /// The surveyor's work on a machine with several nodes, on whatever machine this is.
    #[test]
    fn with_several_nodes_the_kernel_is_asked() {
        let here = 1u64;
        let several = Surveyor { nodes: Some(2) };
        let address = (&raw const here).addr();
        assert_eq!(several.node_of(address), node_of(&here));
        let places = several.places([address, 0].into_iter()).expect("several");
        assert_eq!(places.asked, 2);
        let known = places.by_node.iter().map(|known| known.1).sum::<usize>();
        assert_eq!(known, usize::from(node_of(&here).is_some()));
        let cpu = corelay_topology::current_cpu();
        assert_eq!(several.node_of_cpu(cpu), cpu.and_then(node_of_cpu));
        for nodes in [None, Some(1)] {
            let one = Surveyor { nodes };
            assert_eq!(one.node_of(address), None);
            assert_eq!(one.places([address].into_iter()), None);
            assert_eq!(one.node_of_cpu(cpu), None);
        }
    }
}
