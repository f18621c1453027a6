//! The heads of the threads' lists in one array, side by side or apart.

use super::nodes::{HEAD, List, Owned};

/// Length of a cache line on most machines, in bytes. The first head begins at the start of a
/// line.
const LINE: usize = 64;

/// A list head for each thread.
#[derive(Debug)]
pub(crate) struct Heads<N: Owned> {
    heads: Vec<List<N>>,
    /// Index of the first head in use: at the start of a line, so that a second head beside it
    /// shares the line.
    first: usize,
    /// Distance from one head to the next. The heads in between are padding and never used.
    step: usize,
}

impl<N: Owned> Heads<N> {
    /// Makes a head for each thread, each followed by `padding` bytes, a multiple of [`HEAD`].
    pub(crate) fn new(threads: usize, padding: usize) -> Self {
        let step = 1 + padding / HEAD;
        let spare = LINE / HEAD;
        let heads: Vec<List<N>> = (0..threads * step + spare)
            .map(|_| List::default())
            .collect();
        let first = heads.as_ptr().align_offset(LINE).min(spare);
        Self { heads, first, step }
    }

    /// Returns the list of each thread.
    pub(crate) fn each(&mut self) -> impl Iterator<Item = &mut List<N>> {
        self.heads[self.first..].iter_mut().step_by(self.step)
    }

    /// Joins all lists into one, which takes a few links for each list whatever its length.
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
    fn heads_are_apart_by_the_padding() {
        for padding in [0, 64, 128, 4096] {
            let mut heads: Heads<Box<Node>> = Heads::new(3, padding);
            let places: Vec<usize> = heads.each().map(|l| std::ptr::from_mut(l).addr()).collect();
            assert!(places.len() >= 3 && places[0].is_multiple_of(LINE));
            assert_eq!(places[1] - places[0], HEAD + padding);
            assert_eq!(places[2] - places[1], HEAD + padding);
        }
    }

    #[test]
    fn the_joined_list_has_every_pushed_key() {
        let mut heads = Heads::new(3, 64);
        for (n, list) in heads.each().enumerate().take(3) {
            list.push(Box::new(Node::new(n as u64)));
        }
        let mut keys = Vec::new();
        heads.together().walk(|key| keys.push(key)).unwrap();
        assert_eq!(keys, [0, 1, 2]);
    }
}
