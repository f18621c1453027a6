//! The workload `list`: a set of keys in one sorted chain.

use super::chain::{Ask, END, Link, Nodes};
use super::{Client, Object, room};

pub(crate) struct List {
    nodes: Nodes,
    first: Link,
    served: u64,
}

impl Object for List {
    type Request = Ask;

    fn new(size: u32) -> Self {
        let mut list = Self {
            nodes: Nodes::new(room(size)),
            first: END,
            served: 0,
        };
        Ask::fill(size).for_each(|ask| _ = list.serve(ask));
        list.served = 0;
        list
    }

    /// An operation goes over half of the list.
    fn warm_up(size: u32) -> u64 {
        2 * u64::from(size)
    }

    fn choose(client: &mut Client) -> Ask {
        Ask::choose(client)
    }

    fn serve(&mut self, ask: Ask) -> u64 {
        self.served += 1;
        let (was_there, first) = self.nodes.serve(self.first, ask);
        self.first = first;
        was_there.into()
    }

    fn served(&self) -> u64 {
        let keys: Vec<u32> = self.nodes.keys(self.first).collect();
        assert!(keys.is_sorted_by(|a, b| a < b), "the list is in disorder");
        assert_eq!(
            keys.len() + self.nodes.free(),
            self.nodes.len(),
            "lost nodes"
        );
        self.served
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::chain::Action;
    use crate::workload::tests::in_turn;

    /// By hand, for a list of the keys 0, 2 and 4 that place 0 has made. The head of the list is in
    /// the lock's line, `L`, which moves when the other place enters.
    ///
    /// | place | request | moves | claims |
    /// |---|---|---|---|
    /// | 0 | find 4 | | |
    /// | 1 | find 4 | L, the nodes 0, 2 and 4 | |
    /// | 1 | find 4 | | |
    /// | 0 | insert 3 into a node of its own | L | node 2, which now leads to it |
    /// | 1 | find 4 | L, the nodes 2 and 3 | |
    /// | 0 | remove 2 | L | node 2, which becomes free, and node 0 |
    /// | 1 | find 3 | L, node 0 | |
    /// | 1 | insert 1 into the free node | the free node | that and node 0 |
    #[test]
    fn a_search_moves_the_nodes_that_were_written_elsewhere() {
        use Action::{Find, Insert, Remove};
        let requests = [
            (0, Find, 4),
            (1, Find, 4),
            (1, Find, 4),
            (0, Insert, 3),
            (1, Find, 4),
            (0, Remove, 2),
            (1, Find, 3),
            (1, Insert, 1),
        ];
        let requests = requests.map(|(place, action, key)| (place, Ask { key, action }));
        assert_eq!(
            in_turn::<List>(3, requests),
            [
                (0, 0),
                (4, 0),
                (0, 0),
                (1, 1),
                (3, 0),
                (1, 2),
                (2, 0),
                (1, 2)
            ]
        );
    }

    #[test]
    fn answers_are_those_of_a_set() {
        crate::workload::chain::tests::agrees_with_a_set::<List>();
    }
}
