//! The heads of lists, one for each thread, in one array: beside each other or apart.

use super::nodes::{HEAD, List, Owned};

/// Cache lines are that long on most machines; heads begin at the beginning of one.
const LINE: usize = 64;

/// A head for each thread.
#[derive(Debug)]
pub(crate) struct Heads<N: Owned> {
    heads: Vec<List<N>>,
    /// The first one: at the beginning of a line, so that the second, beside it, shares it.
    first: usize,
    /// From one to the next. Those in between are never used: they are the padding.
    step: usize,
}

impl<N: Owned> Heads<N> {
    /// A head for each of so many threads, with `padding` bytes behind each: a multiple of [`HEAD`].
    pub(crate) fn new(threads: usize, padding: usize) -> Self {
        let step = 1 + padding / HEAD;
        let spare = LINE / HEAD;
        let heads: Vec<List<N>> = (0..threads * step + spare)
            .map(|_| List::default())
            .collect();
        let first = heads.as_ptr().align_offset(LINE).min(spare);
        Self { heads, first, step }
    }

    /// Each thread's.
    pub(crate) fn each(&mut self) -> impl Iterator<Item = &mut List<N>> {
        self.heads[self.first..].iter_mut().step_by(self.step)
    }

    /// All lists as one: a few links each, whatever is in them.
    pub(crate) fn together(self) -> List<N> {
        let mut all = List::default();
        self.heads.into_iter().for_each(|list| all.append(list));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::super::nodes::Node;
    use super::*;

    #[test]
    fn heads_are_so_far_apart() {
        for padding in [0, 64, 128, 4096] {
            let mut heads: Heads<Box<Node>> = Heads::new(3, padding);
            let places: Vec<usize> = heads.each().map(|l| std::ptr::from_mut(l).addr()).collect();
            assert!(places.len() >= 3 && places[0].is_multiple_of(LINE));
            assert_eq!(places[1] - places[0], HEAD + padding);
            assert_eq!(places[2] - places[1], HEAD + padding);
        }
    }

    #[test]
    fn what_was_pushed_anywhere_is_in_the_one_list() {
        let mut heads = Heads::new(3, 64);
        for (n, list) in heads.each().enumerate().take(3) {
            list.push(Box::new(Node::new(n as u64)));
        }
        let mut keys = Vec::new();
        heads.together().walk(|key| keys.push(key)).unwrap();
        assert_eq!(keys, [0, 1, 2]);
    }
}
