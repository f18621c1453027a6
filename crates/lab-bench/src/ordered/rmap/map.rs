//! The map that all of them share, and what a read of the whole takes from it.

use corelay_lab_measure::workload::random::Random;
use corelay_txn::oplog::ReverseMap;

/// Somebody's mapping of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mapping {
    pub(super) page: u32,
    pub(super) owner: u32,
    /// Of the owner's, in turn.
    pub(super) number: u32,
}

/// Owner and number, by page.
pub(super) type Of = (u32, u32);

impl Mapping {
    pub(super) fn of(self) -> Of {
        (self.owner, self.number)
    }
}

/// Who has mapped which page.
#[derive(Debug)]
pub(super) struct Map {
    pub(super) mappings: ReverseMap<u32, Of>,
    pages: u32,
}

impl Map {
    pub(super) fn new(pages: usize) -> Self {
        Self {
            mappings: ReverseMap::new(),
            pages: pages as u32,
        }
    }

    pub(super) fn add(&mut self, mapping: Mapping) {
        self.mappings.add(mapping.page, mapping.of());
    }

    /// Without it; nothing happens where it is not there, and a census will say so.
    pub(super) fn remove(&mut self, mapping: Mapping) {
        self.mappings.remove(&mapping.page, &mapping.of());
    }

    pub(super) fn census(&self, of: u32) -> Census {
        let mut census = Census::default();
        for page in 0..self.pages {
            census.count_page(page, self.mappings.mappings(&page), of);
        }
        census
    }
}

/// How many mappings there are, how many are somebody's, and the sum of these ones' fingerprints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Census {
    pub(super) all: u64,
    pub(super) own: u64,
    pub(super) prints: u64,
}

impl Census {
    pub(super) fn count_page<'a>(
        &mut self,
        page: u32,
        mappings: impl Iterator<Item = &'a Of>,
        of: u32,
    ) {
        for &(owner, number) in mappings {
            let mapping = Mapping {
                page,
                owner,
                number,
            };
            self.count(mapping, of);
        }
    }

    pub(super) fn count(&mut self, mapping: Mapping, owner: u32) {
        self.all += 1;
        if mapping.owner == owner {
            self.own += 1;
            let word = u64::from(mapping.page) << 32 | u64::from(mapping.number);
            self.prints = self.prints.wrapping_add(Random::new(word).next());
        }
    }
}
