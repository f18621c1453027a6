//! The map that counts, behind logs: no update draws a time, and what is mapped and unmapped before
//! anybody reads never reaches it.

use super::map::{Census, Mapping, Of};
use super::{Mapper, Rmap};
use corelay_clock::Logical;
use corelay_txn::oplog::{Count, CountedMap, OpLog, Session};

type Map = CountedMap<u32, Of>;

pub(crate) struct Counted {
    log: OpLog<Map, Count<u32, Of>, Logical>,
    pages: u32,
}

impl Counted {
    pub(super) fn new(pages: usize) -> Self {
        Self {
            // Whatever clock: it is not asked.
            log: OpLog::new(Map::new(), Logical::new()),
            pages: pages as u32,
        }
    }
}

/// A thread's log, and the number of pages.
pub(super) struct Counting<'a>(Session<'a, Map, Count<u32, Of>, Logical>, u32);

impl Rmap for Counted {
    type Mapper<'a> = Counting<'a>;

    fn mapper(&self) -> Self::Mapper<'_> {
        Counting(self.log.session(), self.pages)
    }
}

impl Mapper for Counting<'_> {
    #[inline(always)]
    fn add(&mut self, mapping: Mapping) {
        self.0.update(Count::add(mapping.page, mapping.of()));
    }

    #[inline(always)]
    fn remove(&mut self, mapping: Mapping) {
        self.0.update(Count::remove(mapping.page, mapping.of()));
    }

    fn census(&mut self, owner: u32) -> Census {
        let pages = self.1;
        self.0.read(|map| {
            let mut census = Census::default();
            for page in 0..pages {
                census.count_page(page, map.mappings(&page), owner);
            }
            census
        })
    }
}
