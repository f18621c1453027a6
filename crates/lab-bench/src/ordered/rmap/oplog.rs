//! The map behind logs: an update waits in its thread's until somebody reads the whole.

use super::map::{Census, Map, Mapping, Of};
use super::{Mapper, Rmap};
use corelay_clock::Clock;
use corelay_lab_measure::schema::Counts;
use corelay_txn::oplog::{Absorbed, Commutes, OpLog, Operation, Remap, ReverseMap, Session};

/// What is logged.
#[derive(Clone, Copy)]
pub(super) struct Update(Remap<u32, Of>);

/// As the operation that it holds.
impl Operation<Map> for Update {
    const COMMUTES: Commutes = <Remap<u32, Of> as Operation<ReverseMap<u32, Of>>>::COMMUTES;

    #[inline]
    fn apply(self, map: &mut Map) {
        self.0.apply(&mut map.mappings);
    }

    #[inline]
    fn key(&self) -> Option<u64> {
        self.0.key()
    }

    #[inline]
    fn absorb(self, earlier: &Self) -> Absorbed<Self> {
        match self.0.absorb(&earlier.0) {
            Absorbed::Neither(later) => Absorbed::Neither(Self(later)),
            Absorbed::Replaces(new) => Absorbed::Replaces(Self(new)),
            Absorbed::Cancels => Absorbed::Cancels,
        }
    }
}

pub(super) struct Logged<C> {
    log: OpLog<Map, Update, C>,
}

impl<C: Clock> Logged<C> {
    pub(super) fn new(clock: C, pages: usize) -> Self {
        Self {
            log: OpLog::new(Map::new(pages), clock),
        }
    }
}

impl<C: Clock + 'static> Rmap for Logged<C> {
    type Mapper<'a> = Session<'a, Map, Update, C>;

    fn mapper(&self) -> Self::Mapper<'_> {
        self.log.session()
    }

    /// Nothing is given up.
    fn counts(&self) -> Counts {
        Counts {
            uncertain: self.log.stats().uncertain,
            ..Counts::default()
        }
    }
}

impl<C: Clock> Mapper for Session<'_, Map, Update, C> {
    #[inline(always)]
    fn add(&mut self, mapping: Mapping) {
        self.update(Update(Remap::Add(mapping.page, mapping.of())));
    }

    #[inline(always)]
    fn remove(&mut self, mapping: Mapping) {
        self.update(Update(Remap::Remove(mapping.page, mapping.of())));
    }

    fn census(&mut self, owner: u32) -> Census {
        self.read(|map| map.census(owner))
    }
}
